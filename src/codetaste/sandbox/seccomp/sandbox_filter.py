"""The system call filter of a sandbox: denies what namespaces and dropped privileges leave open.

That is: sockets that no network namespace contains (vsock, the connection of a virtual machine to its host),
io_uring, whose calls pass no filter, keyrings shared by all containers of a user, and user namespaces, in
which every user is root. Builds, test suites and debuggers need none of them. The same table yields the BPF
program that bubblewrap loads and the JSON profile that a container engine takes instead of its own.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

from codetaste.sandbox.seccomp.bpf import ALL_BITS, ArgumentCheck, Denial, assemble
from codetaste.sandbox.seccomp.shell_filter import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_NEWTIME = 0x80  # an exit signal's bit in clone, a namespace in unshare

DENIALS = (
    # Programs list network addresses by netlink; changing anything there takes a privilege.
    Denial("socket", errno.EAFNOSUPPORT, (ArgumentCheck(0, (_UNIX, _INET, _INET6, _NETLINK)),)),
    Denial("socketpair", errno.EAFNOSUPPORT, (ArgumentCheck(0, (_UNIX,)),)),
    Denial("io_uring_setup io_uring_enter io_uring_register", errno.ENOSYS),
    # Its flags lie in memory, which no filter can read; without it C libraries use clone.
    Denial("clone3", errno.ENOSYS),
    Denial("clone", unless=(ArgumentCheck(0, (0,), NAMESPACES),)),
    Denial("unshare", unless=(ArgumentCheck(0, (0,), NAMESPACES | _NEWTIME),)),
    Denial("add_key request_key keyctl memfd_secret", errno.ENOSYS),
    Denial(
        "setns mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig fsmount "
        "fspick mount_setattr swapon swapoff reboot kexec_load kexec_file_load init_module finit_module "
        "delete_module bpf perf_event_open userfaultfd open_by_handle_at acct quotactl quotactl_fd syslog "
        "settimeofday clock_settime clock_adjtime sethostname setdomainname iopl ioperm modify_ldt vhangup "
        "lookup_dcookie nfsservctl fanotify_init uselib ustat sysfs _sysctl migrate_pages move_pages kcmp "
        "pidfd_getfd"
    ),
)


def assemble_sandbox_filter(machine: str = "") -> bytes:
    """Return the filter as an array of ``struct sock_filter`` for ``machine``, by default this one.

    Raises:
        KeyError: the filter has no system call numbers for the machine; check ``is_supported`` first.
    """
    return assemble(DENIALS, machine)


def render_sandbox_profile() -> str:
    """Return the filter as a container engine takes it: JSON after ``seccomp=`` in ``SecurityOpt``.

    A process that makes calls of another architecture (32-bit included) is killed, as under
    ``assemble_sandbox_filter``.
    """
    rules = [rule for denial in DENIALS for rule in _rules(denial)]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _rules(denial: Denial) -> Iterator[dict[str, Any]]:
    """A profile lists when to deny, where one matching rule is enough; ``denial`` lists when not to."""
    rule = {"names": denial.names.split(), "action": "SCMP_ACT_ERRNO", "errnoRet": denial.error}
    if not denial.unless:
        yield rule
    for check in denial.unless:
        for condition in _violations(check):
            yield {**rule, "args": [{"index": check.argument, **condition}]}


def _violations(check: ArgumentCheck) -> Iterator[dict[str, Any]]:
    if check.mask == ALL_BITS:
        highest = max(check.values)
        yield {"op": "SCMP_CMP_GT", "value": highest}
        yield from (
            {"op": "SCMP_CMP_EQ", "value": value} for value in range(highest) if value not in check.values
        )
        return
    for bit in (1 << position for position in range(32)):
        if check.mask & bit:
            yield {"op": "SCMP_CMP_MASKED_EQ", "value": bit, "valueTwo": bit}
