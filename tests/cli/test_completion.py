"""Shell completion: the installed script completes commands and options in a real shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = "bash-completion/completions/codetaste"
COMPLETE = """
source "$1"
shift
COMP_WORDS=(codetaste "$@")
COMP_CWORD=$#
COMP_LINE="codetaste $*"
COMP_POINT=${#COMP_LINE}
function=$(complete -p codetaste | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" codetaste "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def install(folder: Path, shell: str, *more: str) -> str:
    command = [sys.executable, "-m", "codetaste", "--install-completion", "--shell", shell, *more]
    env = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    assert "installed" in install(folder, "bash")
    (script,) = folder.rglob(SCRIPT)
    return script


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["ru"], ["run", "rules"]),
        (["run", "--dry"], ["--dry-run"]),
        (["run", "--re"], ["--rerun", "--rerun-failed"]),
        (["benchmark", "ne"], ["new"]),
        (["report", "--format", "mark"], ["markdown"]),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_options_and_values(
    bash_script: Path, typed: list[str], completed: list[str]
) -> None:
    bash = ["bash", "--norc", "-c", COMPLETE, "bash", str(bash_script), *typed]
    done = subprocess.run(bash, capture_output=True, text=True, check=True)
    assert [word.strip() for word in done.stdout.split()] == completed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_name_all_commands(tmp_path: Path, shell: str) -> None:
    install(tmp_path, shell, "--output", str(tmp_path / "script"))
    text = (tmp_path / "script").read_text()
    from codetaste.cli.app import app

    names = [name for name in app if not name.startswith("-")]
    assert len(names) > 10
    assert [name for name in names if name not in text] == []
