"""``codetaste report`` on a run with environments: yield and cost by level, and why the others failed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.cli.commands.report import report
from codetaste.environment.levels import Level
from codetaste.environment.record import (
    Builder,
    EnvironmentDetails,
    EnvironmentRecord,
    new_metadata,
    write_record,
)
from support.environment.instances import instance

MADE = [
    ("1", Level.OFFLINE, "0.5", 1, 60.0),
    ("2", Level.GATES_PASS, "0", 0, 30.0),
    ("3", Level.TESTS_START, "5", 3, 600.0),
    ("4", Level.OFFLINE, "1.5", 2, 180.0),
]


def write_run(folder: Path) -> None:
    for digit, level, cost, attempts, duration_s in MADE:
        one = instance(repo=f"anvil{digit}")
        metadata = new_metadata(
            one,
            has_execution_environment=level.is_proven,
            reason_no_execution_environment="" if level.is_proven else "tests on R: 3 tests",
        )
        details = EnvironmentDetails(
            level=level,
            builder=Builder.AGENT if attempts else Builder.IMPORT,
            cost_usd=Decimal(cost),
            attempts=attempts,
            duration_s=duration_s,
        )
        write_record(folder / "environment", one, EnvironmentRecord(metadata, details))


def test_yield_of_a_batch_is_a_table_with_its_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path)
    assert report(tmp_path, json_=True) == 0
    tables = {each["name"]: each for each in json.loads(capsys.readouterr().out)["tables"]}
    assert [row["cells"] for row in tables["environments"]["rows"]] == [
        ["offline", 2, 0.5, 0, 2, 2.0, 1.0, 120.0],
        ["gates_pass", 1, 0.25, 1, 0, 0.0, 0.0, 30.0],
        ["tests_start", 1, 0.25, 0, 1, 5.0, 5.0, 600.0],
        ["proven", 3, 0.75, 1, 2, 2.0, 0.5, 60.0],
        ["all", 4, 1.0, 1, 3, 7.0, 1.0, 120.0],
    ]
    (failed,) = tables["failed-environments"]["rows"]
    assert failed["cells"] == ["Acme__anvil3-00000001", "tests_start", 5.0, "tests on R: 3 tests"]
