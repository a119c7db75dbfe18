"""Root in a container: what the host and what a command of the user can do in each mode."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import (
    CommandLimits,
    EndReason,
    Mount,
    Privileges,
    Sandbox,
    SandboxProvider,
    SandboxSpec,
)
from codetaste.sandbox.docker.archive import put_as_root
from support.sandbox.providers import in_containers, running_processes, sh

pytestmark = [pytest.mark.anyio, in_containers]
with_root = pytest.mark.parametrize("privileges", [Privileges.SYSTEM, Privileges.SUDO])
STATUS = "grep -E '^(CapEff|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\n\\t' '  '"
USER_STATUS = "CapInh: 0000000000000000 CapEff: 0000000000000000 CapAmb: 0000000000000000 "
ROOT_SHELL = "cp /bin/bash /usr/local/bin/root-bash && chmod 4755 /usr/local/bin/root-bash"
"""Like sudo, it makes a command of the user one of root."""
MAKE_CGROUP = "cd /sys/fs/cgroup/memory || cd /sys/fs/cgroup; mkdir new"
"""Version 1 of control groups has one folder for each kind; what is around them is no control group."""


def spec(privileges: Privileges, *mounts: Mount) -> SandboxSpec:
    return SandboxSpec("test", privileges=privileges, mounts=mounts)


@with_root
async def test_commands_run_as_user_or_as_root(provider: SandboxProvider, privileges: Privileges) -> None:
    async with provider.open(spec(privileges)) as sandbox:
        result = await sh(sandbox, f'id -u; id -G; echo "$HOME"; {STATUS}; touch /usr/a')
        lines = result.stdout.decode().splitlines()
        assert lines[:3] == ["1000", "1000", "/home/agent"]
        locked = int(privileges is Privileges.SYSTEM)
        assert lines[3].strip() == f"{USER_STATUS}NoNewPrivs: {locked} Seccomp: 2"
        assert b"/usr/a" in result.stderr
        result = await sh(sandbox, 'id -u; id -g; echo "$HOME $PATH"; pwd; touch /usr/a', root=True)
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        assert result.stdout.decode().splitlines() == ["0", "0", f"/root {path}", "/testbed"]
        assert result.exit_code == 0


@pytest.mark.parametrize(("privileges", "user"), [(Privileges.SYSTEM, b"1000\n"), (Privileges.SUDO, b"0\n")])
async def test_setuid_program_works_only_with_sudo(
    provider: SandboxProvider, privileges: Privileges, user: bytes
) -> None:
    async with provider.open(spec(privileges)) as sandbox:
        assert (await sh(sandbox, ROOT_SHELL, root=True)).exit_code == 0
        result = await sh(sandbox, "root-bash -p -c 'id -u; touch /usr/b'; ls /usr/b")
        assert result.stdout.startswith(user)
        assert (result.exit_code == 0) is (privileges is Privileges.SUDO)


async def test_root_is_refused_without_privileges(provider: SandboxProvider) -> None:
    async with provider.open(spec(Privileges.NONE)) as sandbox:
        with pytest.raises(SandboxError, match=r"^apt-get cannot be run as root in a sandbox without"):
            await sandbox.run(["apt-get", "update"], root=True)
        assert (await sh(sandbox, "id -u")).stdout == b"1000\n"


@with_root
async def test_no_process_of_user_or_root_outlives_its_command(
    provider: SandboxProvider, privileges: Privileges, token: str
) -> None:
    daemon = f"(setsid env -i sleep {token} &)"
    async with provider.open(spec(privileges)) as sandbox:
        await sh(sandbox, ROOT_SHELL, root=True)
        for script, root in (
            (daemon, True),
            (daemon, False),
            (f"root-bash -p -c '{daemon}'", False),
            (f"trap '' TERM; setpriv --reuid=7 --clear-groups sleep {token} & sleep 0.1", True),
        ):
            await sh(sandbox, script, root=root)
            assert await running_processes(sandbox) == [], script
        result = await sandbox.run(["sleep", token], root=True, limits=CommandLimits(wall_s=0.5))
        assert result.timed_out
        assert await running_processes(sandbox) == []


async def test_detached_processes_of_a_command_survive_the_end_of_another(
    provider: SandboxProvider, token: str
) -> None:
    detach = f"(setsid sleep {token} & echo $! >>/tmp/pids)"
    become_root = "root-bash -p -c 'exec setpriv --reuid=0 --regid=0 --clear-groups sh -c \"$0\"'"
    count = "for pid in $(cat /tmp/pids); do [ -e /proc/$pid ] && echo; done | wc -l"
    wait = "until [ -e /tmp/over ]; do sleep 0.05; done"
    results = []

    async def run(sandbox: Sandbox) -> None:
        results.append(await sh(sandbox, f"{detach}; {become_root} '{detach}'; {wait}; {count}"))

    async with provider.open(spec(Privileges.SUDO)) as sandbox:
        await sh(sandbox, ROOT_SHELL, root=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, sandbox)
            await sh(sandbox, "until [ $(wc -l </tmp/pids) = 2 ]; do sleep 0.05; done")
            for root in (True, False):
                await sh(sandbox, "true", root=root)
            await sh(sandbox, "touch /tmp/over")
    assert results[0].stdout.strip() == b"2"


async def test_user_cannot_end_the_supervisor_of_root(provider: SandboxProvider) -> None:
    async with provider.open(spec(Privileges.SYSTEM)) as sandbox:
        script = "sleep 90 & kill -9 -1; wait; pid=$(pgrep -u 0 -P 1); kill -9 $pid; cat /proc/$pid/environ"
        result = await sh(sandbox, script)
        assert result.stdout == b""
        assert (b"not permitted" in result.stderr, b"denied" in result.stderr) == (True, True)
        assert (await sh(sandbox, "id -u")).stdout == b"1000\n"
        assert sandbox.end is None


async def test_root_that_kills_everything_ends_its_sandbox(provider: SandboxProvider) -> None:
    async with provider.open(spec(Privileges.SUDO)) as sandbox:
        await sh(sandbox, ROOT_SHELL, root=True)
        with pytest.raises(SandboxError, match="killed its supervisor"):
            await sh(sandbox, "root-bash -p -c 'kill -9 -1'")
        assert sandbox.end is not None
        assert sandbox.end.reason is EndReason.SUPERVISOR_KILLED


@with_root
async def test_root_changes_neither_mounts_nor_what_belongs_to_the_host(
    provider: SandboxProvider, privileges: Privileges, tmp_path: Path
) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "run_tests").write_text("as it was")
    attacks = (
        *("echo x >/scripts/run_tests", "rm -f /scripts/run_tests", "touch /scripts/new"),
        *("chmod 777 /scripts/run_tests", "chown 1000 /scripts", "mv /scripts /elsewhere"),
        *("mount -o remount,rw /scripts", "mount -t tmpfs none /scripts", "umount /scripts"),
        *("mount -t tmpfs none /mnt", "chroot /usr /bin/true", "unshare --net true", "mknod /m b 8 0"),
        *("hostname other", "echo 1 >/proc/sys/kernel/sysrq", "date --set 2001-01-01"),
        *(MAKE_CGROUP, "ulimit -f unlimited", "ulimit -n 1000000"),
        *("dmesg", "echo -1000 >/proc/1/oom_score_adj", "nsenter --target 1 --mount true"),
        "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
    )
    async with provider.open(spec(privileges, Mount(scripts, "/scripts"))) as sandbox:
        for attack in attacks:
            assert (await sh(sandbox, attack, root=True)).exit_code not in {0, 127}, attack
    assert [path.name for path in scripts.iterdir()] == ["run_tests"]
    assert (scripts / "run_tests").read_text() == "as it was"
    owners = {path.stat().st_uid for path in (tmp_path, scripts, scripts / "run_tests")}
    assert len(owners) == 1


@with_root
async def test_packages_users_and_archives_are_installed_as_root(
    provider: SandboxProvider, privileges: Privileges
) -> None:
    build = r"""
        set -e
        mkdir -p /tmp/made/DEBIAN /tmp/made/var/lib/made
        printf '%s\n' 'Package: made' 'Version: 1' 'Architecture: all' 'Maintainer: a <a@example.org>' \
            'Description: made here' >/tmp/made/DEBIAN/control
        printf '%s\n' '#!/bin/sh' 'useradd --system --shell /bin/sh made && chown made /var/lib/made' \
            >/tmp/made/DEBIAN/postinst
        chmod 755 /tmp/made/DEBIAN/postinst
        dpkg-deb --build /tmp/made /tmp/made.deb
        apt-get install --yes /tmp/made.deb
        dpkg --verify made
        stat -c %U /var/lib/made
        su made -c 'id -un'
    """
    async with provider.open(spec(privileges)) as sandbox:
        result = await sh(sandbox, build, root=True)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.decode().splitlines()[-2:] == ["made", "made"]


async def test_archive_is_unpacked_by_root_with_its_owners(provider: SandboxProvider) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, user in (("etc/of-root", 0), ("opt/of-user", 1000), ("opt/of-other", 4321)):
            member = tarfile.TarInfo(name)
            member.uid, member.gid, member.mode, member.size = user, user, 0o4750, 3
            archive.addfile(member, io.BytesIO(b"abc"))
    async with provider.open(spec(Privileges.SYSTEM)) as sandbox:
        await put_as_root(sandbox, packed.getvalue(), "/")
        names = "/etc/of-root /opt/of-user /opt/of-other"
        result = await sh(sandbox, f"stat -c '%u %g %a %s' {names}")
        assert result.stdout.decode().splitlines() == [f"{user} {user} 4750 3" for user in (0, 1000, 4321)]
        with pytest.raises(SandboxError, match=r"cannot unpack an archive in /nowhere of a sandbox: .*tar"):
            await put_as_root(sandbox, packed.getvalue(), "/nowhere")


async def test_input_can_be_opened_by_name_by_either_user(provider: SandboxProvider) -> None:
    text = b"line\n" * 100_000
    async with provider.open(spec(Privileges.SYSTEM)) as sandbox:
        for root in (True, False):
            result = await sandbox.run(["wc", "-l", "/dev/stdin"], stdin=text, root=root)
            assert result.stdout.split()[0] == b"100000", result.stderr
