"""A box's filter of system calls: its two forms agree, and say what they should."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

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
    both,
    verdict,
)

UNSHARE = {"x86_64": 272, "aarch64": 97}
THREAD = 0x003D0F00
"""The flags with which a C library starts a thread."""
NAMED = sorted({name for denial in DENIALS for name in denial.names.split()} & set(syscall_numbers.X86_64))
PROFILE = json.loads(render_sandbox_profile())
PROGRAM = assemble_sandbox_filter("x86_64")


def profiled(name: str, *arguments: int) -> str:
    """What the engine's library makes of the profile: any rule whose conditions hold decides."""
    arguments = (*arguments, *[0] * (6 - len(arguments)))
    for rule in PROFILE["syscalls"]:
        if name in rule["names"] and all(_holds(one, arguments) for one in rule.get("args", [])):
            assert rule["action"] == "SCMP_ACT_ERRNO"
            return errno.errorcode[rule["errnoRet"]]
    return ALLOWED


def _holds(condition: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    value, asked = arguments[condition["index"]], condition["value"]
    match condition["op"]:
        case "SCMP_CMP_EQ":
            return value == asked
        case "SCMP_CMP_GT":
            return value > asked
        case "SCMP_CMP_MASKED_EQ":
            return value & asked == condition["valueTwo"]
    raise AssertionError(condition)


@both
def test_the_sockets_of_networks_and_neighbours_are_there_and_no_others(machine: str) -> None:
    code = assemble_sandbox_filter(machine)
    for family in range(64):
        expected = ALLOWED if family in {1, 2, 10, 16} else "EAFNOSUPPORT"
        assert verdict(code, AUDIT[machine], SOCKET[machine], family, 1) == expected
        expected = ALLOWED if family == 1 else "EAFNOSUPPORT"
        assert verdict(code, AUDIT[machine], SOCKETPAIR[machine], family, 1) == expected


@both
def test_processes_and_threads_can_be_made_and_namespaces_cannot(machine: str) -> None:
    code, audit = assemble_sandbox_filter(machine), AUDIT[machine]
    assert verdict(code, audit, CLONE[machine], THREAD) == ALLOWED
    assert verdict(code, audit, CLONE[machine], 17) == ALLOWED
    assert verdict(code, audit, UNSHARE[machine], 0x400) == ALLOWED
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(code, audit, CLONE[machine], bit | THREAD) == "EPERM"
        assert verdict(code, audit, UNSHARE[machine], bit) == "EPERM"
    assert verdict(code, audit, UNSHARE[machine], 0x80) == "EPERM"


@both
def test_what_builds_need_is_left_alone(machine: str) -> None:
    code = assemble_sandbox_filter(machine)
    for number in (READ[machine], IOCTL[machine]):
        assert verdict(code, AUDIT[machine], number, 1, 2) == ALLOWED
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
        assert verdict(code, AUDIT[machine], number, 1, 2) == ALLOWED


@pytest.mark.parametrize("name", [name for name in NAMED if name not in {"socket", "socketpair", "clone"}])
def test_seccomp_and_landlock_forms_deny_the_same(name: str) -> None:
    number = syscall_numbers.X86_64[name]
    assert verdict(PROGRAM, AUDIT["x86_64"], number, 0x10000000) == profiled(name, 0x10000000) != ALLOWED


@given(
    name=some.sampled_from(NAMED),
    first=some.integers(0, 2**32 - 1) | some.integers(0, 50),
    second=some.integers(0, 50),
)
def test_both_forms_say_the_same_of_every_call(name: str, first: int, second: int) -> None:
    number = syscall_numbers.X86_64[name]
    assert verdict(PROGRAM, AUDIT["x86_64"], number, first, second) == profiled(name, first, second)


def test_seccomp_rejects_syscall_number_with_high_bits() -> None:
    """The kernel looks at the lower half of a family alone; an engine's library compares all of it."""
    assert profiled("socket", (1 << 32) | 40) == "EAFNOSUPPORT"
