"""Every command of the pages works unchanged, in the page's order, in a fresh checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli.documented_commands import Command, read_commands, split_command
from support.system.dockerd import DockerEngine

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "docs").rglob("*.md")),
]
WITH_COMMANDS = [page for page in PAGES if read_commands(CHECKOUT / page)]
BUILDS = "docs/guide/swe-refactor-strategies.md"
"""Its commands compile and test a Java project many times."""
FIRST, SECOND = read_commands(CHECKOUT / "README.md")[:2]

SUBSTITUTES = {
    # tests/packaging/ runs all of it; here only its last part, which discovers rules
    FIRST.text: split_command(FIRST.text)[-1],
    # .ci/run runs it; a test cannot run all tests
    SECOND.text: ".venv/bin/pytest --collect-only -q tests/console/test_command.py",
    # it costs money
    ".venv/bin/codetaste run examples/quickstart-live.toml": (
        ".venv/bin/codetaste run examples/quickstart-live.toml --dry-run"
    ),
    # tests beside this one may take what a trial needs, and then it ends badly; tests/flows/ looks at its end
    ".venv/bin/codetaste run examples/compare.toml": (
        ".venv/bin/codetaste run examples/compare.toml --exit-zero"
    ),
    # they would change the environment that runs this test
    ".venv/bin/pip install -q -c constraints.txt -e '.[dev]'": (
        ".venv/bin/pip install -q -c constraints.txt --dry-run '.[dev]'"
    ),
    ".venv/bin/pip install -q -c constraints.txt -e '.[retrieval]'": (
        ".venv/bin/pip install -q -c constraints.txt --dry-run '.[retrieval]'"
    ),
    # it serves until Ctrl-C
    ".venv/bin/codetaste view runs/compare": (
        "timeout -s INT 20 .venv/bin/codetaste view runs/compare --port 0 || test $? = 124"
    ),
    # they run this test
    ".ci/run": "bash -n .ci/run",
    ".ci/full": "bash -n .ci/full",
}
"""What runs in place of a command that a test cannot run; the comment says why."""

ENVIRONMENT = {"ANTHROPIC_API_KEY": "not-a-key"}


@pytest.fixture
def checkout(tmp_path: Path, require: Callable[..., None]) -> Path:
    """A clone whose ``.venv`` is the environment that runs this test."""
    require("git", ok=(CHECKOUT / ".git").exists(), reason="this is no git checkout")
    clone = tmp_path / "codetaste"
    trusted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    git = ["git", "clone", "--quiet", "--no-hardlinks", str(CHECKOUT), str(clone)]
    subprocess.run(git, check=True, env={**os.environ, **trusted})
    (clone / ".venv").symlink_to(sys.prefix)
    return clone


def marks_of(page: str) -> list[pytest.MarkDecorator]:
    """Return the time limit of a page's test, and what keeps it out of the README's test command."""
    limit = pytest.mark.timeout(2400 if page == BUILDS else 600)
    return [limit] if page == PAGES[0] else [limit, pytest.mark.heavy]


def run_in(checkout: Path, command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env={**os.environ, **ENVIRONMENT, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks_of(page)) for page in WITH_COMMANDS])
def test_commands_of_a_page_work_in_its_order(page: str, checkout: Path) -> None:
    commands = read_commands(CHECKOUT / page)
    if page != "README.md" and any("runs/quickstart" in command.text for command in commands):
        # A page of docs/ may continue with the run of the README's first command.
        assert run_in(checkout, split_command(FIRST.text)[-1]).returncode == 0
    for command in commands:
        done = run_in(checkout, SUBSTITUTES.get(command.text, command.text))
        assert done.returncode == 0, f"{page}:{command.line}: {command.text}\n{done.stdout[-6000:]}"
        printed = [without_seconds(line) for line in done.stdout.splitlines()]
        assert [line for line in command.shown if without_seconds(line) not in printed] == []
    if page == "README.md":
        text = (CHECKOUT / page).read_text("utf-8")
        [rule] = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        [rules] = (checkout / "runs/quickstart/discover/scripted").rglob("rules_positive.yml")
        assert rule in rules.read_text("utf-8")


def without_seconds(line: str) -> str:
    return re.sub(r"\b(\d+h)?(\d+m)?\d+s\b", "…s", line.strip())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_container_commands_work_with_an_engine(checkout: Path, docker_engine: DockerEngine) -> None:
    commands = [command for page in PAGES for command in read_commands(CHECKOUT / page, "sh docker")]
    assert commands
    for command in commands:
        done = run_in(checkout, command.text, DOCKER_HOST=docker_engine.host)
        assert done.returncode == 0, f"{command.page}:{command.line}: {command.text}\n{done.stdout[-3000:]}"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_papers_numbers_are_reproduced_from_the_published_data(
    checkout: Path, published_data: Path, clones: Path
) -> None:
    (checkout / "codetaste100").symlink_to(published_data)
    (checkout / "clones").symlink_to(clones)
    page = "docs/reproduction.md"
    page_text, output = (CHECKOUT / page).read_text("utf-8"), ""
    for command in read_commands(CHECKOUT / page, "sh data"):
        done = run_in(checkout, command.text)
        assert done.returncode == 0, f"{page}:{command.line}: {command.text}\n{done.stdout[-3000:]}"
        output += done.stdout
    for number in ("385 of 385", "323 of 474", "282 of 466", "73 of 661", "675 of 878", "1415.02", "2605.35"):
        assert number in page_text
        assert number in output


def test_every_substitute_replaces_a_command_of_a_page() -> None:
    commands: list[Command] = [command for page in PAGES for command in read_commands(CHECKOUT / page)]
    assert set(SUBSTITUTES) <= {command.text for command in commands}


def test_slow_commands_are_in_the_full_check() -> None:
    slow = {page: [each.text for each in read_commands(CHECKOUT / page, "sh slow")] for page in PAGES}
    assert {page for page, commands in slow.items() if commands} == {"docs/performance.md"}
    assert "docs/performance.md slow" in (CHECKOUT / ".ci" / "run").read_text("utf-8")
    for command in slow["docs/performance.md"]:
        words = command.split()
        script = next(word for word in words if word.endswith(".py"))
        done = subprocess.run(
            [sys.executable, script, "--help"], cwd=CHECKOUT, capture_output=True, text=True, check=False
        )
        assert "--rounds" in done.stdout, f"{command}\n{done.stderr}"
