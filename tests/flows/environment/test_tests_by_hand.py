"""``codetaste evaluate --tests run`` and ``benchmark check --tests``, with a real container engine."""

from __future__ import annotations

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.environment.tested_benchmark import make_tested_benchmark, make_tested_workspace
from support.flows.tiny_benchmark import Workspace, git
from support.system.dockerd import DockerEngine

RUNS = ["--baseline-runs", "2"]
INSTALL_COPY = """#!/bin/bash
cd /testbed
[ -e installed ] && return 0
mkdir -p installed/pack-1.0.dist-info && cp -r pack installed
echo '{"dir_info": {}, "url": "file:///testbed"}' >installed/pack-1.0.dist-info/direct_url.json
touch unversioned
"""
FETCH = """#!/bin/bash
python3 -c 'from urllib.request import urlopen; urlopen("http://files.invalid/")'
"""
REFUSE_PROXY = "import os; assert 'HTTP_PROXY' not in os.environ\n"
IMPORT_COPY = """sys.path.insert(0, "installed")
import pack.one, pack.two
sys.path.insert(0, ".")
"""
PYTHON = {"message": "m", "severity": "INFO", "languages": ["python"]}
RULES = {"positive": "fetch_new(...)", "negative": "fetch_old(...)"}


@pytest.fixture
def engine(docker_engine: DockerEngine, lean_image: str) -> list[str]:
    return ["--image", lean_image, "--socket", str(docker_engine.socket), "--no-registries"]


class Scenario:
    """A benchmark of one instance with scripts, and the commands applied to it."""

    def __init__(self, folder: Path, engine: list[str], *, scripts: bool = True) -> None:
        self.bench, self.row = make_tested_benchmark(folder / "made", scripts=scripts)
        self.made: Workspace = make_tested_workspace(folder / "work", self.bench, folder / "cache", "", "")
        for sign, pattern in RULES.items():
            rules = self.bench.root / f"assets/rules/{self.row.path}/rules_{sign}.yml"
            rules.parent.mkdir(parents=True, exist_ok=True)
            rules.write_text(json.dumps({"rules": [{"id": sign, "pattern": pattern, **PYTHON}]}))
        self.folder, self.engine = folder, engine
        self.options = ["--benchmark", str(self.bench.root), "--repos", str(self.bench.repos), "--json"]

    def evaluate(self, patch: Path | str) -> tuple[int, dict[str, Any]]:
        command = ["evaluate", *self.options, "--instance", "*", "--patch", str(patch), "--tests", "run"]
        done = self.made.cli(*command, *RUNS, *self.engine)
        return done.code, json.loads(done.out)

    def check(self) -> tuple[int, dict[str, Any]]:
        done = self.made.cli("benchmark", "check", *self.options, "--tests", *RUNS, *self.engine)
        return done.code, json.loads(done.out)["instances"][0]

    def write_patch(self, old: str, new: str) -> Path:
        clone = self.bench.repos / self.row.path.rsplit("/", 1)[0]
        git(clone, "checkout", "-q", "--force", self.row.base)
        module = clone / "pack/one.py"
        text = module.read_text()
        assert old in text
        module.write_text(text.replace(old, new))
        patch = self.folder / "change.diff"
        patch.write_text(git(clone, "diff") + "\n")
        git(clone, "checkout", "-q", "--force", self.row.base)
        return patch

    def image_value(self) -> dict[str, Any]:
        ends = [line for line in self._journal() if line["event"] == "ended"]
        (value,) = [line["value"] for line in ends if line["key"].startswith("image/")]
        return value

    def started_jobs(self) -> list[str]:
        return [line["key"] for line in self._journal() if line["event"] == "started"]

    def _journal(self) -> list[dict[str, Any]]:
        journal = next(self.made.folder.glob("runs/tests-*/journal.jsonl"))
        return [json.loads(line) for line in journal.read_text().splitlines()]


def test_tests_of_patches_are_measured_and_the_baseline_once(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, engine)
    code, golden = scenario.evaluate("golden")
    assert (code, golden["passed"], golden["baseline"]["runs"]) == (0, True, 4), golden
    started = scenario.started_jobs()
    assert len([key for key in started if key.startswith("tests/")]) == 5

    code, broken = scenario.evaluate(scenario.write_patch("'a'", "'b'"))
    assert (code, broken["passed"], broken["tests"]["passed"], broken["tests"]["failed"]) == (0, False, 6, 6)
    assert broken["test_run"]["reported_tests"] == 13
    # The image, the baseline and the golden patch are not run again.
    (new,) = set(scenario.started_jobs()[len(started) :])
    assert new.startswith("tests/patch-")
    scores = tmp_path / "change-evaluation/scores.json"
    assert json.loads(scores.read_text())["passed"] is False


def test_changed_scripts_are_measured_again(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, engine)
    assert scenario.evaluate("null")[1]["tests"]["total"] == 13
    script = scenario.bench.root / "instance_images" / scenario.row.path / "scripts/run_tests"
    script.write_text(script.read_text().replace("len(ends)}", "len(ends) + 7}"))
    assert scenario.evaluate("null")[1]["tests"]["total"] == 20


def test_patched_code_is_tested_where_setup_installs_a_copy_of_it(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, engine)
    scripts = scenario.bench.root / "instance_images" / scenario.row.path / "scripts"
    (scripts / "setup_shell.sh").write_text(INSTALL_COPY)
    run_tests = (scripts / "run_tests").read_text()
    assert 'sys.path.insert(0, ".")\n' in run_tests
    (scripts / "run_tests").write_text(run_tests.replace('sys.path.insert(0, ".")\n', IMPORT_COPY))

    code, broken = scenario.evaluate(scenario.write_patch("'a'", "'b'"))
    assert (code, broken["passed"], broken["tests"]["passed"], broken["tests"]["failed"]) == (0, False, 6, 6)
    # The file that git does not ignore, which such scripts leave, has nothing to do with the network.
    image = scenario.image_value()
    assert (image["copies"], image["level"], image["hosts"]) == (["pack-1.0"], "offline", [])


def test_only_setup_sees_the_proxy_where_only_setup_needs_the_network(
    tmp_path: Path, engine: list[str]
) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        entry = f"files.invalid=127.0.0.1:{server.server_port}"
        scenario = Scenario(tmp_path / "made", [*engine, "--host", entry])
        scripts = scenario.bench.root / "instance_images" / scenario.row.path / "scripts"
        (scripts / "setup_shell.sh").write_text(FETCH)
        run_tests = (scripts / "run_tests").read_text()
        (scripts / "run_tests").write_text(run_tests.replace("result =", f"{REFUSE_PROXY}result =", 1))
        code, found = scenario.evaluate("null")
        server.shutdown()
    assert (code, found["passed"], found["tests"]["total"]) == (0, True, 13)
    image = scenario.image_value()
    assert (image["hides_proxy"], image["level"], image["hosts"]) == (True, "gates_pass", [entry])


def test_patch_that_empties_a_test_is_flagged(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, engine)
    patch = scenario.write_patch("def ", "import unittest\n\nunittest.TestCase.assertEqual = print\n\n\ndef ")
    code, scores = scenario.evaluate(patch)
    assert (code, scores["passed"]) == (0, True)
    assert "patched_runner" in {flag["kind"] for flag in scores["test_flags"]}


def test_benchmark_is_checked_by_its_tests(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, engine)
    code, found = scenario.check()
    assert (code, found["sound"], found["reasons"]) == (0, True, [])
    assert (found["golden"]["passed"], found["null"]["passed"]) == (True, True)


def test_instance_without_scripts_is_not_sound(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, engine, scripts=False)
    code, found = scenario.check()
    why = "the benchmark has no scripts of the instance"
    assert (code, found["sound"]) == (1, False)
    assert found["reasons"] == [f"PASS on R∘X* is unknown: {why}", f"PASS on R is unknown: {why}"]
    code, scores = scenario.evaluate("golden")
    assert (code, scores["passed"]) == (1, None)


def test_missing_base_image_is_refused_in_one_line(tmp_path: Path, engine: list[str]) -> None:
    scenario = Scenario(tmp_path, ["--image", "codetaste/none:1", *engine[2:]])
    command = ["evaluate", *scenario.options, "--instance", "*", "--patch", "null", "--tests", "run"]
    done = scenario.made.cli(*command, *scenario.engine)
    assert done.code == 2
    (message,) = json.loads(done.out)["error"]["messages"]
    assert message.startswith("codetaste/none:1: no such image in docker; environments are made from it")


def test_tests_without_an_engine_are_refused_in_one_line(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, ["--socket", str(tmp_path / "none.sock")])
    command = ["evaluate", *scenario.options, "--instance", "*", "--patch", "null", "--tests", "run"]
    done = scenario.made.cli(*command, *scenario.engine)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "start Docker or Podman, check the engine and socket" in done.out
