"""Exported tasks of Harbor: the golden patch gets reward 1, no work 0, and the agent sees neither of them."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from codetaste.assembly.harbor.task import HARBOR_VERSION
from codetaste.cli.app import app
from codetaste.errors import ToolMissing
from codetaste.rules.engine.install import RuleEngine, find_rule_engine
from support.assembly.harbor_trial import NOTHING, SOLVE, HarborMachine
from support.assembly.product_run import ProductRun, make_product_run
from support.cli import invoke
from support.flows.tiny_benchmark import git

PAGE = Path(__file__).parents[2] / "docs/programs.md"
EXPORT = ("benchmark", "export", "--harbor", "tasks", "--benchmark", "b")
IMAGE = ("--image", "python:3.12")
Command = Callable[..., str]


@pytest.fixture(scope="session")
def engine() -> RuleEngine:
    try:
        return anyio.run(find_rule_engine)
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def codetaste(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return partial(invoke.codetaste, capsys)


@pytest.fixture
def made(tmp_path: Path, require: Callable[..., None], codetaste: Command) -> ProductRun:
    """A run whose products are together the benchmark "b"."""
    require("git")
    run = make_product_run(tmp_path)
    run.describe(text="Give the function that loads an entry its new name.\n")
    run.discover()
    run.prove(run.bench.rows[0])
    run.merge_products(Path("b"))
    return run


@pytest.fixture
def export(made: ProductRun, codetaste: Command) -> Callable[..., Path]:
    """Export the instance; returns the folder of its task."""

    def run(*args: str) -> Path:
        codetaste(*EXPORT, "--repos", made.bench.repos, *args)
        return Path("tasks").absolute() / made.bench.rows[0].id

    return run


@pytest.fixture
def machine(
    bubblewrap: Path, engine: RuleEngine, tmp_path: Path, require: Callable[..., None]
) -> HarborMachine:
    require("/usr/bin/python3")
    return HarborMachine(bubblewrap, engine, tmp_path / "trials")


def test_task_has_the_files_of_harbor(made: ProductRun, export: Callable[..., Path]) -> None:
    (row,) = made.bench.rows
    task = export()
    files = {path.relative_to(task).as_posix() for path in task.rglob("*") if path.is_file()}
    assert files == {
        *(
            "task.toml",
            "instruction.md",
            "environment/Dockerfile",
            "solution/solve.sh",
            "solution/golden.diff",
        ),
        *("tests/Dockerfile", "tests/test.sh", "tests/verify.py", "tests/expected.json", "tests/rules.json"),
        *("tests/semgrepignore", "tests/scripts/setup_system.sh", "tests/scripts/setup_shell.sh"),
        "tests/scripts/run_tests",
    }
    settings = tomllib.loads((task / "task.toml").read_text())
    assert settings["schema_version"] == "1.4"
    assert settings["task"]["name"] == f"codetaste/{row.id}"
    assert settings["verifier"]["environment_mode"] == "separate"
    image = f"FROM localhost/benchmark/{row.id}__runtime\n"
    assert image in (task / "environment/Dockerfile").read_text()
    assert image in (task / "tests/Dockerfile").read_text()
    expected = json.loads((task / "tests/expected.json").read_text())
    assert (expected["tests"]["min_passed"], expected["tests"]["max_failed"]) == (12, 0)
    assert (len(expected["additive"]), len(expected["reductive"])) == (3, 4)
    ast.parse((task / "tests/verify.py").read_text(), feature_version=(3, 9))
    assert all((task / name).stat().st_mode & 0o111 for name in ("tests/test.sh", "tests/scripts/run_tests"))
    assert (
        "FROM registry.example.org/x/tiny__"
        in (export("--repository", "registry.example.org/x", "--replace") / "tests/Dockerfile").read_text()
    )


def test_agent_sees_nothing_of_the_golden_state_and_of_the_rules(
    made: ProductRun, export: Callable[..., Path], tmp_path: Path
) -> None:
    (row,) = made.bench.rows
    task = export(*IMAGE)
    with tarfile.open(task / "environment/testbed.tar.gz") as archive:
        archive.extractall(tmp_path / "seen", filter="data")
    shutil.copy(task / "instruction.md", tmp_path / "seen")
    shutil.copy(task / "environment/Dockerfile", tmp_path / "seen")
    words = [row.golden, row.golden[:8], "fetch_new", "calls-old", "calls-new", "opengrep", "min_passed"]
    for path in (tmp_path / "seen").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [word for word in words if word.encode() in content], path
    testbed = tmp_path / "seen/testbed"
    assert git(testbed, "rev-list", "--count", "--all") == "1"
    blobs = git(testbed, "cat-file", "--batch-all-objects", "--batch-check")
    changed = git(made.bench.repos / "tiny" / row.repo, "rev-parse", f"{row.golden}:pack/store.py")
    assert changed not in blobs


def test_golden_patch_gets_reward_1_and_no_work_0(
    export: Callable[..., Path], machine: HarborMachine
) -> None:
    task = export(*IMAGE)
    golden = machine.run(task, SOLVE)
    assert golden.rewards == {
        "reward": 1.0,
        "applies": 1,
        "ifr": 1.0,
        "pass": 1,
        "tests_passed": 12,
        "tests_failed": 0,
    }, golden.log
    null = machine.run(task, NOTHING)
    assert null.rewards is not None
    assert (null.rewards["reward"], null.rewards["ifr"], null.rewards["pass"]) == (0.0, 0.0, 1), null.log
    assert len(null.details["unmet"]) == 7


def test_rules_alone_can_be_scored(export: Callable[..., Path], machine: HarborMachine) -> None:
    task = export(*IMAGE, "--rules-only")
    assert not (task / "tests/scripts").exists()
    half = machine.run(
        task, "sed -i 's/class Store(object)/class Store/' pack/store.py && git commit -qam half"
    )
    assert half.rewards == {"reward": pytest.approx(1 / 7), "applies": 1, "ifr": pytest.approx(1 / 7)}


@pytest.mark.parametrize(
    ("act", "passed"),
    [
        ("sed -i \"s/{'key': key}/{}/\" pack/store.py", 0),
        ("rm -r tests", 0),
        ("sed -i 's/^class/import os; os._exit(0)\\nclass/' tests/test_pack.py", 0),
    ],
)
def test_patch_that_breaks_the_tests_gets_reward_0(
    export: Callable[..., Path], machine: HarborMachine, act: str, passed: int
) -> None:
    trial = machine.run(export(*IMAGE), f"{SOLVE} && {act}")
    assert trial.rewards is not None, trial.log
    assert (trial.rewards["reward"], trial.rewards["ifr"], trial.rewards["pass"]) == (0.0, 1.0, 0)
    assert trial.rewards["tests_passed"] == passed


@pytest.mark.parametrize("move", ["", " && git mv pack/store.py pack/moved.py"])
def test_file_that_is_made_unparsable_does_not_count_as_cleaned(
    export: Callable[..., Path], machine: HarborMachine, move: str
) -> None:
    task = export(*IMAGE, "--rules-only")
    trial = machine.run(task, f"echo 'def ((' >> pack/store.py{move}")
    assert trial.rewards is not None, trial.log
    assert trial.rewards["ifr"] == 0.0
    assert {"defines-old", "object-base"} <= set(trial.details["unmet"])


def test_submission_that_cannot_be_read_gives_no_reward(
    export: Callable[..., Path], machine: HarborMachine
) -> None:
    task = export(*IMAGE, "--rules-only")
    trial = machine.run(task, NOTHING, collect=False)
    assert (trial.code, trial.rewards) == (1, None)
    assert "no reward: there is no submission" in trial.log
    trial = machine.run(task, "echo nonsense > /logs/artifacts/submission.diff", collect=False)
    assert trial.rewards == {"reward": 0.0, "applies": 0}


HOSTILE = """
import os, subprocess
def try_to(what):
    try:
        what()
    except OSError:
        pass
try_to(lambda: open("/tests/rules.json").read() and open("/tmp/read", "w"))
try_to(lambda: open("/logs/verifier/reward.json", "w").write('{"reward": 1}'))
try_to(lambda: os.setuid(0) or open("/tmp/root", "w"))
subprocess.Popen(["setsid", "sh", "-c", "sleep 2; echo 1 > /logs/verifier/reward.json"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tests as another user")
def test_tests_of_the_agent_have_no_rights_of_the_verifier(
    export: Callable[..., Path], machine: HarborMachine
) -> None:
    task = export(*IMAGE)
    hostile = f"cat > pack/__init__.py <<'EOF'\n{HOSTILE}\nEOF"
    as_root = HarborMachine(machine.bubblewrap, machine.engine, machine.scratch, as_root=True)
    report = "echo 'import os; print(os.path.exists(\"/tmp/read\"), os.getuid())' >> pack/one.py"
    trial = as_root.run(task, f"{hostile}\n{report}")
    assert trial.rewards is not None, trial.log
    assert (trial.rewards["reward"], trial.rewards["pass"]) == (0.0, 1), trial.log
    assert "False 1000" in trial.log


def test_repeated_export_changes_nothing_and_another_task_is_a_conflict(
    made: ProductRun, codetaste: Command, export: Callable[..., Path]
) -> None:
    task = export()
    again = json.loads(codetaste(*EXPORT, "--repos", made.bench.repos, "--json"))
    assert [each["state"] for each in again["tasks"]] == ["unchanged"]
    assert set(again) | set(again["tasks"][0]) <= set(re.findall(r"`([a-z_0-9]+)`", PAGE.read_text()))
    (task / "instruction.md").write_text("Mine.\n")
    (task / "more").write_text("")
    (task.parent / f".{task.name}.999999999-00000000").mkdir()  # of a killed process
    codetaste(*EXPORT, "--repos", made.bench.repos, code=1)
    assert (task / "instruction.md").read_text() == "Mine.\n"
    text = codetaste(*EXPORT, "--repos", made.bench.repos, "--replace")
    assert "replaced: tasks/" in text
    assert "instruction.md: differs from the task's" in text
    assert not (task / "more").exists()
    assert not list(Path("tasks").glob(".*"))


def test_what_lacks_something_is_left_out(
    made: ProductRun, codetaste: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = made.bench.rows
    repos = ("--repos", str(made.bench.repos))

    def reason(*args: str) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([*EXPORT, *repos, *args], exit_on_error=False)
        assert ended.value.code == 1
        return capsys.readouterr().out.splitlines()[0].removeprefix(f"{row.id}: left out: ")

    (Path("b/instance_images") / row.path / "instance_metadata.json").unlink()
    assert reason() == "no test results of R and R∘X* are recorded; --rules-only needs none"
    shutil.rmtree(Path("b/instance_images"))
    assert reason().startswith("it has no test scripts (setup_system.sh, setup_shell.sh, run_tests)")
    text = codetaste(*EXPORT, *repos, "--rules-only")
    assert text.startswith(f"{row.id}: written: 7 rules, no tests; from localhost/benchmark/")
    (Path("b/assets/descriptions") / row.path / "open_description.md").unlink()
    assert "the open description of" in reason("--rules-only", "--track", "open", "--replace")
    shutil.rmtree(Path("b/assets/rules"))
    assert reason("--rules-only", "--replace") == "it has no rules"
    (made.bench.repos / "tiny").rename(made.bench.repos / "gone")
    assert reason("--rules-only").startswith("no clone of tiny/alpha in")
    assert Path("tasks", row.id).is_dir()


def test_unusable_options_get_one_line(made: ProductRun, codetaste: Command) -> None:
    Path("file").write_text("")
    for args, message in {
        "--harbor file --benchmark b": "--harbor: file is not a folder",
        "--harbor t --benchmark none": "none: no such benchmark folder",
        "--harbor t --benchmark b --instance x": "no instance of b matches 'x'",
        "--harbor t --benchmark b --image a --repository b": "--image and --repository exclude each other",
    }.items():
        stderr = codetaste("benchmark", "export", *shlex.split(args), code=2)
        assert message in stderr
        assert stderr.count("\n") <= 2
    assert not Path("t").exists()


@pytest.mark.heavy
def test_proof_with_the_engine_as_a_container_has_it(
    export: Callable[..., Path], machine: HarborMachine
) -> None:
    task = export(*IMAGE)
    stock = HarborMachine(machine.bubblewrap, machine.engine, machine.scratch, stock=True)
    rewards = [stock.run(task, act).rewards for act in (SOLVE, NOTHING)]
    assert [each["reward"] for each in rewards if each] == [1.0, 0.0]


CHECK = """
import sys, typing
if not hasattr(typing, "override"):  # Harbor asks for Python 3.12, its models need no more of it than this
    typing.override = lambda function: function
sys.path.insert(0, "unpacked")
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
task = Task(sys.argv[1])
verifier = resolve_verifier_environment_definition(task.config, task.paths)
unknown = set(task.config.model_dump()["verifier"]) ^ set(type(task.config.verifier).model_fields)
print(task.name, verifier.directory.name, verifier.bundled_tests, verifier.config.network_mode.value, unknown)
"""


@pytest.mark.slow
def test_models_of_harbor_accept_the_task(
    made: ProductRun, export: Callable[..., Path], tmp_path: Path
) -> None:
    (row,) = made.bench.rows
    task = export()
    python = tmp_path / "venv/bin/python"
    pip = [str(python), "-m", "pip", "-q", "--disable-pip-version-check"]
    download = [*pip, "download", "--no-deps", "--only-binary=:all:", "--python-version=3.12", "-d", "wheels"]
    for command in (
        [sys.executable, "-m", "venv", "venv"],
        [*pip, "install", "pydantic==2.14.3", "toml==0.10.2", "pathspec==1.1.1"],
        [*download, f"harbor=={HARBOR_VERSION}"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").glob("harbor-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    command = [str(python), "-c", CHECK, str(task)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == f"codetaste/{row.id} tests True public set()\n", done.stderr
