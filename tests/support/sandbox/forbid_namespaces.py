"""Start a program where user namespaces are forbidden.

usage: forbid_namespaces.py namespaces|everything PROGRAM …

"everything" hides Landlock as well. The seccomp filter shares no code with the one under test.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
NUMBERS = {  # unshare, setns, mount, clone
    "x86_64": (272, 308, 165, 56),
    "aarch64": (97, 268, 40, 220),
}
CLONE3, LANDLOCK_CREATE_RULESET = 435, 444
NEW_NAMESPACES = 0x7E020000


def refuse(number: int, error: int) -> list[bytes]:
    return [struct.pack("<HBBI", 0x15, 0, 1, number), struct.pack("<HBBI", 0x06, 0, 0, 0x50000 | error)]


def assemble_filter(*, hide_landlock: bool) -> bytes:
    unshare, setns, mount, clone = NUMBERS[platform.machine()]
    code = [struct.pack("<HBBI", 0x20, 0, 0, 0)]
    for number in (unshare, setns, mount):
        code += refuse(number, errno.EPERM)
    code += refuse(CLONE3, errno.ENOSYS)
    if hide_landlock:
        code += refuse(LANDLOCK_CREATE_RULESET, errno.ENOSYS)
    code += [
        struct.pack("<HBBI", 0x15, 0, 3, clone),
        struct.pack("<HBBI", 0x20, 0, 0, 16),
        struct.pack("<HBBI", 0x45, 0, 1, NEW_NAMESPACES),
        struct.pack("<HBBI", 0x06, 0, 0, 0x50000 | errno.EPERM),
        struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000),
    ]
    return b"".join(code)


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def main() -> None:
    code = assemble_filter(hide_landlock=sys.argv[1] == "everything")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("cannot forbid new privileges")
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(Filter(len(code) // 8, code)), 0, 0):
        sys.exit("cannot install a filter")
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
