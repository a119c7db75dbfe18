"""Pages of environments: gates, runs and scripts, and nothing that is outside of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.environment.levels import Level
from codetaste.environment.record import (
    EnvironmentDetails,
    EnvironmentRecord,
    GateRecord,
    InstanceMetadata,
    RecordedMetrics,
    RecordedRun,
    RunSide,
)
from codetaste.report.render.csv import render_csv
from codetaste.report.tables.environments import ENVIRONMENT_TABLES, environment_tables
from support.site.results import make_site, site_texts

PAGE = "environments/o__r-12345678/index.html"


def record(owner: str = "o", repo: str = "r", **changes: Any) -> EnvironmentRecord:
    metadata = InstanceMetadata(
        owner=owner,
        repo=repo,
        base_hash="12345678" + "0" * 32,
        golden_hash="9" * 40,
        reason_no_execution_environment=changes.pop("reason", ""),
    )
    known = {
        "level": Level.GATES_PASS,
        "gates": (
            GateRecord(name="setup", passed=True),
            GateRecord(name="size", passed=False, message="<b>"),
        ),
        "runs": (RecordedRun(side=RunSide.BASE, counts=RecordedMetrics(passed=12, failed=1, total=13)),),
        "cost_usd": "1.50",
    }
    return EnvironmentRecord(metadata, EnvironmentDetails.model_validate({**known, **changes}))


def test_pages_have_the_tables_gates_runs_and_record() -> None:
    records = (record(), record("p", level=Level.NONE, reason="the gate size failed"))
    made = site_texts(make_site(environments=records))
    assert made["environments/tables.csv"] == render_csv(environment_tables(records, ENVIRONMENT_TABLES))
    assert "the gate size failed" in made["environments/index.html"]
    page = made[PAGE]
    assert "$1.50" in page
    assert "&lt;b&gt;" in page
    assert '<td class="num">12</td><td class="num">1</td>' in page
    data = json.loads(made[PAGE.replace("index.html", "environment.json")])
    assert data["details"]["level"] == "gates_pass"


def test_scripts_of_the_run_are_shown(tmp_path: Path) -> None:
    folder = tmp_path / "environment/instance_images/o/r/12345678/scripts"
    folder.mkdir(parents=True)
    (folder / "run_tests").write_text("#!/bin/sh\necho '<script>'\n")
    page = site_texts(make_site([tmp_path], environments=(record(),)))[PAGE]
    assert "echo &#39;&lt;script&gt;&#39;" in page


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not show")
    folder = tmp_path / "run/environment/instance_images/o/r/12345678/scripts"
    folder.mkdir(parents=True)
    (folder / "run_tests").symlink_to(tmp_path / "secret")
    page = site_texts(make_site([tmp_path / "run"], environments=(record(),)))[PAGE]
    assert "do not show" not in page


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "a/../..", "\ud800"])
def test_names_that_are_paths_lead_nowhere(tmp_path: Path, name: str) -> None:
    made = site_texts(make_site([tmp_path], environments=(record(name, name),)))
    assert all(".." not in address.split("/") for address in made)
