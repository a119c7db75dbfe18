"""A contained command cannot see, change or end other processes, or gain privileges."""

# ruff: noqa: E501 (scripts for another interpreter)
from __future__ import annotations

import os

import pytest

from support.sandbox.containment import KEY, ShellClient

pytestmark = pytest.mark.usefixtures("host_unchanged")


def test_environment_of_the_parent_is_not_inherited(shell: ShellClient) -> None:
    assert shell.greeting["secret"] == len(KEY), "the client has no key to protect"
    result = shell.sh("env; set; cat /proc/self/environ; cat /proc/*/environ /proc/*/cmdline; echo")
    assert KEY not in result.output
    assert "ANTHROPIC" not in result.output
    assert "PYTHONPATH" not in result.out
    assert str(shell.folders.golden) not in result.out


def test_given_variables_are_set(shell: ShellClient) -> None:
    result = shell.run("sh", "-c", "echo $GREETING", env={"GREETING": "hello there"})
    assert result.out == "hello there\n"


def test_other_processes_cannot_be_listed_or_read(shell: ShellClient) -> None:
    result = shell.sh(
        f"for p in {shell.host_pid} {os.getpid()}; do for f in environ mem maps cmdline status stat fd root cwd exe ns/user task; do "
        "cat /proc/$p/$f 2>/dev/null; ls /proc/$p/$f/ 2>/dev/null; readlink /proc/$p/$f/* 2>/dev/null; done; done | "
        f"wc -c; ls /proc | grep -c -x -e {shell.host_pid} -e {os.getpid()}"
    )
    assert result.out.split() == ["0", "0"], result.output


def test_memory_and_files_of_the_parent_cannot_be_accessed(shell: ShellClient) -> None:
    result = shell.py(
        """
        for pid in map(int, sys.argv[1:]):
            attempt("environ", open, f"/proc/{pid}/environ")
            attempt("mem", open, f"/proc/{pid}/mem", "rb")
            attempt("root", os.listdir, f"/proc/{pid}/root/etc")
            attempt("cwd", os.listdir, f"/proc/{pid}/cwd/")
            attempt("fd", os.listdir, f"/proc/{pid}/fd")
            attempt("task", open, f"/proc/{pid}/task/{pid}/environ")
            call("ptrace", 16, pid, 0, 0)
            call("ptrace", 0x4206, pid, 0, 0)
            buffer = ctypes.create_string_buffer(8)
            vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
            call("process_vm_readv", pid, vector, 1, vector, 1, 0)
            call("process_vm_writev", pid, vector, 1, vector, 1, 0)
            syscall("kcmp", 312, os.getpid(), pid, 0, 0, 0)
            syscall("pidfd_getfd", 438, 0, 0, 0)
            syscall("get_robust_list", {"x86_64": 274}.get(os.uname().machine, 100), pid, buffer, buffer)
        """,
        shell.host_pid,
        os.getpid(),
    )
    assert "DONE" not in result.out, result.out
    assert result.out.count("refused") == 26, result.output


def test_other_processes_cannot_be_signalled_or_slowed(shell: ShellClient) -> None:
    limits = os.sched_getaffinity(shell.host_pid), os.getpriority(os.PRIO_PROCESS, shell.host_pid)
    result = shell.py(
        """
        import resource, signal
        host = int(sys.argv[1])
        for pid in (host, os.getppid()):
            if pid in (0, os.getpid()): continue
            for number in (0, 9, 15, 19):
                attempt("kill", os.kill, pid, number)
            call("tgkill", pid, pid, 9) if hasattr(libc, "tgkill") else print("refused")
            attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 9))
        attempt("limit", resource.prlimit, host, resource.RLIMIT_CPU, (1, 1))
        attempt("priority", os.setpriority, os.PRIO_PROCESS, host, 19)
        attempt("priority of user", os.setpriority, os.PRIO_USER, os.getuid(), 19)
        attempt("affinity", os.sched_setaffinity, host, {0})
        attempt("scheduler", os.sched_setscheduler, host, 5, os.sched_param(0))
        """,
        shell.host_pid,
    )
    lines = [line for line in result.out.splitlines() if "DONE" in line]
    # In a process namespace the parent and all processes of the user may belong to the command.
    assert not lines or (
        shell.kind == "bubblewrap"
        and all(w.startswith(("priority of user", "kill", "tgkill", "pidfd")) for w in lines)
    ), result.output
    assert (os.sched_getaffinity(shell.host_pid), os.getpriority(os.PRIO_PROCESS, shell.host_pid)) == limits
    assert shell.sh("echo alive").out == "alive\n"


def test_killing_all_processes_ends_only_the_command(shell: ShellClient) -> None:
    result = shell.sh("kill -9 -1; kill -9 $PPID; kill -9 0")
    assert result.exit_code != 0
    assert shell.sh("echo alive").out == "alive\n"


def test_pidfd_signal_reaches_only_own_processes(shell: ShellClient) -> None:
    result = shell.py(
        """
        import fcntl
        r, w = os.pipe()
        attempt("signal", fcntl.fcntl, r, 10, 9)
        attempt("owner", fcntl.fcntl, r, 8, int(sys.argv[1]))
        attempt("async", fcntl.fcntl, r, fcntl.F_SETFL, fcntl.fcntl(r, fcntl.F_GETFL) | 0o20000)
        os.write(w, b"x")
        """,
        shell.host_pid,
    )
    assert result.exit_code == 0, result.output
    assert shell.sh("echo alive").out == "alive\n"


def test_only_standard_streams_are_inherited(shell: ShellClient) -> None:
    result = shell.py("""
        for fd in range(3, 1024):
            try: os.fstat(fd)
            except OSError: continue
            print("open", fd, end=" ")
        print(repr(sys.stdin.read()))
    """)
    assert result.out == "''\n", result.output


def test_namespaces_cannot_be_made_or_entered(shell: ShellClient) -> None:
    result = shell.sh(
        "unshare -U true && echo D; unshare -r true && echo D; unshare -n true && echo D; unshare -m true && echo D; "
        f"nsenter -t {shell.host_pid} -m true && echo D; nsenter -t 1 -a true && echo D"
    )
    assert result.out == "", result.output
    result = shell.py("""
        for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
            call("unshare", flag)
            syscall("clone", {"x86_64": 56}.get(os.uname().machine, 220), flag | 17, 0, 0, 0, 0)
        syscall("clone3", 435, ctypes.create_string_buffer(88), 88)
        call("setns", 0, 0)
    """)
    assert result.out.count("refused EPERM") == 15, result.output
    assert result.out.count("refused ENOSYS") == 1, result.output


def test_setuid_programs_gain_no_privileges(shell: ShellClient) -> None:
    result = shell.sh(
        "su -c id daemon; su -c id; sudo -n id; mount /tmp; ping -c 1 127.0.0.1; newgrp root; passwd -d root; echo end"
    )
    assert result.out.strip() == "end", result.output
    result = shell.sh(
        "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; python3 -c 'import os; print(os.getresuid())'"
    )
    if shell.kind == "bubblewrap":
        assert result.out.count("0000000000000000") == 5, result.output
        assert "NoNewPrivs:\t1" in result.out
    result = shell.py("""
        class Header(ctypes.Structure): _fields_ = (("v", ctypes.c_uint32), ("pid", ctypes.c_int))
        data = (ctypes.c_uint32 * 6)()
        libc.capget(ctypes.byref(Header(0x20080522, 0)), data)
        print("capabilities", list(data), "bounding", [n for n in range(41) if libc.prctl(23, n, 0, 0, 0) == 1] if os.getuid() == 0 else [])
        print("privileges", libc.prctl(39, 0, 0, 0, 0), "filter", libc.prctl(21, 0, 0, 0, 0))
        attempt("group", os.setgroups, [0])
        attempt("user", os.setuid, 1 if os.getuid() == 0 else 0)
        attempt("owner", os.chown, os.environ["TMPDIR"], 12345, 12345)
    """)
    assert "capabilities [0, 0, 0, 0, 0, 0] bounding []" in result.out, result.output
    assert "privileges 1 filter 2" in result.out
    assert "DONE" not in result.out, result.out


def test_terminal_is_unavailable(shell: ShellClient) -> None:
    result = shell.py(
        """
        import fcntl
        attempt("terminal", os.open, "/dev/tty", os.O_RDWR)
        for fd in (0, 1, 2):
            attempt("type", fcntl.ioctl, fd, 0x5412, b"x")
            attempt("console", fcntl.ioctl, fd, 0x541C, b"x")
            attempt("own", fcntl.ioctl, fd, 0x540E, 1)
        attempt("new", os.open, "/dev/ptmx", os.O_RDWR)
        print("session of its own", os.getsid(0) != int(sys.argv[1]))
    """,
        os.getsid(0),
    )
    assert "DONE" not in result.out, result.out
    assert "session of its own True" in result.out


def test_dangerous_system_calls_are_refused(shell: ShellClient) -> None:
    result = shell.py("""
        numbers = {"x86_64": dict(bpf=321, perf=298, uffd=323, keyctl=250, add_key=248, request_key=249, kexec=246, module=175,
                                  syslog=103, memfd=319, shm=29, msg=68, sem=64, mq=240, acct=163, swapon=167, reboot=169,
                                  fanotify=300, quotactl=179, settime=227, host=170)}
        generic = dict(bpf=280, perf=241, uffd=282, keyctl=219, add_key=217, request_key=218, kexec=104, module=105, syslog=116,
                       memfd=279, shm=194, msg=186, sem=190, mq=180, acct=89, swapon=224, reboot=142, fanotify=262, quotactl=60,
                       settime=112, host=161)
        for name, number in numbers.get(os.uname().machine, generic).items():
            syscall(name, number, 3 if name == "syslog" else 0, 0, 0, 0, 0)
        for number in (470, 480, 1000):
            syscall("unknown", number, 0, 0, 0)
    """)
    assert "DONE" not in result.out, result.out
    assert result.out.count("refused EPERM") == 16, result.output
    assert result.out.count("refused ENOSYS") == 8, result.output


@pytest.mark.parametrize("number", [0x40000000 + 41, 0x40000000 + 39])
def test_call_numbers_of_another_architecture_end_the_command(number: int, shell: ShellClient) -> None:
    result = shell.py("libc.syscall(int(sys.argv[1]), 2, 1, 0); print('survived')", number)
    assert "survived" not in result.out
    assert result.exit_code == 128 + 31, result.output


def test_32_bit_calls_end_the_command(shell: ShellClient) -> None:
    if os.uname().machine != "x86_64":
        return
    # socketcall(1, …) by the 32-bit entry: mov eax, 102; mov ebx, 1; int 0x80; ret
    result = shell.py("""
        import mmap
        page = mmap.mmap(-1, 4096, prot=7)
        page.write(bytes.fromhex("53b866000000bb01000000cd805bc3"))
        code = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        print("survived", code())
    """)
    assert "survived" not in result.out, result.out
    assert result.exit_code in {128 + 31, 128 + 11}, result.output
