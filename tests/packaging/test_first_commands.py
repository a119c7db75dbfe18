"""The README's first two commands work on a minimal machine."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cli import documented_commands
from support.system import minimal_debian

if TYPE_CHECKING:
    from support.system.dockerd import DockerEngine
    from support.system.minimal_debian import MinimalSystem

COMMAND, TEST_COMMAND = (
    each.text for each in documented_commands.read_commands(minimal_debian.CHECKOUT / "README.md")[:2]
)
PINS = set((minimal_debian.CHECKOUT / "constraints.txt").read_text().split("\n"))

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("as_root")]


def rule_files(project: Path) -> list[Path]:
    """Return the rule files of the quickstart run below a checkout."""
    return sorted((project / "runs/quickstart/discover").rglob("rules_*.yml"))


@pytest.mark.slow
def test_first_command_works_for_a_normal_user_on_a_minimal_debian(
    minimal_system_with_checkout: MinimalSystem,
) -> None:
    system = minimal_system_with_checkout
    bare = "command -v git || command -v bwrap || command -v rg || python3 -m venv /tmp/no"
    assert system.run(bare).exit_code != 0, "the system is not as minimal as this test needs"

    first = system.run(COMMAND)
    assert first.exit_code == 0, first.output[-4000:]
    assert "scripted" in first.output
    files = rule_files(system.project)
    assert [file.name for file in files] == ["rules_negative.yml", "rules_positive.yml"]
    assert files[0].parent.parent.parent.parent.parent.name == "assets", files[0]
    for file in files:
        text = file.read_text("utf-8")
        assert "nr_refactored_patterns" in text
        assert "nr_legacy_patterns" in text

    journal = (system.project / "runs/quickstart/journal.jsonl").read_bytes()
    before = [file.read_bytes() for file in files]
    again = system.run(COMMAND, timeout_s=300)
    assert again.exit_code == 0, again.output[-4000:]
    assert [file.read_bytes() for file in rule_files(system.project)] == before
    new = (system.project / "runs/quickstart/journal.jsonl").read_bytes().removeprefix(journal)
    events = {json.loads(line)["event"] for line in new.splitlines()}
    assert "resumed" in events
    assert not events & {"started", "reserved", "settled", "effect", "ended"}, "it did something again"

    installed = system.run(".venv/bin/pip freeze --exclude codetaste 2>/dev/null").output.splitlines()
    assert set(installed) <= PINS
    assert system.run("command -v git || command -v bwrap || command -v rg").exit_code != 0
    report = json.loads(system.run(".venv/bin/codetaste doctor --json").output)
    assert report["usable"] is True
    assert report["containment"] == "bubblewrap"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_second_command_passes_on_a_minimal_debian(
    minimal_system_with_checkout: MinimalSystem,
) -> None:
    system = minimal_system_with_checkout
    first = system.run(COMMAND)
    assert first.exit_code == 0, first.output[-4000:]
    second = system.run(TEST_COMMAND, timeout_s=3000)
    assert second.exit_code == 0, second.output[-8000:]
    assert " passed" in second.output.splitlines()[-1]


@pytest.mark.slow
def test_first_command_falls_back_to_landlock_in_a_plain_container(
    minimal_archive: Path, docker_engine: DockerEngine
) -> None:
    docker_engine.import_image(minimal_archive, "codetaste-minimal")
    environment = dict(pair.split("=", 1) for pair in minimal_debian.user_environment())
    with docker_engine.container("codetaste-minimal") as container:
        container.run(["mkdir", minimal_debian.PROJECT])
        container.put(minimal_debian.committed_files(), minimal_debian.PROJECT)
        container.run(["chown", "-R", f"{minimal_debian.USER}:", minimal_debian.PROJECT])
        as_user = partial(
            container.run, user=minimal_debian.USER, workdir=minimal_debian.PROJECT, env=environment
        )
        refused, output = as_user(["unshare", "--user", "true"])
        assert refused != 0, f"user namespaces are not forbidden here: {output}"

        code, output = as_user(["bash", "-c", COMMAND])
        assert code == 0, output[-4000:]
        found, listing = as_user(["find", "runs/quickstart/discover", "-name", "rules_*.yml"])
        assert found == 0
        assert len(listing.split()) == 2, listing
        usable, output = as_user([".venv/bin/codetaste", "doctor"])
        assert usable == 0, output
        assert "landlock contains them" in output
