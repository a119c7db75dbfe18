"""The system call filter of a sandbox: its verdicts, and that its two forms agree."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.sandbox.seccomp import syscall_numbers
from codetaste.sandbox.seccomp.sandbox_filter import DENIALS, assemble_sandbox_filter, render_sandbox_profile
from sandbox.seccomp.test_shell_filter import (
    ALLOWED,
    AUDIT,
    CLONE,
    IOCTL,
    READ,
    SOCKET,
    SOCKETPAIR,
    both_architectures,
    run_filter,
)

UNSHARE = {"x86_64": 272, "aarch64": 97}
THREAD = 0x003D0F00
"""The flags with which a C library starts a thread."""
NAMED = sorted({name for denial in DENIALS for name in denial.names.split()} & set(syscall_numbers.X86_64))
PROFILE = json.loads(render_sandbox_profile())
PROGRAM = assemble_sandbox_filter("x86_64")


def profile_verdict(name: str, *arguments: int) -> str:
    """Return an engine's verdict by the profile: that of any rule whose conditions match."""
    arguments = (*arguments, *[0] * (6 - len(arguments)))
    for rule in PROFILE["syscalls"]:
        if name in rule["names"] and all(_matches(one, arguments) for one in rule.get("args", [])):
            assert rule["action"] == "SCMP_ACT_ERRNO"
            return errno.errorcode[rule["errnoRet"]]
    return ALLOWED


def _matches(condition: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    value, operand = arguments[condition["index"]], condition["value"]
    match condition["op"]:
        case "SCMP_CMP_EQ":
            return value == operand
        case "SCMP_CMP_GT":
            return value > operand
        case "SCMP_CMP_MASKED_EQ":
            return value & operand == condition["valueTwo"]
    raise AssertionError(condition)


@both_architectures
def test_only_unix_internet_and_netlink_sockets_are_allowed(machine: str) -> None:
    code = assemble_sandbox_filter(machine)
    for family in range(64):
        expected = ALLOWED if family in {1, 2, 10, 16} else "EAFNOSUPPORT"
        assert run_filter(code, AUDIT[machine], SOCKET[machine], family, 1) == expected
        expected = ALLOWED if family == 1 else "EAFNOSUPPORT"
        assert run_filter(code, AUDIT[machine], SOCKETPAIR[machine], family, 1) == expected


@both_architectures
def test_processes_and_threads_are_allowed_and_namespaces_refused(machine: str) -> None:
    code, audit = assemble_sandbox_filter(machine), AUDIT[machine]
    assert run_filter(code, audit, CLONE[machine], THREAD) == ALLOWED
    assert run_filter(code, audit, CLONE[machine], 17) == ALLOWED
    assert run_filter(code, audit, UNSHARE[machine], 0x400) == ALLOWED
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert run_filter(code, audit, CLONE[machine], bit | THREAD) == "EPERM"
        assert run_filter(code, audit, UNSHARE[machine], bit) == "EPERM"
    assert run_filter(code, audit, UNSHARE[machine], 0x80) == "EPERM"


@both_architectures
def test_calls_that_builds_need_are_allowed(machine: str) -> None:
    code = assemble_sandbox_filter(machine)
    for number in (READ[machine], IOCTL[machine]):
        assert run_filter(code, AUDIT[machine], number, 1, 2) == ALLOWED
    for name in (
        "ptrace",
        "memfd_create",
        "shmget",
        "kill",
        "fchmod",
        "bind",
        "listen",
        "connect",
        "accept4",
    ):
        number = getattr(syscall_numbers, machine.upper())[name]
        assert run_filter(code, AUDIT[machine], number, 1, 2) == ALLOWED


@pytest.mark.parametrize("name", [name for name in NAMED if name not in {"socket", "socketpair", "clone"}])
def test_filter_and_profile_deny_the_same_calls(name: str) -> None:
    number = syscall_numbers.X86_64[name]
    assert (
        run_filter(PROGRAM, AUDIT["x86_64"], number, 0x10000000)
        == profile_verdict(name, 0x10000000)
        != ALLOWED
    )


@given(
    name=st.sampled_from(NAMED),
    first=st.integers(0, 2**32 - 1) | st.integers(0, 50),
    second=st.integers(0, 50),
)
def test_filter_and_profile_agree_on_every_call(name: str, first: int, second: int) -> None:
    number = syscall_numbers.X86_64[name]
    assert run_filter(PROGRAM, AUDIT["x86_64"], number, first, second) == profile_verdict(name, first, second)


def test_profile_refuses_socket_family_with_high_bits() -> None:
    """The kernel reads the lower half of a family only; an engine's library compares all of it."""
    assert profile_verdict("socket", (1 << 32) | 40) == "EAFNOSUPPORT"
