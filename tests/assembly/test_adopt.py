"""``codetaste benchmark adopt``: products of a run become a benchmark, and nothing is lost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.check import read_inventory
from codetaste.cli.app import app
from support.assembly.product_run import OTHER_OLD, ProductRun, make_product_run, write
from support.cli import invoke
from support.flows.tiny_benchmark import Row, git

PAGE = Path(__file__).parents[2] / "docs/programs.md"
Command = Callable[..., str]


@pytest.fixture
def codetaste(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return partial(invoke.codetaste, capsys)


@pytest.fixture
def made(tmp_path: Path, require: Callable[..., None]) -> ProductRun:
    """A run with all products of one instance."""
    require("git")
    run = make_product_run(tmp_path)
    run.describe()
    run.discover(ignore="docs/\n")
    run.prove(run.bench.rows[0])
    return run


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_products_become_a_complete_benchmark_and_again_change_nothing(
    made: ProductRun, codetaste: Command
) -> None:
    (row,) = made.bench.rows
    data = json.loads(codetaste("benchmark", "adopt", "r", "--into", "b", "--json"))
    (adoption,) = data["adoptions"]
    assert (adoption["state"], adoption["notes"]) == ("adopted", [])
    assert adoption["parts"] == {
        "descriptions": "describe",
        "rules": "discover/m",
        "golden patch": "the two commits",
        "environment": "environment",
    }
    root = Path("b")
    inventory = read_inventory(root)
    assert (inventory.instances, inventory.missing, inventory.missing_for_tests) == (1, (), ())
    (instance,) = open_benchmark(root).instances
    assert open_benchmark(root).description(instance) == "Rename fetch_old.\n"
    patch = (root / "assets/diffs" / row.path / "golden.diff").read_bytes()
    assert patch.decode().count("diff --git") == 3
    assert b"fetch_new" in patch
    run_tests = root / "instance_images" / row.path / "scripts/run_tests"
    assert run_tests.stat().st_mode & 0o111
    assert (root / "assets/default.semgrepignore").read_text() == "docs/\n"
    before = contents(root)
    text = codetaste("benchmark", "adopt", made.folder, "--into", "b")
    assert f"{row.id}: there already" in text
    assert "0 adopted, 1 there already, 0 left out; b has 1 instance" in text
    assert contents(root) == before
    assert set(data) | set(adoption) <= set(re.findall(r"`([a-z_0-9]+)`", PAGE.read_text()))


def test_a_file_that_differs_keeps_the_instance_out_until_it_is_replaced(
    made: ProductRun, codetaste: Command
) -> None:
    (row,) = made.bench.rows
    codetaste("benchmark", "adopt", "r", "--into", "b")
    mine = write(Path("b/assets/descriptions") / row.path / "description.md", "Mine.\n")
    extra = write(Path("b/instance_images") / row.path / "scripts/parse.py", "pass\n")
    (Path("b/assets/rules") / row.path / "rules_positive.yml").unlink()
    before = contents(Path("b"))
    codetaste("benchmark", "adopt", "r", "--into", "b", code=1)
    assert contents(Path("b")) == before
    data = json.loads(codetaste("benchmark", "adopt", "r", "--into", "b", "--replace", "--json"))
    (adoption,) = data["adoptions"]
    first, second = adoption["conflicts"]
    assert first.startswith(f"{mine}: differs from runs/r/describe/assets")
    assert second == f"{extra}: the run's scripts have no such file"
    assert len(adoption["written"]) == 2
    assert mine.read_text() == "Rename fetch_old.\n"
    assert not extra.exists()


def test_conflicts_are_printed_a_line_each(made: ProductRun, codetaste: Command, capsys: Any) -> None:
    codetaste("benchmark", "adopt", "r", "--into", "b")
    made.describe(text="Another.\n", category="other")
    write(Path("b/assets/default.semgrepignore"), "mine/\n")
    codetaste("benchmark", "adopt", "r", "--into", "b", "--replace", "--instance", "tiny__*")
    assert Path("b/instances.csv").read_text().count("other") == 1
    made.describe(text="A third.\n")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        app(["benchmark", "adopt", "r", "--into", "b"], exit_on_error=False)
    assert ended.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("left out: the benchmark has other files of it; --replace takes the run's")
    assert [line.partition(":")[0] for line in lines[1:4]] == ["  conflict"] * 3
    assert "differs: category" in lines[1]


def test_instances_are_added_to_those_that_are_there(tmp_path: Path, codetaste: Command) -> None:
    run = make_product_run(tmp_path, "alpha", "beta")
    alpha, beta = run.bench.rows
    run.describe(alpha)
    codetaste("benchmark", "adopt", "r", "--into", "b")
    run.describe(alpha, beta)
    text = codetaste("benchmark", "adopt", "r", "--into", "b")
    assert f"{beta.id}: adopted, 3 files" in text
    assert "note: without additive rules, reductive rules, environment" in text
    assert [each.repo for each in open_benchmark(Path("b")).instances] == ["alpha", "beta"]


def test_what_cannot_be_adopted_is_left_out_with_its_reason(tmp_path: Path, codetaste: Command) -> None:
    run = make_product_run(tmp_path, "alpha", "beta", "gamma")
    alpha, beta, gamma = run.bench.rows
    run.describe(alpha)
    run.prove(alpha, proven=False)
    run.prove(beta)
    run.bench.rows.remove(gamma)
    run.bench.write()
    run.prove(gamma)
    text = codetaste("benchmark", "adopt", "r", "--into", "b")
    assert "note: environment left out: too few tests" in text
    assert f"{beta.id}: left out: it has no instructed description" in text
    assert f"{gamma.path}: left out: no table has a row for its environment" in text
    assert "1 adopted, 0 there already, 2 left out; b has 1 instance" in text
    assert not Path("b/instance_images").exists()


def test_environment_alone_extends_the_benchmark_that_the_run_read(
    made: ProductRun, codetaste: Command
) -> None:
    codetaste("benchmark", "adopt", "r", "--into", "b")
    environment = Path("b/instance_images")
    before = contents(environment)
    for name in before:
        (environment / name).unlink()
    for path in sorted(made.folder.glob("*/**/instances.csv")):
        path.unlink()
    text = codetaste("benchmark", "adopt", "r", "--into", "b")
    assert "4 files" in text
    assert contents(environment) == before


def test_rules_of_several_models_must_be_chosen(made: ProductRun, codetaste: Command) -> None:
    made.discover("n", OTHER_OLD)
    stderr = codetaste("benchmark", "adopt", "r", "--into", "b", code=2)
    assert "several models have rules of" in stderr
    assert "--rules-of: m, n" in stderr
    assert "the run has rules of m, n, not 'o'" in codetaste(
        "benchmark", "adopt", "r", "--into", "b", "--rules-of", "o", code=2
    )
    codetaste("benchmark", "adopt", "r", "--into", "b", "--rules-of", "n")
    (row,) = made.bench.rows
    assert "all-old" in (Path("b/assets/rules") / row.path / "rules_negative.yml").read_text()


def test_only_sound_instances_on_request(made: ProductRun, codetaste: Command) -> None:
    codetaste("benchmark", "adopt", "r", "--into", "b", "--only-sound")
    (row,) = made.bench.rows
    rules = made.folder / "discover/m/assets/rules" / row.path / "rules_positive.yml"
    rules.write_text(rules.read_text().replace("fetch_new", "fetch_none"))
    data = json.loads(codetaste("benchmark", "adopt", "r", "--into", "b", "--replace", "--json"))
    assert data["adoptions"][0]["state"] == "adopted"
    codetaste("benchmark", "adopt", "r", "--into", "c", "--only-sound", code=1)
    assert not Path("c").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none"], "none: no run there (runs here: r)"),
        (["r"], "runs/r: the run has made nothing that a benchmark can adopt"),
        (["r", "--repos", "none"], "--repos: none is not a folder"),
    ],
)
def test_unusable_run_gets_one_line(
    tmp_path: Path, codetaste: Command, args: list[str], message: str
) -> None:
    make_product_run(tmp_path)
    stderr = codetaste("benchmark", "adopt", *args, code=2)
    assert stderr == f"codetaste: {message}\n"


def test_bad_target_and_bad_files_get_one_line(made: ProductRun, codetaste: Command) -> None:
    write(Path("file"), "")
    assert "--into: file is not a folder" in codetaste("benchmark", "adopt", "r", "--into", "file", code=2)
    assert "has no instance that matches 'x*'" in codetaste(
        "benchmark", "adopt", "r", "--instance", "x*", code=2
    )
    (row,) = made.bench.rows
    link = made.folder / "environment/instance_images" / row.path / "scripts/link"
    link.symlink_to("/etc/passwd")
    assert "scripts/link: not a regular file; a benchmark may have no other" in codetaste(
        "benchmark", "adopt", "r", code=2
    )
    link.unlink()
    write(Path("b/instances.csv"), "nonsense\n")
    assert "the column 'owner' is missing" in codetaste("benchmark", "adopt", "r", "--into", "b", code=2)
    assert not Path("b/assets").exists()


def test_clone_that_is_gone_leaves_out_the_golden_patch_alone(made: ProductRun, codetaste: Command) -> None:
    (row,) = made.bench.rows
    git(made.bench.repos / "tiny" / row.repo, "update-ref", "-d", "HEAD")
    (made.bench.repos / "tiny" / row.repo).rename(made.bench.repos / "tiny/elsewhere")
    text = codetaste("benchmark", "adopt", "r", "--into", "b")
    assert "note: no golden patch: no clone of tiny/alpha in" in text
    assert "note: without golden patch" in text


def test_decisions_about_descriptions_are_honoured_and_copied(made: ProductRun, codetaste: Command) -> None:
    (row,) = made.bench.rows
    adopt = ("benchmark", "adopt", "r", "--into", "b")
    text = (made.folder / "describe/assets/descriptions" / row.path / "description.md").read_text()
    decide(made.folder / "describe", row, "rejected", text, comment="it names the new function")
    codetaste(*adopt, code=1)
    assert not Path("b").exists()
    decide(made.folder / "describe", row, "accepted", text)
    codetaste(*adopt)
    assert (Path("b/reviews.jsonl")).read_text().count("\n") == 2
    made.describe(text="Another.\n")
    out = codetaste(*adopt, "--replace")
    assert "note: descriptions stay: Ada accepted the instructed one" in out
    assert open_benchmark(Path("b")).description(open_benchmark(Path("b")).instances[0]) == text
    assert (Path("b/reviews.jsonl")).read_text().count("\n") == 2


def decide(root: Path, row: Row, verdict: str, text: str, comment: str = "") -> None:
    """Write a decision about an instructed description, as a review does."""
    found = root / "reviews.jsonl"
    number = found.read_text().count("\n") if found.exists() else 0
    digest = hashlib.sha256(text.strip().encode()).hexdigest()
    line = {"instance": row.id, "track": "instructed", "verdict": verdict, "digest": digest, "by": "Ada"}
    line |= {"at": f"2026-01-01T00:00:0{number}", "comment": comment}
    with found.open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.mark.heavy
def test_killed_adoption_is_completed_by_the_next(tmp_path: Path, require: Callable[..., None]) -> None:
    require("git")
    run = make_product_run(tmp_path, *(f"repo{number}" for number in range(8)))
    run.describe()
    run.discover()
    for row in run.bench.rows:
        run.prove(row)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "codetaste", "benchmark", "adopt", "r", "--into"]
    subprocess.run([*command, "whole"], cwd=tmp_path, env=env, check=True, capture_output=True)
    for files in (1, 9, 25, 60, 80):
        process = subprocess.Popen([*command, "b"], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
        while process.poll() is None and len(written(tmp_path / "b")) < files:
            time.sleep(0.001)
        process.kill()
        process.wait()
        for name in written(tmp_path / "b"):
            assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    subprocess.run([*command, "b"], cwd=tmp_path, env=env, check=True, capture_output=True)
    assert written(tmp_path / "b") == written(tmp_path / "whole")
    assert len(open_benchmark(tmp_path / "b").instances) == 8


def written(root: Path) -> set[str]:
    """Return the files of a benchmark, without the temporary ones of a killed process."""
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {str(path) for path in files if not path.name.startswith(".")}
