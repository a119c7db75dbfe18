"""Records of environments: published metadata stay as they are, damaged files are named in one line."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codetaste.benchmark.layout import environment_folder
from codetaste.environment.levels import Level
from codetaste.environment.record import (
    Builder,
    EnvironmentDetails,
    EnvironmentRecord,
    GateRecord,
    ImageIdentity,
    NetworkUse,
    RecordedMetrics,
    RecordedRun,
    RunSide,
    new_metadata,
    read_record,
    write_record,
)
from codetaste.errors import ConfigError
from codetaste.sandbox.base import Privileges
from support.environment.instances import instance

ONE = instance()
METRICS = {"passed": 931, "failed": 1, "skipped": 0, "total": 932, "error": None}
PUBLISHED = {
    "owner": "Acme",
    "repo": "anvil",
    "base_hash": ONE.commit_hash,
    "golden_hash": ONE.golden_commit_hash,
    "golden_metrics": METRICS,
    "base_metrics": {**METRICS, "passed": 0, "failed": -1, "error": "Crashed"},
    "setup_image": f"localhost/benchmark/{ONE.id}__setup",
    "runtime_image": f"localhost/benchmark/{ONE.id}__runtime",
    "has_execution_environment": True,
    "reason_no_execution_environment": "",
}


def write_files(root: Path, metadata: Any, details: Any = None) -> None:
    folder = environment_folder(root, ONE)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("instance_metadata.json", metadata), ("environment.json", details)):
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content, indent=4)
            (folder / name).write_text(text)


def test_published_metadata_are_read_and_written_byte_for_byte(tmp_path: Path) -> None:
    for metadata in (
        PUBLISHED,
        {**PUBLISHED, "golden_metrics": None, "base_metrics": None, "has_execution_environment": False},
        {**PUBLISHED, "golden_metrics": {**METRICS, "duration": 1.5}, "extra": {"of": ["another", "tool"]}},
    ):
        write_files(tmp_path, metadata)
        record = read_record(tmp_path, ONE)
        assert record is not None
        assert record.details is None
        write_record(tmp_path / "copy", ONE, record)
        path = environment_folder(tmp_path / "copy", ONE) / "instance_metadata.json"
        assert path.read_text() == json.dumps(metadata, indent=4)


def test_published_data_are_read_and_written_byte_for_byte(published_data: Path, tmp_path: Path) -> None:
    from codetaste.benchmark.benchmark import open_benchmark

    found = 0
    for each in open_benchmark(published_data).instances:
        record = read_record(published_data, each)
        if record is not None:
            write_record(tmp_path, each, record)
            names = [
                environment_folder(root, each) / "instance_metadata.json"
                for root in (published_data, tmp_path)
            ]
            assert names[0].read_bytes() == names[1].read_bytes()
            assert record.level is Level.GATES_PASS
            found += 1
    assert found


def test_everything_that_is_known_is_read_as_it_was_written(tmp_path: Path) -> None:
    counts = RecordedMetrics(passed=10, failed=2, skipped=0, total=12)
    details = EnvironmentDetails(
        level=Level.OFFLINE,
        builder=Builder.NEIGHBOUR,
        built_by="acme__anvil-00000002",
        privileges=Privileges.SUDO,
        network=NetworkUse(needed=False, hosts=("index.invalid:443",)),
        base_image=ImageIdentity(name="codetaste/polyglot:1", id="sha256:1", key="2"),
        setup_image=ImageIdentity(name="a"),
        runtime_image=ImageIdentity(name="b"),
        scripts="3",
        dependencies="4",
        gates=(
            GateRecord(name="counts", passed=True),
            GateRecord(name="status", passed=False, message="dirty"),
        ),
        runs=(
            RecordedRun(side=RunSide.GOLDEN, counts=counts, exit_code=0, setup_s=1.5, duration_s=60.25),
            RecordedRun(side=RunSide.BASE, problem="timeout", network=True),
        ),
        cost_usd=Decimal("0.1234567"),
        attempts=3,
        duration_s=99.5,
        layer_bytes=2**33,
    )
    record = EnvironmentRecord(new_metadata(ONE, has_execution_environment=True), details)
    write_record(tmp_path, ONE, record)
    assert read_record(tmp_path, ONE) == record
    assert record.level is Level.OFFLINE


def test_unknown_cost_is_not_zero(tmp_path: Path) -> None:
    write_record(tmp_path, ONE, EnvironmentRecord(new_metadata(ONE), EnvironmentDetails()))
    record = read_record(tmp_path, ONE)
    assert record is not None
    assert record.details is not None
    assert record.details.cost_usd is None


def test_no_metadata_is_no_record(tmp_path: Path) -> None:
    assert read_record(tmp_path, ONE) is None
    write_record(tmp_path, ONE, EnvironmentRecord(new_metadata(ONE), EnvironmentDetails()))
    (environment_folder(tmp_path, ONE) / "instance_metadata.json").unlink()
    assert read_record(tmp_path, ONE) is None


def test_record_without_details_removes_earlier_ones(tmp_path: Path) -> None:
    write_record(tmp_path, ONE, EnvironmentRecord(new_metadata(ONE), EnvironmentDetails(level=Level.OFFLINE)))
    write_record(tmp_path, ONE, EnvironmentRecord(new_metadata(ONE)))
    record = read_record(tmp_path, ONE)
    assert record is not None
    assert record.level is Level.NONE


@pytest.mark.parametrize(
    ("metadata", "details", "problem"),
    [
        ("{", None, "instance_metadata.json: not JSON: "),
        ("[1]", None, "instance_metadata.json: expected a JSON object"),
        ("[" * 100_000, None, "instance_metadata.json: not JSON: "),
        ({**PUBLISHED, "owner": 1}, None, "instance_metadata.json: owner: "),
        ({**PUBLISHED, "golden_metrics": {**METRICS, "passed": -2}}, None, "golden_metrics.passed: "),
        ({**PUBLISHED, "golden_metrics": {**METRICS, "total": 1e300}}, None, "golden_metrics.total: "),
        ({**PUBLISHED, "base_hash": "f" * 40}, None, f"it is about Acme/anvil@{'f' * 40}, not {ONE.id}"),
        ({k: v for k, v in PUBLISHED.items() if k != "repo"}, None, "instance_metadata.json: repo: missing"),
        (PUBLISHED, {"format": 1, "level": "perfect"}, "environment.json: level: "),
        (PUBLISHED, {"format": 1, "runs": [{"side": "left"}]}, "environment.json: runs[0].side: "),
        (PUBLISHED, {"format": 1, "cost_usd": "-1"}, "environment.json: cost_usd: "),
        (PUBLISHED, '{"format": 1, "duration_s": NaN}', "environment.json: duration_s: "),
        (PUBLISHED, {"format": 2}, "environment.json: format 2 is of a newer codetaste; update this one"),
    ],
)
def test_damaged_file_is_one_line(tmp_path: Path, metadata: Any, details: Any, problem: str) -> None:
    write_files(tmp_path, metadata, details)
    with pytest.raises(ConfigError) as caught:
        read_record(tmp_path, ONE)
    assert len(caught.value.problems) == 1
    line = caught.value.problems[0]
    assert line.startswith(str(environment_folder(tmp_path, ONE)))
    assert problem in line
    assert "\n" not in line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(key=st.sampled_from([*EnvironmentDetails.model_fields, "unknown"]), value=JSON)
@example(key="unknown", value=math.inf)
def test_any_value_of_any_key_is_read_or_named(
    key: str, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("record")
    write_files(root, PUBLISHED, {"format": 1, key: value})
    problems: tuple[str, ...] = ()
    try:
        record = read_record(root, ONE)
    except ConfigError as error:
        problems = error.problems
    else:
        assert record is not None
        write_record(root, ONE, record)
        assert read_record(root, ONE) == record
    assert all("environment.json: " in problem for problem in problems)


def test_levels_are_ordered() -> None:
    assert sorted(Level, reverse=True) == [
        Level.OFFLINE,
        Level.GATES_PASS,
        Level.TESTS_START,
        Level.INSTALLS,
        Level.NONE,
    ]
    assert [level for level in Level if level.is_proven] == [Level.GATES_PASS, Level.OFFLINE]
    assert f"{Level.TESTS_START}" == "tests_start"
