"""``codetaste benchmark new`` makes an instance that the other commands read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

USER = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def codetaste(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codetaste", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``repo``, whose second commit renames a variable."""
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    for name, message in (("old", "First"), ("new", "Rename old to new")):
        (repo / "a.py").write_text(f"{name} = 1\n", "utf-8")
        subprocess.run(["git", "-C", str(repo), "add", "."], check=True)
        subprocess.run(["git", "-C", str(repo), *USER, "commit", "-qm", message], check=True)
    return tmp_path


def test_new_instance_is_shown_and_is_not_made_twice(folder: Path) -> None:
    new = ("benchmark", "new", "--repo", "repo", "--base", "HEAD~1", "--golden", "HEAD")
    made = json.loads(codetaste(*new, "--json", cwd=folder).stdout)
    assert made["language"] == "python"
    done = codetaste("benchmark", "show", "*", "--benchmark", "benchmark", "--json", cwd=folder)
    shown = json.loads(done.stdout)
    assert shown["instance"] == made["instance"]
    assert shown["descriptions"] == {"instructed": "Rename old to new", "open": None}
    assert shown["golden_patch"] == {"files": 1, "added": 1, "removed": 1}
    again = codetaste(*new, cwd=folder)
    assert again.returncode == 2
    assert f"benchmark/instances.csv: {made['instance']} is there already; choose another" in again.stderr


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--base": "nothing"}, "--base: {repo} has no commit 'nothing'"),
        ({"--golden": "HEAD~1"}, "--base and --golden: both commits of {repo} have the same files"),
        ({"--repo": "absent"}, "--repo: {folder}/absent: no such folder"),
        ({"--repo": "."}, "--repo: {folder} is not a git repository"),
        ({"--language": "Klingon"}, "--language: 'Klingon' is unknown; did you mean kotlin?"),
        ({"--name": "owner"}, "--name: 'owner' is not of the form OWNER/REPO"),
        ({"--name": "a/b/c"}, "--name: 'a/b/c' is not of the form OWNER/REPO"),
        ({"--to": "repo/a.py"}, "--to: repo/a.py is not a folder"),
        ({"--description": "none.md"}, "none.md: cannot be read: No such file or directory"),
    ],
)
def test_unusable_option_is_named_and_nothing_is_written(
    folder: Path, changed: dict[str, str], message: str
) -> None:
    options = {"--repo": "repo", "--base": "HEAD~1", "--golden": "HEAD", **changed}
    args = [word for option in options.items() for word in option]
    done = codetaste("benchmark", "new", *args, cwd=folder)
    assert done.returncode == 2
    assert message.format(repo=folder / "repo", folder=folder) in done.stderr
    assert not (folder / "benchmark").exists()


def test_commit_without_a_message_needs_a_description(folder: Path) -> None:
    git = ["git", "-C", str(folder / "repo"), *USER]
    (folder / "repo/a.py").write_text("newer = 1\n", "utf-8")
    subprocess.run([*git, "commit", "-qam", "", "--allow-empty-message"], check=True)
    new = ("benchmark", "new", "--repo", "repo", "--base", "HEAD~1", "--golden", "HEAD")
    done = codetaste(*new, cwd=folder)
    assert (done.returncode, "the message of the commit is empty" in done.stderr) == (2, True), done.stderr
    (folder / "task.md").write_text("Rename new to newer.\n", "utf-8")
    made = json.loads(
        codetaste(*new, "--description", "task.md", "--language", "Python", "--json", cwd=folder).stdout
    )
    assert made["language"] == "python"
