"""``codetaste evaluate`` and ``benchmark check`` on a tiny benchmark, with the real engine and git."""

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
from codetaste.errors import ToolMissing
from codetaste.evaluation.changed_lines import Exclusions
from codetaste.rules.engine.install import find_rule_engine

# The tiny benchmark of the flows is scored here.
from support.flows.tiny_benchmark import Bench, git

PYTHON = {"message": "m", "severity": "INFO", "languages": ["python"], "metadata": {}}
POSITIVE = [
    {"id": "new", "pattern": "fetch_new(...)", **PYTHON},
    {"id": "strict", "pattern": "def $F($A, strict): ...", **PYTHON},
]
NEGATIVE = [{"id": "old", "pattern": "fetch_old(...)", **PYTHON}]


class Scene:
    """A benchmark of one instance, and the commands given on it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bench = folder, Bench(folder)
        self.row = self.bench.add()
        self.rules("positive", POSITIVE)
        self.rules("negative", NEGATIVE)

    def rules(self, sign: str, rules: Sequence[object] | str) -> None:
        content = rules if isinstance(rules, str) else json.dumps({"rules": rules})
        self.put(f"assets/rules/{self.row.path}/rules_{sign}.yml", content)

    def put(self, name: str, content: str) -> Path:
        path = self.bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def baseline(self, **sides: tuple[int, int]) -> None:
        metrics = {
            f"{side}_metrics": {"passed": passed, "failed": failed, "total": passed + failed}
            for side, (passed, failed) in sides.items()
        }
        self.put(f"instance_images/{self.row.path}/instance_metadata.json", json.dumps(metrics))

    def evaluate(self, patch: Path | str, **more: Any) -> int:
        return evaluate(
            benchmark=str(self.bench.root),
            repos=self.bench.repos,
            instance=more.pop("instance", "tiny*"),
            patch=str(patch),
            **more,
        )

    def check(self, **more: Any) -> int:
        return check(benchmark=str(self.bench.root), repos=self.bench.repos, **more)

    def half(self, name: str = "prediction.diff") -> Path:
        """A prediction that renames the function and one call, but not the other."""
        clone = self.bench.repos / "tiny" / "alpha"
        text = git(clone, "diff", self.row.base, self.row.golden, "--", "pack/store.py", "pack/one.py")
        path = self.folder / "agent" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
        return path


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Path:
    """A cache of our own, but for the engine: taking that out of its bundle takes seconds."""
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
def scene(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return Scene(tmp_path)


Said = pytest.CaptureFixture[str]


def test_golden_scores_1_and_null_0(scene: Scene, capsys: Said) -> None:
    for patch, rate in (("golden", 1.0), ("null", 0.0)):
        assert scene.evaluate(patch, json_=True) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["ifr"], told["directory"], told["patch"]) == (rate, None, patch)
    assert sorted(path.name for path in scene.folder.iterdir()) == ["bench", "clones"]


def test_evaluate_unpinned_engine_is_reported(
    scene: Scene, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = scene.folder / "opengrep"
    engine.write_text("#!/bin/sh\necho 9.9.9\n")
    engine.chmod(0o755)
    monkeypatch.setenv("OPENGREP_BIN", str(engine))
    for command in (lambda: scene.evaluate("golden"), scene.check):
        assert command() == 1
        said = capsys.readouterr()
        assert "opengrep 9.9.9" in said.err
        assert "is not the pinned release" in said.err
        assert "IFR 1" not in said.out


def test_an_engine_that_cannot_be_run_speaks_against_no_instance(
    scene: Scene, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = scene.folder / "opengrep"
    engine.write_text('#!/bin/sh\necho 9.9.9\nrm "$0"\n')
    engine.chmod(0o755)
    monkeypatch.setenv("OPENGREP_BIN", str(engine))
    assert scene.check() == 1
    said = capsys.readouterr()
    assert "NOT SOUND" not in said.out
    assert str(engine) in said.err.splitlines()[-1]


def test_evaluate_prediction_lists_unmet_rules_and_writes_results(scene: Scene, capsys: Said) -> None:
    scene.baseline(golden=(12, 1), base=(11, 2))
    patch = scene.half()
    tests = scene.folder / "out.txt"
    tests.write_text('noise\n{"passed": 11, "failed": 1, "skipped": 0, "total": 12}\n')
    assert scene.evaluate(patch, tests=tests) == 0
    out = capsys.readouterr().out
    assert "IFR  0.667" in out
    assert "PASS yes    11 passed, 1 failed; at least 11 must pass, at most 2 may fail" in out
    assert "reductive rules that still match: 1\n  old (pack/two.py:5)\n" in out
    folder = patch.parent / "evaluation"
    assert json.loads((folder / "scores.json").read_text())["alignment"] == pytest.approx(2 / 3)
    assert (folder / "test_output.txt").read_bytes() == tests.read_bytes()
    # What is recorded there need not be said again; another patch has no part in it.
    assert scene.evaluate(patch) == 0
    assert "PASS yes" in capsys.readouterr().out
    patch.write_text("\n")
    assert scene.evaluate(patch) == 2
    assert "has the evaluation of another patch" in capsys.readouterr().err
    assert scene.evaluate(patch, out=scene.folder / "elsewhere", exclusions=Exclusions.NONE) == 0
    assert "PASS ?" in capsys.readouterr().out


def test_a_patch_without_a_score_says_why_in_a_line_and_gives_exit_code_1(scene: Scene, capsys: Said) -> None:
    bad = scene.folder / "garbage.diff"
    bad.write_text("no patch\n")
    assert scene.evaluate(bad) == 1
    out, err = capsys.readouterr()
    assert "not scored: unparsable patch: " in out
    assert not err
    with bad.open("wb") as file:
        os.truncate(file.fileno(), 300 * 10**6)
    assert scene.evaluate(bad, json_=True, out=scene.folder / "large") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["patch_bytes"], told["ifr"]) == ("too_large", 300 * 10**6, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"patch": "nofile"}, "--patch: nofile is not a file"),
        ({"instance": "tiny__alpa*"}, "did you mean"),
        ({"repos": Path("nowhere")}, "--repos: nowhere is not a folder"),
        ({"benchmark": "nowhere"}, "nowhere: no such benchmark folder"),
        ({"tests": Path("nofile")}, "nofile: the test output cannot be read"),
    ],
)
def test_evaluate_missing_input_is_one_line_error(
    scene: Scene, capsys: Said, change: dict[str, Any], said: str
) -> None:
    given = {
        "benchmark": str(scene.bench.root),
        "repos": scene.bench.repos,
        "instance": "tiny*",
        "patch": "null",
    }
    assert evaluate(**{**given, **change}) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (err.count("\n"), out) == (1, "")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("rules: [", "rules_positive.yml:1: not YAML"),
        ("rules:\n- id: x\n", "rules_positive.yml:2: rule x: message"),
    ],
)
def test_broken_rules_are_named_with_their_line(scene: Scene, capsys: Said, rules: str, said: str) -> None:
    scene.rules("positive", rules)
    assert scene.evaluate("null") == 2
    assert said in capsys.readouterr().err


def test_an_instance_whose_clone_is_missing_is_not_fetched(scene: Scene, capsys: Said) -> None:
    (scene.folder / "empty").mkdir()
    assert (
        evaluate(
            benchmark=str(scene.bench.root), repos=scene.folder / "empty", instance="tiny*", patch="null"
        )
        == 2
    )
    assert "no clone of tiny/alpha" in capsys.readouterr().err
    assert check(benchmark=str(scene.bench.root), repos=scene.folder / "empty") == 1
    assert "0 of 0 instances are sound; 1 skipped: nothing was checked" in capsys.readouterr().out


def test_check_valid_instance_reports_valid_and_unknowns(scene: Scene, capsys: Said) -> None:
    assert scene.check() == 0
    out = capsys.readouterr().out
    assert f"{scene.row.id}: sound; golden IFR 1.000, PREC " in out
    assert "note: no test baseline is recorded: PASS is unknown" in out
    assert out.endswith("1 of 1 instances are sound; 0 skipped\n")


def test_everything_that_speaks_against_an_instance_is_named(scene: Scene, capsys: Said) -> None:
    always = {"id": "always", "pattern": "sorted(...)", **PYTHON}
    never = {"id": "never", "pattern": "never(...)", **PYTHON}
    scene.rules("positive", [*POSITIVE, always, never])
    scene.rules("negative", [*NEGATIVE, {**always, "id": "stays"}, {**never, "id": "nothing"}])
    scene.baseline(golden=(2, 10), base=(12, 1))
    (scene.bench.root / f"assets/descriptions/{scene.row.path}/open_description.md").unlink()
    assert scene.check(json_=True) == 1
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


def test_an_instance_without_rules_or_with_broken_ones_is_not_sound(scene: Scene, capsys: Said) -> None:
    scene.rules("positive", "rules: []")
    scene.rules("negative", "rules: []")
    assert scene.check() == 1
    assert "NOT SOUND" in (out := capsys.readouterr().out)
    assert "no score: no rules" in out
    scene.rules("negative", "rules: [")
    assert scene.check() == 1
    assert "rules_negative.yml:1: not YAML" in capsys.readouterr().out
