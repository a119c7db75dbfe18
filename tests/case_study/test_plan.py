"""Which trials studies are planned for, and what is said if there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.case_study.config import CaseStudyConfig
from codetaste.case_study.plan import no_trials
from codetaste.errors import ConfigError


def test_a_config_of_the_other_benchmark_differs_from_a_run_without_trials(tmp_path: Path) -> None:
    config = CaseStudyConfig(run=str(tmp_path), agent="examiner")
    with pytest.raises(ConfigError, match="the run has no trial that has ended"):
        raise no_trials(config, tmp_path, [], "instance")
    (tmp_path / "swe_refactor").mkdir()
    (tmp_path / "swe_refactor/trials.jsonl").touch()
    with pytest.raises(ConfigError, match=r"its trials are of SWE-Refactor: add instances and repositories"):
        raise no_trials(config, tmp_path, [], "instance")
