"""What decides the answers of a pair: a trial is done again where one of it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codetaste.benchmark.benchmark import Benchmark
from codetaste.flows.inputs import InputSource
from codetaste.llm.prompts import Prompts
from codetaste.sandbox.config import SandboxConfig
from codetaste.swe_refactor.config import StrategyConfig
from codetaste.swe_refactor.trials.inputs import trial_inputs
from codetaste.swe_refactor.trials.plan import StrategyTrial
from support.swe_refactor.shop import instance

MODELS = {"dev": "fingerprint of dev", "rev": "fingerprint of rev"}
PROMPTS = {f"prompts/swe_refactor/pair/{name}.md" for name in ("developer", "feedback", "review", "reviewer")}


def inputs(folder: Path | None = None, kind: str = "multi-agent", **strategy: Any) -> dict[str, str]:
    config = StrategyConfig.model_validate({"kind": kind, **strategy})
    subject = instance("Extract Method")
    trial = StrategyTrial(config, "dev", "dev", "Dev", scripted=True, instance=subject, digest="d", attempt=1)
    source = InputSource(Benchmark(Path(), ()), Prompts(folder), MODELS)
    return dict(trial_inputs(trial, source, SandboxConfig(), {}))


def changed(**strategy: Any) -> set[str]:
    """The inputs that differ from those of a plain pair."""
    one, other = inputs(reviewer="rev"), inputs(**{"reviewer": "rev", **strategy})
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def test_prompts_tools_and_the_programs_of_reviews_are_inputs() -> None:
    found = inputs(reviewer="rev")
    assert {
        *PROMPTS,
        "models.rev",
        "codetaste.tools",
        "codetaste.checkstyle",
        "codetaste.jdt",
    } <= found.keys()
    assert all(name in found["codetaste.tools"] for name in ("callers ", "class_body ", "review "))
    assert "checkstyle-12.3.1" in found["codetaste.checkstyle"]
    assert not {*PROMPTS, "codetaste.tools"} & inputs(kind="simple").keys()


@pytest.mark.parametrize("setting", [{"rounds": 2}, {"max_turns": 9}, {"max_output_tokens": 300}])
def test_settings_that_decide_answers_are_inputs(setting: dict[str, int]) -> None:
    assert changed(**setting) == {"strategies.multi-agent"}


@pytest.mark.parametrize("setting", [{"budget_usd": 1}, {"time_limit": 9}, {"attempts": 2}])
def test_limits_are_no_inputs(setting: dict[str, int]) -> None:
    assert changed(**setting) == set()


def test_another_reviewer_and_own_prompts_are_other_inputs(tmp_path: Path) -> None:
    assert changed(reviewer="dev") == {"models.rev", "strategies.multi-agent"}
    own = tmp_path / "swe_refactor" / "pair" / "review.md"
    own.parent.mkdir(parents=True)
    own.write_text("Review it.")
    one, other = inputs(), inputs(tmp_path)
    assert {name for name in one if one[name] != other[name]} == {"prompts/swe_refactor/pair/review.md"}
