"""The system call filter of a shell, run by an interpreter written for this test."""

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

both_architectures = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])


def run_filter(code: bytes, machine: int, number: int, *arguments: int) -> str:
    """Return the verdict of a filter for one call, as the kernel would."""
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


@both_architectures
def test_ordinary_calls_are_allowed_and_sockets_refused(machine: str) -> None:
    for gaps in (FilterGaps(), EVERY_GAP):
        code = assemble_shell_filter(gaps, machine)
        assert run_filter(code, AUDIT[machine], READ[machine], 0, 1, 2) == ALLOWED
        for family in range(50):
            assert run_filter(code, AUDIT[machine], SOCKET[machine], family, 1) == "EACCES"


@both_architectures
def test_calls_of_another_architecture_kill_the_process(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    for other in (0x40000003, 0x40000028, 0, *(audit for name, audit in AUDIT.items() if name != machine)):
        assert run_filter(code, other, READ[machine]) == KILLED
    assert run_filter(code, AUDIT[machine], 0x40000000 | SOCKET[machine]) == KILLED
    assert run_filter(code, AUDIT[machine], 0xFFFFFFFF) == KILLED


@both_architectures
def test_unknown_calls_are_reported_as_unknown(machine: str) -> None:
    assert run_filter(assemble_shell_filter(FilterGaps(), machine), AUDIT[machine], 470) == "ENOSYS"


@both_architectures
def test_clone_is_allowed_without_new_namespaces(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    assert run_filter(code, AUDIT[machine], CLONE[machine], 0x1200011) == ALLOWED
    for bit in (0x20000, 0x2000000, 0x10000000, 0x40000000):
        assert run_filter(code, AUDIT[machine], CLONE[machine], bit | 17) == "EPERM"
        assert run_filter(code, AUDIT[machine], CLONE[machine], 1 << 40 | bit) == "EPERM"


@both_architectures
def test_only_stream_and_seqpacket_unix_socket_pairs_are_allowed(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    allowed = {
        (family, kind)
        for family in range(50)
        for kind in range(16)
        if run_filter(code, AUDIT[machine], SOCKETPAIR[machine], family, kind | 0x80000) == ALLOWED
    }
    assert allowed == {(1, 1), (1, 5)}


@both_architectures
def test_terminal_input_calls_are_refused_as_unsupported(machine: str) -> None:
    code = assemble_shell_filter(FilterGaps(), machine)
    for request in (0x5412, 0x541C, 0x40086602, 0x1_0000_5412):
        assert run_filter(code, AUDIT[machine], IOCTL[machine], 1, request) == "ENOTTY"
    assert run_filter(code, AUDIT[machine], IOCTL[machine], 1, 0x5401) == ALLOWED


@both_architectures
def test_calls_contained_by_other_means_are_allowed(machine: str) -> None:
    minimal, complete = (
        assemble_shell_filter(FilterGaps(), machine),
        assemble_shell_filter(EVERY_GAP, machine),
    )
    audit = AUDIT[machine]
    for number, arguments, error in (
        (FCHMOD, (3, 0o777), "EPERM"),
        (PRLIMIT, (1234, 0), "EPERM"),
        (KILL, (1234, 9), "EPERM"),
        (OPENAT, (0, 0, 0o1000), "EPERM"),
    ):
        assert run_filter(minimal, audit, number[machine], *arguments) == ALLOWED
        assert run_filter(complete, audit, number[machine], *arguments) == error
    for number, arguments in (
        (PRLIMIT, (0, 7)),
        (KILL, (0, 9)),
        (OPENAT, (0, 0, 0)),
        (OPENAT, (0, 0, 0o1101)),
        (OPENAT, (0, 0, 0o1002)),
    ):
        assert run_filter(complete, audit, number[machine], *arguments) == ALLOWED


@both_architectures
def test_filter_length_is_within_the_kernel_limit(machine: str) -> None:
    assert len(assemble_shell_filter(EVERY_GAP, machine)) // 8 < 4096
