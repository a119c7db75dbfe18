"""The system call filter, run by an interpreter of its instructions that was written for this test alone."""

from __future__ import annotations

import errno
import struct

import pytest

from codetaste.sandbox.seccomp.shell_filter import FilterGaps, assemble_shell_filter

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SOCKET = {"x86_64": 41, "aarch64": 198}
CLONE = {"x86_64": 56, "aarch64": 220}
OPENAT = {"x86_64": 257, "aarch64": 56}
KILL = {"x86_64": 62, "aarch64": 129}
IOCTL = {"x86_64": 16, "aarch64": 29}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
FCHMOD = {"x86_64": 91, "aarch64": 52}
PRLIMIT = {"x86_64": 302, "aarch64": 261}
READ = {"x86_64": 0, "aarch64": 63}
EVERY_GAP = FilterGaps(files=True, processes=True, signals=True, truncate=True)
ALLOWED, KILLED = "allowed", "killed"

both = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])


def verdict(code: bytes, machine: int, number: int, *arguments: int) -> str:
    """Interpret a filter for one call, as the kernel would."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *(*arguments, *[0] * (6 - len(arguments))))
    at, value = 0, 0
    while True:
        operation, then, otherwise, operand = struct.unpack_from("<HBBI", code, 8 * at)
        at += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x54:
            value &= operand
        elif operation == 0x15:
            at += then if value == operand else otherwise
        elif operation == 0x25:
            at += then if value > operand else otherwise
        elif operation == 0x06:
            if operand == 0x7FFF0000:
                return ALLOWED
            return KILLED if operand == 0x80000000 else errno.errorcode[operand & 0xFFFF]
        else:
            raise AssertionError(operation)


@both
def test_ordinary_calls_pass_and_sockets_do_not(machine: str) -> None:
    for gaps in (FilterGaps(), EVERY_GAP):
        code = assemble_shell_filter(gaps, machine)
        assert verdict(code, AUDIT[machine], READ[machine], 0, 1, 2) == ALLOWED
        for family in range(50):
            assert verdict(code, AUDIT[machine], SOCKET[machine], family, 1) == "EACCES"


@both
def test_calls_of_another_machine_kill(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    for other in (0x40000003, 0x40000028, 0, *(audit for name, audit in AUDIT.items() if name != machine)):
        assert verdict(code, other, READ[machine]) == KILLED
    assert verdict(code, AUDIT[machine], 0x40000000 | SOCKET[machine]) == KILLED
    assert verdict(code, AUDIT[machine], 0xFFFFFFFF) == KILLED


@both
def test_calls_that_are_not_known_yet_are_unknown(machine: str) -> None:
    assert verdict(assemble_shell_filter(FilterGaps(), machine), AUDIT[machine], 470) == "ENOSYS"


@both
def test_only_namespaces_are_refused_to_new_processes(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    assert verdict(code, AUDIT[machine], CLONE[machine], 0x1200011) == ALLOWED
    for bit in (0x20000, 0x2000000, 0x10000000, 0x40000000):
        assert verdict(code, AUDIT[machine], CLONE[machine], bit | 17) == "EPERM"
        assert verdict(code, AUDIT[machine], CLONE[machine], 1 << 40 | bit) == "EPERM"


@both
def test_a_pair_of_sockets_is_a_stream_between_the_two(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    allowed = {
        (family, kind)
        for family in range(50)
        for kind in range(16)
        if verdict(code, AUDIT[machine], SOCKETPAIR[machine], family, kind | 0x80000) == ALLOWED
    }
    assert allowed == {(1, 1), (1, 5)}


@both
def test_typing_into_a_terminal_looks_unsupported(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    for request in (0x5412, 0x541C, 0x40086602, 0x1_0000_5412):
        assert verdict(code, AUDIT[machine], IOCTL[machine], 1, request) == "ENOTTY"
    assert verdict(code, AUDIT[machine], IOCTL[machine], 1, 0x5401) == ALLOWED


@both
def test_what_other_means_hold_is_left_to_them(machine: str) -> None:
    few, all_ = assemble_shell_filter(FilterGaps(), machine), assemble_shell_filter(EVERY_GAP, machine)
    audit = AUDIT[machine]
    for number, arguments, refused in (
        (FCHMOD, (3, 0o777), "EPERM"),
        (PRLIMIT, (1234, 0), "EPERM"),
        (KILL, (1234, 9), "EPERM"),
        (OPENAT, (0, 0, 0o1000), "EPERM"),
    ):
        assert verdict(few, audit, number[machine], *arguments) == ALLOWED
        assert verdict(all_, audit, number[machine], *arguments) == refused
    for number, arguments in (
        (PRLIMIT, (0, 7)),
        (KILL, (0, 9)),
        (OPENAT, (0, 0, 0)),
        (OPENAT, (0, 0, 0o1101)),
        (OPENAT, (0, 0, 0o1002)),
    ):
        assert verdict(all_, audit, number[machine], *arguments) == ALLOWED


@both
def test_the_filter_is_no_longer_than_the_kernel_takes(machine: str) -> None:
    assert len(assemble_shell_filter(EVERY_GAP, machine)) // 8 < 4096
