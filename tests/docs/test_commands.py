"""Every command in our pages works as it stands there, typed in the page's order in a fresh checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli.documented_commands import Command, commands, pieces
from support.system.dockerd import DockerEngine

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "docs").rglob("*.md")),
)
FIRST, SECOND = commands(CHECKOUT / "README.md")[:2]

STAND_INS = {
    # test_packaging_first_five_minutes.py types all of it; here its last piece, which runs the main job
    FIRST.text: pieces(FIRST.text)[-1],
    # .ci/run types it; a test cannot run all tests
    SECOND.text: ".venv/bin/pytest --collect-only -q tests/console/test_command.py",
    # what it really does costs money
    ".venv/bin/codetaste run examples/quickstart-live.toml": (
        ".venv/bin/codetaste run examples/quickstart-live.toml --dry-run"
    ),
    # they would change the environment that runs this test
    ".venv/bin/pip install -q -c constraints.txt -e '.[dev]'": (
        ".venv/bin/pip install -q -c constraints.txt --dry-run '.[dev]'"
    ),
    # they run this test
    ".ci/run": "bash -n .ci/run",
    ".ci/full": "bash -n .ci/full",
}
"""What is typed in a command's place, where a test cannot type the command itself; the comment says why."""

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


def type_in(checkout: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env={**os.environ, **ENVIRONMENT, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [PAGES[0], *(pytest.param(page, marks=pytest.mark.heavy) for page in PAGES[1:])]
)
def test_every_command_of_a_page_works_in_the_order_of_the_page(page: str, checkout: Path) -> None:
    typed = commands(CHECKOUT / page)
    if page != "README.md" and any("runs/quickstart" in command.text for command in typed):
        # A page of docs/ may go on from what the README's first command made.
        assert type_in(checkout, pieces(FIRST.text)[-1]).returncode == 0
    for command in typed:
        done = type_in(checkout, STAND_INS.get(command.text, command.text))
        assert done.returncode == 0, f"{page}:{command.line}: {command.text}\n{done.stdout[-3000:]}"
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
def test_the_commands_about_containers_work_where_there_is_an_engine(
    checkout: Path, docker_engine: DockerEngine
) -> None:
    typed = [command for page in PAGES for command in commands(CHECKOUT / page, "sh docker")]
    assert typed
    for command in typed:
        done = type_in(checkout, command.text, DOCKER_HOST=docker_engine.host)
        assert done.returncode == 0, f"{command.page}:{command.line}: {command.text}\n{done.stdout[-3000:]}"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_papers_numbers_are_reproduced_where_the_published_data_are(
    checkout: Path, published_data: Path, clones: Path
) -> None:
    (checkout / "codetaste100").symlink_to(published_data)
    (checkout / "clones").symlink_to(clones)
    page = "docs/reproduction.md"
    told, said = (CHECKOUT / page).read_text("utf-8"), ""
    for command in commands(CHECKOUT / page, "sh data"):
        done = type_in(checkout, command.text)
        assert done.returncode == 0, f"{page}:{command.line}: {command.text}\n{done.stdout[-3000:]}"
        said += done.stdout
    for number in ("385 of 385", "323 of 474", "282 of 466", "73 of 661", "675 of 878", "1415.02", "2605.35"):
        assert number in told
        assert number in said


def test_every_stand_in_stands_for_a_command_that_a_page_has() -> None:
    everything: list[Command] = [command for page in PAGES for command in commands(CHECKOUT / page)]
    assert set(STAND_INS) <= {command.text for command in everything}


def test_docs_slow_commands_match_full_check() -> None:
    slow = {page: [each.text for each in commands(CHECKOUT / page, "sh slow")] for page in PAGES}
    assert {page for page, typed in slow.items() if typed} == {"docs/performance.md"}
    assert "docs/performance.md slow" in (CHECKOUT / ".ci" / "run").read_text("utf-8")
    for command in slow["docs/performance.md"]:
        words = command.split()
        script = next(word for word in words if word.endswith(".py"))
        done = subprocess.run(
            [sys.executable, script, "--help"], cwd=CHECKOUT, capture_output=True, text=True, check=False
        )
        assert "--rounds" in done.stdout, f"{command}\n{done.stderr}"
