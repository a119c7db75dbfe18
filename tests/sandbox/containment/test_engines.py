"""Which engine is found where, and what is said where none works."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import ConfigError, SandboxError, ToolMissing
from codetaste.sandbox.containment import bubblewrap
from codetaste.sandbox.containment import diagnose as advice
from codetaste.sandbox.containment.engine import ContainmentEngine, choose_engine, probe_engines
from codetaste.sandbox.containment.host_view import host_view
from codetaste.sandbox.local import shell as local
from codetaste.sandbox.local.shell import read_only_shell
from codetaste.sandbox.seccomp import bpf
from support.sandbox.containment import (
    Place,
    Shell,
    Stage,
    as_user,
    client_command,
    client_environment,
    places,
)


def users() -> list[str]:
    return sorted({place.user for place in places()})


def found(stage: Stage, python: str, place: Place) -> dict[str, Any]:
    done = subprocess.run(
        client_command(stage, place, python, "probe"),
        capture_output=True,
        text=True,
        check=True,
        env=client_environment(stage),
        **as_user(place.user),
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("user", users())
def test_everything_works_on_a_machine_that_allows_it(
    user: str, stage: Stage, interpreter: Callable[[str], str]
) -> None:
    answer = found(stage, interpreter(user), Place("auto", user))
    assert answer["choice"] == "bubblewrap"
    installed = [["bubblewrap", True] for _ in bubblewrap.find_programs()]
    assert [one[:2] for one in answer["found"]] == [*installed, ["landlock", True]]


@pytest.mark.parametrize("user", users())
def test_landlock_is_taken_where_namespaces_are_forbidden(
    user: str, stage: Stage, interpreter: Callable[[str], str]
) -> None:
    answer = found(stage, interpreter(user), Place("auto", user, "namespaces"))
    assert answer["choice"] == "landlock", answer
    kind, works, problem, fix = answer["found"][0]
    assert (kind, works) == ("bubblewrap", False)
    assert "bwrap" in problem
    assert fix


@pytest.mark.parametrize("user", users())
def test_where_nothing_works_the_error_says_what_to_do(
    user: str, stage: Stage, interpreter: Callable[[str], str]
) -> None:
    answer = found(stage, interpreter(user), Place("auto", user, "everything"))
    assert str(answer["choice"]).startswith(
        "SandboxError: commands cannot be contained on this machine: bubblewrap"
    )
    assert "ENOSYS" in str(answer["choice"])
    assert "security-opt seccomp" in str(answer["choice"])
    assert "\n" not in str(answer["choice"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can forbid them in a namespace of his own")
def test_forbidden_namespaces_are_detected_and_setting_is_named(
    stage: Stage, interpreter: Callable[[str], str]
) -> None:
    # The setting is one of each user namespace: it is lowered in a new one, as which the client is then an
    # ordinary user.
    client = client_command(stage, Place("auto", "root"), interpreter("nobody"), "probe")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            script,
            "sh",
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
            *client,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=client_environment(stage),
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["choice"] == "landlock"
    assert "sudo sysctl -w user.max_user_namespaces=15000" in answer["found"][0][3], answer


def test_the_client_in_a_place_without_namespaces_runs_under_landlock(shell: Shell) -> None:
    expected = "landlock" if shell.place.forbidden or "landlock" in shell.place.engine else "bubblewrap"
    assert shell.kind == expected


def test_an_unknown_engine_is_refused_with_the_names_of_the_known() -> None:
    with pytest.raises(ConfigError, match="auto, bubblewrap, landlock"):
        choose_engine("bublewrap")


def test_a_tree_or_a_tool_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    engine = ContainmentEngine("bubblewrap", Path("/usr/bin/bwrap"))
    with pytest.raises(SandboxError, match="not a folder"):
        read_only_shell(tmp_path / "nothing", engine=engine)
    with pytest.raises(ToolMissing, match="'rg'"):
        read_only_shell(tmp_path, tools={"rg": tmp_path / "rg"}, engine=engine)


def test_a_bubblewrap_of_the_system_comes_before_that_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [origin for origin, _ in bubblewrap.find_programs()] == ["package"]
    (tmp_path / "bwrap").write_text("")
    (tmp_path / "bwrap").chmod(0o755)
    assert [origin for origin, _ in bubblewrap.find_programs()] == ["system", "package"]


@pytest.mark.parametrize(
    ("problem", "settings", "said"),
    [
        (
            "setting up uid map: Permission denied",
            {"kernel/apparmor_restrict_unprivileged_userns": "1"},
            "apparmor",
        ),
        ("No permissions", {"kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone=1"),
        ("No permissions", {"user/max_user_namespaces": "0"}, "user.max_user_namespaces=15000"),
        ("Unknown option --size", {}, "0.8 or newer"),
    ],
)
def test_the_advice_follows_the_machine_s_settings(
    problem: str, settings: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "_read", lambda path: settings.get(path.removeprefix("/proc/sys/"), ""))
    assert said in advice.suggest_namespaces_fix(problem, Path("/usr/bin/bwrap"))


def test_on_another_system_everything_imports_and_the_report_is_plain() -> None:
    code = (
        "import sys, platform\n"
        "sys.platform = 'darwin'; platform.system = lambda: 'Darwin'; platform.machine = lambda: 'arm64'\n"
        "import codetaste.sandbox.local.shell\n"
        "from codetaste.sandbox.containment.engine import probe_engines, choose_engine\n"
        "for one in probe_engines(): print(one.kind, one.works, one.problem, one.fix)\n"
        "try: choose_engine()\n"
        "except Exception as fault: print(type(fault).__name__, fault)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "bubblewrap False it is a Linux tool; Darwin has none" in done.stdout
    assert "SandboxError" in done.stdout
    assert "on Linux, in a virtual machine" in done.stdout


def test_unsupported_processor_for_seccomp_is_reported() -> None:
    assert bpf.is_supported("x86_64")
    assert bpf.is_supported("aarch64")
    assert not bpf.is_supported("riscv64")


def test_engines_are_tried_once_in_a_process() -> None:
    assert probe_engines() is probe_engines()


def test_what_is_hidden_is_outside_of_what_is_allowed() -> None:
    view = host_view()
    allowed = view.visible_paths()
    assert allowed
    for hidden in view.hidden:
        assert not any(hidden == path or hidden.startswith(path + "/") for path in allowed), hidden
    for path in ("/usr/bin", shutil.which("sh") or "/bin/sh"):
        real = os.path.realpath(path)
        assert any(real == one or real.startswith(one + "/") for one in allowed), path


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_single_files_and_what_has_vanished_can_be_hidden_too(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = host_view()
    file, folder = Path("/usr/bin/env").resolve(), Path("/usr/share/doc")
    hidden = tuple(sorted({*view.hidden, str(file), str(folder), "/usr/share/was-here-once"}))
    monkeypatch.setattr(local, "host_view", lambda: dataclasses.replace(view, hidden=hidden))
    sandbox = read_only_shell(tmp_path, engine=choose_engine(kind))
    done = anyio.run(
        sandbox.run, ["sh", "-c", f"cat {file} | wc -c; ls {folder} | wc -l; env || echo hidden"]
    )
    assert done.stdout.split() == [b"0", b"0", b"hidden"], done


def test_a_sandbox_can_be_used_from_many_tasks_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    sandbox = read_only_shell(tmp_path)

    async def main() -> list[bytes]:
        said = []

        async def one(number: int) -> None:
            said.append((await sandbox.run(["sh", "-c", f"cat file; echo {number}"])).stdout)

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(one, number)
        return said

    assert sorted(anyio.run(main)) == sorted(b"content%d\n" % number for number in range(12))
