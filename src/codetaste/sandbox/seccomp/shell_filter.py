"""The system calls that are denied to a contained command of the rule agent's shell.

Both engines use this filter; under Landlock it also replaces what a mount and a PID namespace protect under
bubblewrap.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from codetaste.sandbox.seccomp.bpf import ArgumentCheck, Denial, assemble

NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_O_TRUNC, _O_ACCMODE = 0o1000, 0o3
_AF_UNIX, _STREAM, _SEQPACKET, _SOCKET_KIND = 1, 1, 5, 0xF
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
_SIGURG = 23
_HARMLESS_IOCTLS = (
    0x5401,  # TCGETS: isatty
    0x540F,  # TIOCGPGRP
    0x5413,  # TIOCGWINSZ
    0x541B,  # FIONREAD
    0x5421,  # FIONBIO
    0x5450,  # FIONCLEX
    0x5451,  # FIOCLEX
    0x802C542A,  # TCGETS2
)
_HARMLESS_FCNTLS = tuple(
    command
    for command in (*range(17), *range(36, 39), *range(1024, 1042))
    if command not in {_F_SETOWN, _F_SETSIG, _F_SETOWN_EX}
)


_ALWAYS_DENIED = (
    Denial("socket connect bind listen accept accept4", errno.EACCES),
    # Only connected types: a datagram socket can send to any address.
    Denial(
        "socketpair",
        errno.EACCES,
        (ArgumentCheck(0, (_AF_UNIX,)), ArgumentCheck(1, (_STREAM, _SEQPACKET), _SOCKET_KIND)),
    ),
    Denial("io_uring_setup io_uring_enter io_uring_register clone3", errno.ENOSYS),
    Denial("clone unshare", unless=(ArgumentCheck(0, (0,), NAMESPACES),)),
    Denial("ioctl", errno.ENOTTY, (ArgumentCheck(1, _HARMLESS_IOCTLS),)),
    Denial(
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp "
        "setns mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig "
        "fsmount fspick mount_setattr statmount listmount swapon swapoff reboot kexec_load "
        "kexec_file_load init_module finit_module delete_module bpf perf_event_open userfaultfd keyctl "
        "add_key request_key name_to_handle_at open_by_handle_at acct quotactl quotactl_fd syslog "
        "settimeofday clock_settime clock_adjtime sethostname setdomainname iopl ioperm modify_ldt "
        "vhangup lookup_dcookie nfsservctl fanotify_init fanotify_mark uselib ustat sysfs _sysctl "
        "migrate_pages move_pages"
    ),
    # Memory that belongs to no process is not counted, and outlives its creator.
    Denial("shmget msgget semget mq_open mq_unlink memfd_create memfd_secret", errno.ENOSYS),
)

_SHARED_FILES = (  # what Landlock does not check
    Denial(
        "chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat setxattr lsetxattr fsetxattr "
        "setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr utime utimes "
        "futimesat utimensat"
    ),
)
_SHARED_PROCESSES = (  # without a PID namespace other processes of the user are within reach
    Denial("prlimit64", unless=(ArgumentCheck(0, (0,)),)),
    Denial("setpriority ioprio_set", unless=(ArgumentCheck(0, (0, 1)), ArgumentCheck(1, (0,)))),
    Denial(
        "sched_setparam sched_setscheduler sched_setaffinity sched_setattr", unless=(ArgumentCheck(0, (0,)),)
    ),
)
_UNSCOPED_SIGNALS = (
    Denial("kill", unless=(ArgumentCheck(0, (0,)),)),
    Denial("tkill", unless=(ArgumentCheck(1, (_SIGURG,)),)),
    Denial("tgkill", unless=(ArgumentCheck(2, (_SIGURG,)),)),
    Denial("rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal"),
    # Its other commands let a ready descriptor send a chosen signal to a process.
    Denial("fcntl", errno.EINVAL, (ArgumentCheck(1, _HARMLESS_FCNTLS),)),
)
_TRUNCATING = tuple(
    flag | access for flag in (0, _O_TRUNC) for access in range(4) if flag | access != _O_TRUNC
)
_UNGUARDED_TRUNCATE = (
    Denial("truncate"),
    Denial("open", unless=(ArgumentCheck(1, _TRUNCATING, _O_TRUNC | _O_ACCMODE),)),
    Denial("openat", unless=(ArgumentCheck(2, _TRUNCATING, _O_TRUNC | _O_ACCMODE),)),
    Denial("openat2", errno.ENOSYS),
)


@dataclass(frozen=True, slots=True)
class FilterGaps:
    """What the engine does not protect, so that the filter must."""

    files: bool = False
    """No read-only mount: modes, owners, times and attributes could be changed."""
    processes: bool = False
    """No process namespace: other processes of the same user could be slowed or limited."""
    signals: bool = False
    """Signals can reach processes of the host."""
    truncate: bool = False
    """A file can be opened for reading and truncated at once."""


def assemble_shell_filter(gaps: FilterGaps, machine: str = "") -> bytes:
    """Return the filter as an array of ``struct sock_filter`` for ``machine``, by default this one.

    Raises:
        KeyError: the filter has no system call numbers for the machine; check ``is_supported`` first.
    """
    denials = (
        *_ALWAYS_DENIED,
        *(_SHARED_FILES if gaps.files else ()),
        *(_SHARED_PROCESSES if gaps.processes else ()),
        *(_UNSCOPED_SIGNALS if gaps.signals else ()),
        *(_UNGUARDED_TRUNCATE if gaps.truncate else ()),
    )
    return assemble(denials, machine)
