"""Containment engines: which are found and chosen, and the error where none works."""

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
from codetaste.sandbox.containment import bubblewrap, diagnose
from codetaste.sandbox.containment.engine import ContainmentEngine, choose_engine, probe_engines
from codetaste.sandbox.containment.host_view import host_view
from codetaste.sandbox.local import shell as local
from codetaste.sandbox.local.shell import read_only_shell
from codetaste.sandbox.seccomp import bpf
from support.sandbox.containment import (
    ClientVariant,
    HostFolders,
    ShellClient,
    client_command,
    client_environment,
    client_variants,
    user_options,
)


def users() -> list[str]:
    return sorted({variant.user for variant in client_variants()})


def probe(host_folders: HostFolders, python: str, variant: ClientVariant) -> dict[str, Any]:
    result = subprocess.run(
        client_command(host_folders, variant, python, "probe"),
        capture_output=True,
        text=True,
        check=True,
        env=client_environment(host_folders),
        **user_options(variant.user),
    )
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.parametrize("user", users())
def test_all_engines_work_without_restrictions(
    user: str, host_folders: HostFolders, find_python: Callable[[str], str]
) -> None:
    report = probe(host_folders, find_python(user), ClientVariant("auto", user))
    assert report["choice"] == "bubblewrap"
    installed = [["bubblewrap", True] for _ in bubblewrap.find_programs()]
    assert [one[:2] for one in report["probes"]] == [*installed, ["landlock", True]]


@pytest.mark.parametrize("user", users())
def test_landlock_is_chosen_where_namespaces_are_forbidden(
    user: str, host_folders: HostFolders, find_python: Callable[[str], str]
) -> None:
    report = probe(host_folders, find_python(user), ClientVariant("auto", user, "namespaces"))
    assert report["choice"] == "landlock", report
    kind, works, problem, fix = report["probes"][0]
    assert (kind, works) == ("bubblewrap", False)
    assert "bwrap" in problem
    assert fix


@pytest.mark.parametrize("user", users())
def test_error_without_working_engine_suggests_a_fix(
    user: str, host_folders: HostFolders, find_python: Callable[[str], str]
) -> None:
    report = probe(host_folders, find_python(user), ClientVariant("auto", user, "everything"))
    assert str(report["choice"]).startswith(
        "SandboxError: commands cannot be contained on this machine: bubblewrap"
    )
    assert "ENOSYS" in str(report["choice"])
    assert "security-opt seccomp" in str(report["choice"])
    assert "\n" not in str(report["choice"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can forbid namespaces in a new namespace")
def test_forbidden_namespaces_are_detected_and_setting_is_named(
    host_folders: HostFolders, find_python: Callable[[str], str]
) -> None:
    # Each user namespace has the setting: it is lowered in a new one, where the client is an ordinary user.
    client = client_command(host_folders, ClientVariant("auto", "root"), find_python("unprivileged"), "probe")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    result = subprocess.run(
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
        env=client_environment(host_folders),
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["choice"] == "landlock"
    assert "sudo sysctl -w user.max_user_namespaces=15000" in report["probes"][0][3], report


def test_client_without_namespaces_runs_under_landlock(shell: ShellClient) -> None:
    expected = "landlock" if shell.variant.forbidden or "landlock" in shell.variant.engine else "bubblewrap"
    assert shell.kind == expected


def test_unknown_engine_error_lists_known_engines() -> None:
    with pytest.raises(ConfigError, match="auto, bubblewrap, landlock"):
        choose_engine("bublewrap")


def test_missing_tree_or_tool_is_an_error(tmp_path: Path) -> None:
    engine = ContainmentEngine("bubblewrap", Path("/usr/bin/bwrap"))
    with pytest.raises(SandboxError, match="not a folder"):
        read_only_shell(tmp_path / "nothing", engine=engine)
    with pytest.raises(ToolMissing, match="'rg'"):
        read_only_shell(tmp_path, tools={"rg": tmp_path / "rg"}, engine=engine)


@pytest.mark.parametrize(
    ("answer", "order", "warns"),
    [
        ("echo bubblewrap 0.8.0", ["package", "system"], True),
        ("echo bubblewrap {packaged}", ["system", "package"], True),
        ("echo bubblewrap 0.12.0", ["system", "package"], False),
        ("echo bubblewrap 1.0", ["system", "package"], False),
        ("echo something else", ["package", "system"], True),
        ("exit 1", ["package", "system"], True),
    ],
)
def test_newest_bubblewrap_is_preferred_and_old_ones_have_a_warning(
    answer: str, order: list[str], warns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (packaged,) = bubblewrap.find_programs()
    assert packaged.origin == "package"
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\n" + answer.format(packaged=".".join(map(str, packaged.version))))
    program.chmod(0o755)
    found = bubblewrap.find_programs()
    assert [one.origin for one in found] == order
    (system,) = (one for one in found if one.origin == "system")
    assert ("CVE-2026-87766" in system.warning) is warns
    assert system.path == program


@pytest.mark.parametrize(
    ("problem", "settings", "suggestion"),
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
def test_suggested_fix_depends_on_kernel_settings(
    problem: str, settings: dict[str, str], suggestion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnose, "_read", lambda path: settings.get(path.removeprefix("/proc/sys/"), ""))
    assert suggestion in diagnose.suggest_namespaces_fix(problem, Path("/usr/bin/bwrap"))


def test_other_operating_system_imports_and_has_no_engine() -> None:
    code = (
        "import sys, platform\n"
        "sys.platform = 'darwin'; platform.system = lambda: 'Darwin'; platform.machine = lambda: 'arm64'\n"
        "import codetaste.sandbox.local.shell\n"
        "from codetaste.sandbox.containment.engine import probe_engines, choose_engine\n"
        "for one in probe_engines(): print(one.kind, one.works, one.problem, one.fix)\n"
        "try: choose_engine()\n"
        "except Exception as fault: print(type(fault).__name__, fault)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "bubblewrap False it is a Linux tool; Darwin has none" in result.stdout
    assert "SandboxError" in result.stdout
    assert "on Linux, in a virtual machine" in result.stdout


def test_unsupported_processor_for_seccomp_is_reported() -> None:
    assert bpf.is_supported("x86_64")
    assert bpf.is_supported("aarch64")
    assert not bpf.is_supported("riscv64")


def test_engines_are_probed_once_per_process() -> None:
    assert probe_engines() is probe_engines()


def test_hidden_paths_are_not_below_visible_paths() -> None:
    view = host_view()
    allowed = view.visible_paths()
    assert allowed
    for hidden in view.hidden:
        assert not any(hidden == path or hidden.startswith(path + "/") for path in allowed), hidden
    for path in ("/usr/bin", shutil.which("sh") or "/bin/sh"):
        real = os.path.realpath(path)
        assert any(real == one or real.startswith(one + "/") for one in allowed), path


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_single_files_and_missing_paths_can_be_hidden(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = host_view()
    file, folder = Path("/usr/bin/env").resolve(), Path("/usr/share/doc")
    hidden = tuple(sorted({*view.hidden, str(file), str(folder), "/usr/share/was-here-once"}))
    monkeypatch.setattr(local, "host_view", lambda: dataclasses.replace(view, hidden=hidden))
    shell = read_only_shell(tmp_path, engine=choose_engine(kind))
    result = anyio.run(
        shell.run, ["sh", "-c", f"cat {file} | wc -c; ls {folder} | wc -l; env || echo hidden"]
    )
    assert result.stdout.split() == [b"0", b"0", b"hidden"], result


def test_shell_runs_concurrent_commands(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    shell = read_only_shell(tmp_path)

    async def main() -> list[bytes]:
        outputs = []

        async def one(number: int) -> None:
            outputs.append((await shell.run(["sh", "-c", f"cat file; echo {number}"])).stdout)

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(one, number)
        return outputs

    assert sorted(anyio.run(main)) == sorted(b"content%d\n" % number for number in range(12))
