"""``codetaste evaluate`` and ``benchmark check`` on a tiny benchmark, with the real rule engine and git."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.cli.commands.benchmark.check import check
from codetaste.cli.commands.evaluate import evaluate
from codetaste.cli.commands.rules import check as check_rules
from codetaste.errors import ToolMissing
from codetaste.evaluation.changed_lines import Exclusions
from codetaste.rules.engine.install import find_rule_engine

# These commands score the tiny benchmark of the flows.
from support.flows.tiny_benchmark import Bench, git

PYTHON = {"message": "m", "severity": "INFO", "languages": ["python"], "metadata": {}}
POSITIVE = [
    {"id": "new", "pattern": "fetch_new(...)", **PYTHON},
    {"id": "strict", "pattern": "def $F($A, strict): ...", **PYTHON},
]
NEGATIVE = [{"id": "old", "pattern": "fetch_old(...)", **PYTHON}]


class Scenario:
    """A benchmark of one instance, and the commands applied to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bench = folder, Bench(folder)
        self.row = self.bench.add()
        self.write_rules("positive", POSITIVE)
        self.write_rules("negative", NEGATIVE)

    def write_rules(self, sign: str, rules: Sequence[object] | str) -> None:
        content = rules if isinstance(rules, str) else json.dumps({"rules": rules})
        self.write_file(f"assets/rules/{self.row.path}/rules_{sign}.yml", content)

    def write_file(self, name: str, content: str) -> Path:
        path = self.bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def write_baseline(self, **sides: tuple[int, int]) -> None:
        metrics = {
            f"{side}_metrics": {"passed": passed, "failed": failed, "total": passed + failed}
            for side, (passed, failed) in sides.items()
        }
        self.write_file(f"instance_images/{self.row.path}/instance_metadata.json", json.dumps(metrics))

    def evaluate(self, patch: Path | str, **options: Any) -> int:
        return evaluate(
            benchmark=str(self.bench.root),
            repos=self.bench.repos,
            instance=options.pop("instance", "tiny*"),
            patch=str(patch),
            **options,
        )

    def check(self, **options: Any) -> int:
        return check(benchmark=str(self.bench.root), repos=self.bench.repos, **options)

    def write_half_prediction(self, name: str = "prediction.diff") -> Path:
        """Write a prediction that renames the function and one call, but not the other."""
        clone = self.bench.repos / "tiny" / "alpha"
        text = git(clone, "diff", self.row.base, self.row.golden, "--", "pack/store.py", "pack/one.py")
        path = self.folder / "agent" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
        return path


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Path:
    """A cache of these tests' own; it shares the unpacked rule engine, as unpacking takes seconds."""
    require("git")
    try:
        engine = anyio.run(find_rule_engine)
    except ToolMissing as error:
        require("opengrep", ok=False, reason=str(error))
        raise
    folder = tmp_path_factory.mktemp("cache")
    (folder / "codetaste").mkdir()
    if engine.is_core:
        (folder / "codetaste" / "opengrep").symlink_to(engine.program.parents[1])
    return folder


@pytest.fixture
def scenario(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return Scenario(tmp_path)


Capture = pytest.CaptureFixture[str]


def test_golden_scores_1_and_null_0(scenario: Scenario, capsys: Capture) -> None:
    for patch, rate in (("golden", 1.0), ("null", 0.0)):
        assert scenario.evaluate(patch, json_=True) == 0
        scores = json.loads(capsys.readouterr().out)
        assert (scores["ifr"], scores["directory"], scores["patch"]) == (rate, None, patch)
    assert sorted(path.name for path in scenario.folder.iterdir()) == ["bench", "clones"]


def test_unpinned_engine_is_reported(
    scenario: Scenario, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = scenario.folder / "opengrep"
    engine.write_text("#!/bin/sh\necho 9.9.9\n")
    engine.chmod(0o755)
    monkeypatch.setenv("OPENGREP_BIN", str(engine))
    for command in (lambda: scenario.evaluate("golden"), scenario.check):
        assert command() == 1
        output = capsys.readouterr()
        assert "opengrep 9.9.9" in output.err
        assert "is not the pinned release" in output.err
        assert "IFR 1" not in output.out


def test_broken_engine_does_not_make_instances_unsound(
    scenario: Scenario, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = scenario.folder / "opengrep"
    engine.write_text('#!/bin/sh\necho 9.9.9\nrm "$0"\n')
    engine.chmod(0o755)
    monkeypatch.setenv("OPENGREP_BIN", str(engine))
    assert scenario.check() == 1
    output = capsys.readouterr()
    assert "NOT SOUND" not in output.out
    assert str(engine) in output.err.splitlines()[-1]


def test_evaluate_lists_unmet_rules_and_writes_results(scenario: Scenario, capsys: Capture) -> None:
    scenario.write_baseline(golden=(12, 1), base=(11, 2))
    patch = scenario.write_half_prediction()
    tests = scenario.folder / "out.txt"
    tests.write_text('noise\n{"passed": 11, "failed": 1, "skipped": 0, "total": 12}\n')
    assert scenario.evaluate(patch, tests=tests) == 0
    out = capsys.readouterr().out
    assert "IFR  0.667" in out
    assert "PASS yes    11 passed, 1 failed; at least 11 must pass, at most 2 may fail" in out
    assert "reductive rules that still match: 1\n  old (pack/two.py:5)\n" in out
    folder = patch.parent / "evaluation"
    assert json.loads((folder / "scores.json").read_text())["alignment"] == pytest.approx(2 / 3)
    assert (folder / "test_output.txt").read_bytes() == tests.read_bytes()
    # The recorded test output is used again, but not for another patch.
    assert scenario.evaluate(patch) == 0
    assert "PASS yes" in capsys.readouterr().out
    patch.write_text("\n")
    assert scenario.evaluate(patch) == 2
    assert "has the evaluation of another patch" in capsys.readouterr().err
    assert scenario.evaluate(patch, out=scenario.folder / "elsewhere", exclusions=Exclusions.NONE) == 0
    assert "PASS ?" in capsys.readouterr().out


def test_unscored_patch_is_explained_in_one_line_with_exit_code_1(
    scenario: Scenario, capsys: Capture
) -> None:
    bad = scenario.folder / "garbage.diff"
    bad.write_text("no patch\n")
    assert scenario.evaluate(bad) == 1
    out, err = capsys.readouterr()
    assert "not scored: unparsable patch: " in out
    assert not err
    with bad.open("wb") as file:
        os.truncate(file.fileno(), 300 * 10**6)
    assert scenario.evaluate(bad, json_=True, out=scenario.folder / "large") == 1
    scores = json.loads(capsys.readouterr().out)
    assert (scores["status"], scores["patch_bytes"], scores["ifr"]) == ("too_large", 300 * 10**6, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"patch": "nofile"}, "--patch: nofile is not a file"),
        ({"instance": "tiny__alpa*"}, "did you mean"),
        ({"repos": Path("nowhere")}, "--repos: nowhere is not a folder"),
        ({"benchmark": "nowhere"}, "nowhere: no such benchmark folder"),
        ({"tests": Path("nofile")}, "nofile: the test output cannot be read"),
    ],
)
def test_missing_input_is_a_one_line_error(
    scenario: Scenario, capsys: Capture, change: dict[str, Any], message: str
) -> None:
    arguments = {
        "benchmark": str(scenario.bench.root),
        "repos": scenario.bench.repos,
        "instance": "tiny*",
        "patch": "null",
    }
    assert evaluate(**{**arguments, **change}) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (err.count("\n"), out) == (1, "")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("rules: [", "rules_positive.yml:1: not YAML"),
        ("rules:\n- id: x\n", "rules_positive.yml:2: rule x: message"),
    ],
)
def test_invalid_rules_are_reported_with_their_line(
    scenario: Scenario, capsys: Capture, rules: str, message: str
) -> None:
    scenario.write_rules("positive", rules)
    assert scenario.evaluate("null") == 2
    assert message in capsys.readouterr().err


def test_an_instance_whose_clone_is_missing_is_not_fetched(scenario: Scenario, capsys: Capture) -> None:
    (scenario.folder / "empty").mkdir()
    assert (
        evaluate(
            benchmark=str(scenario.bench.root),
            repos=scenario.folder / "empty",
            instance="tiny*",
            patch="null",
        )
        == 2
    )
    assert "no clone of tiny/alpha" in capsys.readouterr().err
    assert check(benchmark=str(scenario.bench.root), repos=scenario.folder / "empty") == 1
    assert "0 of 0 instances are sound; 1 skipped: nothing was checked" in capsys.readouterr().out


def test_check_reports_a_sound_instance_and_what_is_unknown(scenario: Scenario, capsys: Capture) -> None:
    assert scenario.check() == 0
    out = capsys.readouterr().out
    assert f"{scenario.row.id}: sound; golden IFR 1.000, PREC " in out
    assert "note: no test baseline is recorded: PASS is unknown" in out
    assert out.endswith("1 of 1 instance is sound; 0 skipped\n")


def test_rules_check_counts_rules_and_instances(scenario: Scenario, capsys: Capture) -> None:
    scenario.write_rules("positive", [{"id": "new", "pattern": "fetch_new(...)", **PYTHON}])
    (scenario.bench.root / f"assets/rules/{scenario.row.path}/rules_negative.yml").unlink()
    check_rules(benchmark=scenario.bench.root, repos=scenario.bench.repos)
    assert capsys.readouterr().out.endswith(" of 1 rule agrees in 1 instance; 0 skipped\n")


def test_check_lists_every_reason_against_an_instance(scenario: Scenario, capsys: Capture) -> None:
    always = {"id": "always", "pattern": "sorted(...)", **PYTHON}
    never = {"id": "never", "pattern": "never(...)", **PYTHON}
    scenario.write_rules("positive", [*POSITIVE, always, never])
    scenario.write_rules("negative", [*NEGATIVE, {**always, "id": "stays"}, {**never, "id": "nothing"}])
    scenario.write_baseline(golden=(2, 10), base=(12, 1))
    (scenario.bench.root / f"assets/descriptions/{scenario.row.path}/open_description.md").unlink()
    assert scenario.check(json_=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["sound"], document["checked"]) == (False, 1)
    description, tests, golden, null = document["instances"][0]["reasons"]
    assert "open_description.md" in description
    assert tests.startswith("the tests on R∘X* are not valid: 2 of 12 passed")
    assert golden == (
        "the golden patch has IFR 0.714 and not 1: additive rules match nothing: 1 (never); "
        "reductive rules still match: 1 (stays)"
    )
    assert null == (
        "an empty patch has IFR 0.286 and not 0: additive rules match R: 1 (always); "
        "reductive rules match nothing in R: 1 (nothing)"
    )


def test_check_reports_a_crash_as_published(scenario: Scenario, capsys: Capture) -> None:
    crash = {"passed": 0, "failed": -1, "skipped": 0, "total": 0, "error": "no summary line"}
    metadata = {"golden_metrics": crash, "base_metrics": {"passed": "12", "failed": "1", "total": "13"}}
    scenario.write_file(f"instance_images/{scenario.row.path}/instance_metadata.json", json.dumps(metadata))
    assert scenario.check(json_=True) == 1
    [reason] = json.loads(capsys.readouterr().out)["instances"][0]["reasons"]
    assert reason.startswith("the tests on R∘X* are not valid: 0 of 0 passed (no summary line)")


def test_instance_without_valid_rules_is_not_sound(scenario: Scenario, capsys: Capture) -> None:
    scenario.write_rules("positive", "rules: []")
    scenario.write_rules("negative", "rules: []")
    assert scenario.check() == 1
    assert "NOT SOUND" in (out := capsys.readouterr().out)
    assert "no score: no rules" in out
    scenario.write_rules("negative", "rules: [")
    assert scenario.check() == 1
    assert "rules_negative.yml:1: not YAML" in capsys.readouterr().out
