from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.layout import golden_path, rules_path
from codetaste.llm.messages import Message, Request, TextBlock, ToolResult
from codetaste.rules.registration import Direction
from codetaste.rules.rule import parse_rules
from support.environment.archives import Trees, fetch
from support.environment.benchmark import make_benchmark, make_breaking_patch, make_repository
from support.environment.projects import FLAT, PROJECTS, Project
from support.environment.scripts import GO, PYTHON, RUST
from support.environment.setup_models import FEEDBACK, fails, leaks, mends, succeeds, write

LANGUAGES = sorted(PROJECTS)


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    """Trees that look like the two releases of ``flat``."""
    made = Trees(tmp_path / "base", tmp_path / "golden")
    for tree, word in zip(made, ("var", "const"), strict=True):
        (tree / "test").mkdir(parents=True)
        (tree / "index.js").write_text(
            f"function flatten (target, opts) {{\n  {word} delimiter = '.'\n  return delimiter\n}}\n"
        )
        (tree / "test/test.js").write_text("test('nothing', function () {})\n")
    (made.base / "old.js").write_text("old\n")
    return made


def test_a_project_becomes_an_instance_with_patch_and_rules(trees: Trees, tmp_path: Path) -> None:
    root, clone = tmp_path / "bench", tmp_path / "clone"
    instance = make_benchmark(root, FLAT, trees, clone)

    (listed,) = open_benchmark(root).instances
    assert (listed.owner, listed.repo, listed.language) == ("hughsk", "flat", "javascript")
    assert listed.extra["origin"] == str(clone)
    assert listed == instance
    subprocess.run(["git", "-C", clone, "checkout", "-q", instance.commit_hash], check=True)
    assert (clone / "old.js").exists()
    subprocess.run(["git", "-C", clone, "apply", "--index", golden_path(root, instance)], check=True)
    tree = subprocess.run(
        ["git", "-C", clone, "diff", "--cached", instance.golden_commit_hash], check=True, capture_output=True
    )
    assert tree.stdout == b""
    for direction in Direction:
        (rule,) = parse_rules(rules_path(root, instance, direction).read_text(), source="rules")
        assert rule.id == f"{direction.value}-pattern"


def test_a_repository_has_the_same_hashes_every_time(trees: Trees, tmp_path: Path) -> None:
    first, second = (make_repository(FLAT, trees, tmp_path / name) for name in ("one", "two"))

    assert first == second
    assert (tmp_path / "one/.gitignore").read_text() == "node_modules\n"
    assert not (tmp_path / "one/old.js").exists()


def test_a_breaking_patch_changes_one_function_of_r(trees: Trees, tmp_path: Path) -> None:
    base, _ = make_repository(FLAT, trees, tmp_path / "clone")
    subprocess.run(["git", "-C", tmp_path / "clone", "checkout", "-q", base], check=True)
    patch = make_breaking_patch(FLAT, trees)

    subprocess.run(["git", "-C", tmp_path / "clone", "apply"], input=patch, check=True)
    assert "opts) {\n  return {}\n" in (tmp_path / "clone/index.js").read_text()


def test_a_changed_release_is_not_broken_blindly(trees: Trees) -> None:
    (trees.base / "index.js").write_text("")

    with pytest.raises(ValueError, match=r"flat 4.1.1: index.js has changed"):
        make_breaking_patch(FLAT, trees)


@pytest.mark.parametrize("language", LANGUAGES)
def test_scripts_are_valid_bash(language: str, tmp_path: Path) -> None:
    PROJECTS[language].scripts.write(tmp_path)

    for name in ("setup_system.sh", "setup_shell.sh", "run_tests"):
        subprocess.run(["bash", "-n", tmp_path / name], check=True)
        assert (tmp_path / name).stat().st_mode & 0o111
    assert (tmp_path / "SUMMARY.md").read_text().startswith("# Summary\n")


def conversation(task: str, listing: str, replies: int) -> Request:
    """A conversation in which the first command has printed ``listing``."""
    messages = [Message("user", (TextBlock(task),))]
    for number in range(replies):
        messages.append(Message("assistant", (TextBlock("step"),)))
        messages.append(Message("user", (ToolResult(f"call-{number + 1}", listing),)))
    return Request("", tuple(messages))


def command(message: Message) -> str:
    (call,) = message.tool_calls
    return str(call.arguments.get("command", call.name))


def test_a_setup_agent_writes_the_scripts_of_the_project_that_it_sees() -> None:
    listing = "0123abc golden\nbenchmarker\n.git\nREADME.md\ngo.mod\n"
    commands = [command(succeeds(conversation("set up", listing, turn))) for turn in range(6)]

    assert "ls -A" in commands[0]
    assert "go version || { sudo apt-get" in commands[1]
    assert "go test -json" in commands[2]
    assert GO.summary.splitlines()[1] in commands[2]
    assert "run_tests" in commands[3]
    assert "HEAD~1" in commands[4]
    assert commands[5] == "finish"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_command_that_writes_scripts_writes_their_exact_text(language: str, tmp_path: Path) -> None:
    scripts = PROJECTS[language].scripts
    _, arguments = write(scripts.files)
    subprocess.run(["bash", "-c", arguments["command"].replace("/scripts/", f"{tmp_path}/")], check=True)

    # The folder's name occurs in no script.
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == scripts.files


def test_a_setup_agent_mends_its_scripts_after_the_feedback() -> None:
    first = command(mends(conversation("set up", "Cargo.toml", 2)))
    second = command(mends(conversation(f"The scripts {FEEDBACK} and failed.", "Cargo.toml", 2)))

    assert "cargo test --offline" not in first
    assert "cargo test --offline" in second
    assert RUST.summary.splitlines()[1] in second


def test_a_setup_agent_may_fail_after_the_feedback_too() -> None:
    for task in ("set up", FEEDBACK):
        assert "exit 3" in command(fails(conversation(task, "pom.xml", 2)))


def test_a_leaking_setup_agent_tests_a_copy_outside_of_the_testbed() -> None:
    commands = [command(leaks(conversation("set up", "setup.py", turn))) for turn in range(4)]

    assert "install --quiet pytest==8.3.5 /testbed" in commands[2]
    assert "--pyargs h11" in commands[3]
    assert PYTHON.setup_shell.splitlines()[1] in commands[3]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "language",
    [pytest.param(each, marks=[] if each in {"python", "go"} else pytest.mark.slow) for each in LANGUAGES],
)
def test_the_registries_have_both_releases_with_their_tests(language: str, tmp_path: Path) -> None:
    project = PROJECTS[language]
    trees = fetch(project, tmp_path / "fetched")

    assert trees == fetch(project, tmp_path / "fetched")
    assert make_breaking_patch(project, trees)
    assert [count_places(project, tree) for tree in trees] == [(True, False), (False, True)]
    for tree in trees:
        assert any("test" in path.as_posix().lower() for path in tree.rglob("*") if path.is_file())


def count_places(project: Project, tree: Path) -> tuple[bool, ...]:
    """Whether each of the project's patterns matches in ``tree``."""
    texts = [path.read_text(errors="replace") for path in tree.rglob("*") if path.is_file()]
    return tuple(any(re.search(pattern, text) for text in texts) for pattern in project.patterns)
