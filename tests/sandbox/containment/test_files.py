"""A contained command cannot change files or read hidden ones."""

# ruff: noqa: E501 (scripts for another interpreter)
from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from support.sandbox.containment import GOLDEN, ShellClient

pytestmark = pytest.mark.usefixtures("host_unchanged")


def test_tree_can_be_read_and_searched_and_its_programs_run(shell: ShellClient) -> None:
    result = shell.sh(
        "pwd; head -1 module.py; grep -rl 'x = 1' .; cat sub/café; ./run.sh; hello; git --version"
    )
    assert result.exit_code == 0, result.output
    assert result.out.splitlines()[0] == shell.workdir
    assert "before = True" in result.out
    assert "./sub/other.py" in result.out
    assert b"\xff\xfe not text\n" in result.raw
    assert result.out.count("ran") == 2
    assert "git version" in result.out


@pytest.mark.parametrize(
    "script",
    [
        "echo x > module.py",
        "echo x >> module.py",
        "echo x > new",
        "mkdir new",
        "rm module.py",
        "rm -r sub",
        "mv module.py moved.py",
        "mv sub moved",
        "ln module.py linked.py",
        "ln -s module.py linked.py",
        "mkfifo fifo",
        "mknod device c 1 3",
        "chmod 777 module.py",
        "chmod 700 .",
        "chown 1:1 module.py",
        "touch -d 2001-01-01 module.py",
        "touch -a module.py",
        "truncate -s 0 module.py",
        "cp module.py copy.py",
        "sed -i s/before/after/ module.py",
        "setfattr -n user.x -v y module.py",
        "chattr +d module.py",
        "git init -q .",
    ],
)
def test_tree_cannot_be_changed_by_command(script: str, shell: ShellClient) -> None:
    result = shell.sh(f"umask 0; {script}")
    assert result.exit_code != 0, result.output


def test_tree_cannot_be_changed_by_system_calls(shell: ShellClient) -> None:
    result = shell.py("""
        import fcntl, mmap
        attempt("write", os.open, "module.py", os.O_WRONLY)
        attempt("both", os.open, "module.py", os.O_RDWR)
        attempt("truncating read", os.open, "module.py", os.O_RDONLY | os.O_TRUNC)
        attempt("nameless", os.open, ".", os.O_TMPFILE | os.O_RDWR)
        fd = os.open("module.py", os.O_RDONLY)
        attempt("map", mmap.mmap, fd, 10, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        attempt("reopened", os.open, "/proc/self/fd/%d" % fd, os.O_RDWR)
        attempt("ftruncate", os.ftruncate, fd, 0)
        attempt("truncate", os.truncate, "module.py", 0)
        attempt("fchmod", os.fchmod, fd, 0o777)
        attempt("fchown", os.fchown, fd, -1, os.getgid())
        attempt("times", os.utime, fd, (1, 1))
        attempt("xattr", os.setxattr, fd, "user.x", b"y")
        attempt("rename", os.rename, "module.py", "/tmp/module.py")
        attempt("link to tmp", os.link, "module.py", os.environ["TMPDIR"] + "/linked")
        attempt("flags", fcntl.ioctl, fd, 0x40086602, b"\\0\\0\\0\\4\\0\\0\\0\\0")
        attempt("verity", fcntl.ioctl, fd, 0x40806685, bytes(128))
        syscall("fchmodat2", 452, -100, b"module.py", 0o777, 0)
        syscall("setxattrat", 463, -100, b"module.py", 0, b"user.x", 0, 0)
        syscall("file_setattr", 469, -100, b"module.py", 0, 0, 0)
    """)
    assert "DONE" not in result.out, result.out
    assert result.out.count("refused") == 19, result.output


def test_only_temporary_folder_is_writable_and_not_persistent(shell: ShellClient) -> None:
    where = "/ /etc /usr /usr/bin /usr/local/bin /var/tmp /dev /dev/shm /run /proc /home /root /opt /srv /lib ~ .."
    result = shell.sh(
        f"for p in {where} {shell.folders.root}; do echo x > $p/codetaste-was-here && echo WROTE $p; done"
    )
    assert "WROTE" not in result.out, result.output
    for path in where.split()[:-2]:
        with contextlib.suppress(PermissionError):  # an unreadable folder was not writable either
            assert not Path(path, "codetaste-was-here").exists()
    result = shell.sh("echo kept > $TMPDIR/file; cat $TMPDIR/file; echo $TMPDIR")
    assert result.out.splitlines()[0] == "kept", result.output
    folder = result.out.splitlines()[1]
    assert shell.kind == "bubblewrap" or not Path(folder).exists()
    assert "kept" not in shell.sh(f"cat {folder}/file").out


def test_deeply_nested_temporary_folder_is_removed(shell: ShellClient) -> None:
    result = shell.py(
        """
        os.chdir(os.environ["TMPDIR"])
        print(os.getcwd(), flush=True)
        for _ in range(3000):
            os.mkdir("d"); os.chdir("d")
        if sys.argv[1] == "landlock":
            import time; time.sleep(5)
    """,
        shell.kind,
    )
    assert shell.kind == "bubblewrap" or not Path(result.out.strip()).exists()
    assert shell.kind == "bubblewrap" or "temporary files" in result.err


def test_home_root_and_system_folders_cannot_be_read(shell: ShellClient) -> None:
    result = shell.sh(
        "echo HOME=${HOME-none}; cd; cat ~/* ~/.[a-z]*; (cd /root && cat * .[a-z]*); ls /root /home /opt /var /srv /boot /mnt /media"
    )
    assert "HOME=none" in result.out
    assert result.out.strip() == "HOME=none", result.output
    result = shell.sh(
        "cat /etc/shadow /etc/gshadow /etc/hosts /etc/resolv.conf /etc/hostname /etc/ssh/*; ls /sys /run /var/log"
    )
    assert result.out == "", result.output


def test_host_accounts_are_hidden(shell: ShellClient) -> None:
    result = shell.sh("cat /etc/passwd; cat passwd; getent passwd daemon")
    assert "daemon" not in result.out
    assert len(result.out.splitlines()) <= 2, result.out


def test_golden_commit_beside_the_tree_cannot_be_read(shell: ShellClient) -> None:
    golden = shell.folders.golden
    result = shell.sh(
        f"cat {golden}/* out/* up/r-golden/* ../r-golden/*; ls {golden} out up .. {shell.folders.root}; cd ..; ls; cat */*; "
        f"cat /proc/self/root{golden}/* /proc/self/cwd/../r-golden/*; find / -name '*golden*' -type f; grep -r golden /tmp"
    )
    assert GOLDEN not in result.out, result.out
    assert "module.py" not in result.out.replace("r/module.py", "").replace("testbed/module.py", ""), (
        result.out
    )


def test_opening_by_handle_is_refused(shell: ShellClient) -> None:
    result = shell.py(
        """
        import struct
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
        mount = ctypes.c_int()
        call("name_to_handle_at", -100, sys.argv[1].encode(), handle, ctypes.byref(mount), 0)
        call("open_by_handle_at", os.open(".", os.O_RDONLY), handle, 0)
        """,
        shell.folders.golden / "module.py",
    )
    assert result.out.count("refused EPERM") == 2, result.output


def test_installed_packages_cannot_be_read(shell: ShellClient) -> None:
    installed = shell.folders.installed
    own = Path(os.__file__).parent
    result = shell.sh(
        f"cat {installed}/pluggy/*.py {installed}/codetaste/*.py; ls {installed}; "
        f"cat {own}/site-packages/pluggy/*.py; "
        "find / \\( -path '*site-packages/*' -o -path '*dist-packages/*' -o -path '*python-wheels/*' \\) -type f 2>/dev/null | head; "
        "cat /usr/lib/python3/dist-packages/*/__init__.py /usr/local/lib/python3*/dist-packages/*/__init__.py | head"
    )
    assert result.out == "", result.out[:400]
    result = shell.sh("python3 -c 'import pluggy'; python3 -c 'import pip'; python3 -c 'import codetaste'")
    assert result.err.count("ModuleNotFoundError") == 3, result.output


def test_standard_library_is_available(shell: ShellClient) -> None:
    result = shell.sh("python3 -c 'import json, sqlite3, ast; print(json.dumps([1]))'")
    assert result.out == "[1]\n", result.output


def test_device_nodes_cannot_be_made_or_changed_but_null_and_urandom_work(shell: ShellClient) -> None:
    before = Path("/dev/null").stat().st_mode
    result = shell.sh(
        "mknod $TMPDIR/disk b 254 0 && echo MADE; chmod 600 /dev/null /dev/zero && echo CHANGED; "
        "head -c 3 /dev/vda /dev/sda /dev/mem /dev/kmsg && echo READ; echo x > /dev/null && head -c 2 /dev/urandom | wc -c"
    )
    assert result.out.strip() == "2", result.output
    assert Path("/dev/null").stat().st_mode == before


def test_kernel_settings_cannot_be_changed(shell: ShellClient) -> None:
    result = shell.sh(
        "for s in vm/swappiness kernel/core_pattern kernel/hostname kernel/modprobe; do "
        'v=$(cat /proc/sys/$s); echo "$v" > /proc/sys/$s && echo CHANGED $s; done; '
        "echo 0 > /proc/self/oom_score_adj && echo CHANGED; echo s > /proc/sysrq-trigger && echo CHANGED"
    )
    assert "CHANGED" not in result.out, result.output


def test_mounting_is_refused(shell: ShellClient) -> None:
    result = shell.sh(
        "mount -t tmpfs none /tmp && echo D; mount --bind / /tmp && echo D; umount /proc && echo D; chroot / true && echo D"
    )
    assert "D" not in result.out, result.output
    result = shell.py("""
        call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)
        call("umount2", b"/proc", 2)
        call("chroot", b"/")
        syscall("open_tree", 428, -100, b"/", 1)
        syscall("fsopen", 430, b"tmpfs", 0)
        syscall("move_mount", 429, -1, b"", -100, b"/tmp", 4)
        syscall("mount_setattr", 442, -100, b"/", 0, 0, 0)
        syscall("statmount", 457, 0, 0, 0, 0)
    """)
    assert result.out.count("refused EPERM") == 8, result.output
