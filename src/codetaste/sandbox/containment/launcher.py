"""Stand-alone script that runs a command under Landlock and a seccomp filter, and ends all its processes.

It is run by ``python -I -S``, imports only the standard library, and is imported by no other module. Usage:
``launcher.py PLAN_FD STATUS_FD``, where PLAN_FD yields one marshalled mapping (see ``landlock.py``; only
modules that load quickly are used, because the script starts once for every command).

Three processes: a keeper, a supervisor, and the command. There is no PID namespace, so both of the first
adopt the orphans among their descendants and kill until none is left; if one of the two is killed the other
still does it.
"""

# ruff: noqa: PTH116, PTH123, PTH208 (pathlib loads slowly)
from __future__ import annotations

import contextlib
import ctypes
import marshal
import os
import resource
import signal
import sys
import time

TYPE_CHECKING = False  # typing loads slowly
if TYPE_CHECKING:
    from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_SECUREBITS = 1, 24, 22, 28
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
_SECCOMP_MODE_FILTER = 2
_SECUREBITS = 0b101111  # NOROOT, NO_SETUID_FIXUP, both locked; KEEP_CAPS locked
_CAPABILITY_VERSION_3 = 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _RULE_PATH_BENEATH = 444, 445, 446, 1
_LAST_CAPABILITY = 63
_KILL_WITHIN_S = 8.0
_EXEC_FAILED = 127
_NICENESS = 5


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def main() -> None:
    """Run the command, report its end, and leave nothing behind."""
    plan_fd, status_fd = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.set_inheritable(int(descriptor), int(descriptor) <= sys.stderr.fileno())
    with open(plan_fd, "rb") as source:
        plan = marshal.load(source)  # noqa: S302 (written by our own parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})
    starter = int(plan["starter"])
    _adopt(signal.SIGTERM, starter)
    keeper = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        _adopt(signal.SIGTERM, keeper)
        _supervise(plan, status_fd)
        os._exit(0)
    _wait_for(supervisor)
    _kill_descendants()
    if plan["scratch"]:
        # Not shutil.rmtree: it gives up on trees that are nested too deeply.
        os.spawnv(os.P_WAIT, "/bin/rm", ["rm", "-rf", "--", plan["scratch"]])  # noqa: S606 (no shell is wanted)


def _adopt(signal_when_orphaned: int, parent: int) -> None:
    """Become the parent of all orphans below, and get a signal when the own parent is gone."""
    _check(_LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "adopt orphans")
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal_when_orphaned, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _supervise(plan: dict[str, Any], status_fd: int) -> None:
    problem_out, problem_in = os.pipe()
    supervisor = os.getpid()
    command = os.fork()
    if command == 0:
        try:
            _become_command(plan, supervisor, problem_in)
        except BaseException as fault:  # noqa: BLE001 (the child must not go on as a second supervisor)
            os.write(problem_in, f"{type(fault).__name__}: {fault}".encode())
        finally:
            os._exit(_EXEC_FAILED)
    os.close(problem_in)
    code = _wait_for(command)
    _kill_descendants()
    problem = os.read(problem_out, 4096).decode(errors="replace")
    if problem:
        text = "".join(letter if letter.isprintable() and letter not in '"\\' else " " for letter in problem)
        os.write(status_fd, f'{{"error": "{text}"}}\n'.encode())
    elif code is not None:
        os.write(status_fd, f'{{"exit-code": {code}}}\n'.encode())


def _wait_for(child: int) -> int | None:
    """Return the exit code of ``child``, reaping all others; None if a signal arrived before it ended."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    code = os.waitstatus_to_exitcode(ended[1])
                    return code if code >= 0 else 128 - code
        if signal.sigwait({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}) != signal.SIGCHLD:
            return None


def _kill_descendants() -> None:
    """Kill until no process is left: a round misses only those started during it."""
    deadline = time.monotonic() + _KILL_WITHIN_S
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.0005)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                contextlib.suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as stat,
            ):
                children.setdefault(int(stat.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _become_command(plan: dict[str, Any], supervisor: int, problem_in: int) -> None:
    """Give up every right that the command must not have, and execute it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        return
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    os.setsid()
    os.umask(0o077)
    os.chdir(str(plan["cwd"]))
    _set_limits(plan["limits"])
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "forbid new privileges")
    _restrict_files(plan["landlock"])
    _drop_capabilities()
    program: bytes = plan["seccomp"]
    packed = _Filter(len(program) // 8, program)
    _check(
        _LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(packed), 0, 0), "filter system calls"
    )
    _execute(list(plan["command"]), dict(plan["env"]), problem_in)


def _execute(argv: list[str], env: dict[str, str], problem_in: int) -> None:
    """Execute the program. Not ``os.execvpe``: it imports, and no module can be read any more."""
    name, fault = argv[0], "No such file or directory"
    for path in [name] if "/" in name else [f"{folder}/{name}" for folder in env.get("PATH", "").split(":")]:
        try:
            os.execve(path, argv, env)  # noqa: S606 (no shell is wanted)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as refused:
            fault = str(refused.strerror)
    os.close(problem_in)
    os.write(sys.stderr.fileno(), f"{name}: {fault}\n".encode(errors="replace"))
    os._exit(_EXEC_FAILED)


def _set_limits(limits: dict[str, int]) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
        score.write(b"1000")
    os.nice(_NICENESS)  # so that the supervisor wins the race against a fork bomb
    if os.getuid():  # root has no such limit: the host watches
        limits = dict(limits, RLIMIT_NPROC=limits["RLIMIT_NPROC"] + _tasks_of_this_user())
    for name, value in limits.items():
        number = getattr(resource, name)
        ceiling = resource.getrlimit(number)[1]
        limit = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(number, (limit, limit))


def _tasks_of_this_user() -> int:
    """Return the number of threads of this user: the kernel counts all of them, in any namespace."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.getuid():
                    total += len(os.listdir(f"/proc/{name}/task"))
    return total


def _restrict_files(landlock: dict[str, Any]) -> None:
    attributes = _RulesetAttributes(landlock["fs"], landlock["net"], landlock["scoped"])
    ruleset = _LIBC.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(landlock["size"]), 0)
    _check(ruleset, "create a Landlock ruleset")
    for path, access in landlock["rules"]:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # removed since the list was made: it stays forbidden
        rule = _PathBeneath(access, descriptor)
        _check(_LIBC.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0), f"allow {path}")
        os.close(descriptor)
    _check(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0), "restrict itself with Landlock")
    os.close(ruleset)


def _drop_capabilities() -> None:
    """Drop all for good, also from the bounding set, and root's right to regain them by an exec."""
    _LIBC.prctl(_PR_SET_SECUREBITS, _SECUREBITS, 0, 0, 0)
    for number in range(_LAST_CAPABILITY + 1):
        _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    _check(_LIBC.capset(ctypes.byref(header), (ctypes.c_uint32 * 6)()), "drop capabilities")


def _check(result: int, purpose: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"cannot {purpose}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
