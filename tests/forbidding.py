"""Run a command where neither namespaces nor Landlock can be had: ``python forbidding.py COMMAND…``.

A seccomp filter answers "not permitted" to what makes namespaces and mounts, and "no such call" to Landlock,
as a hardened container or an old kernel does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_REFUSED = {  # unshare, setns, mount, pivot_root, move_mount, fsopen, open_tree
    "x86_64": (272, 308, 165, 155, 429, 430, 428),
    "aarch64": (97, 268, 40, 41, 429, 430, 428),
}
_UNKNOWN = (
    444,
    445,
    446,
)  # landlock_create_ruleset, landlock_add_rule, landlock_restrict_self: the same everywhere
_LOAD_NUMBER = struct.pack("HBBI", 0x20, 0, 0, 0)
_ALLOW = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid() -> None:
    """Take namespaces, mounts and Landlock away from this process and all it starts."""
    answers = dict.fromkeys(_REFUSED[platform.machine()], errno.EPERM) | dict.fromkeys(_UNKNOWN, errno.ENOSYS)
    code = _LOAD_NUMBER
    for number, error in answers.items():
        code += struct.pack("HBBI", 0x15, 0, 1, number)  # another number: skip the answer
        code += struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | error)
    code += _ALLOW
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program)),
    ):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
