"""Assemble a system call filter, a classic BPF program, from a table of denied calls.

It denies calls by name, answers unknown (newer) calls with ENOSYS, and kills a process that makes calls of
another architecture (32-bit and x32 calls have other numbers).
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.sandbox.seccomp import syscall_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL_BITS = 0xFFFFFFFF
_LOAD, _AND, _IF_EQUAL, _IF_GREATER, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_AT_NUMBER, _AT_MACHINE, _AT_ARGUMENTS = 0, 4, 16


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    numbers: dict[str, int]
    foreign_from: int


_MACHINES = {
    "x86_64": _Machine(0xC000003E, syscall_numbers.X86_64, 0x3FFFFFFF),  # x32 calls carry bit 30
    "aarch64": _Machine(0xC00000B7, syscall_numbers.AARCH64, 0x3FFFFFFF),
}


@dataclass(frozen=True, slots=True)
class ArgumentCheck:
    """True when ``argument & mask`` is one of ``values``; only the low 32 bits are compared."""

    argument: int
    values: tuple[int, ...]
    mask: int = ALL_BITS


@dataclass(frozen=True, slots=True)
class Denial:
    """``names`` fail with ``error``, unless all of ``unless`` are true."""

    names: str
    error: int = errno.EPERM
    unless: tuple[ArgumentCheck, ...] = ()


def is_supported(machine: str = "") -> bool:
    """Return whether the filter has the system call numbers of ``machine``, by default this one."""
    return (machine or platform.machine()) in _MACHINES


def assemble(denials: Iterable[Denial], machine: str = "") -> bytes:
    """Return a filter that allows all known calls but ``denials``, as an array of ``struct sock_filter``.

    Raises:
        KeyError: the filter has no system call numbers for the machine; check ``is_supported`` first.
    """
    this = _MACHINES[machine or platform.machine()]
    code = [
        _instruction(_LOAD, _AT_MACHINE),
        _instruction(_IF_EQUAL, this.audit, then=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _AT_NUMBER),
        _instruction(_IF_GREATER, this.foreign_from, then=0, otherwise=1),
        _instruction(_RETURN, _KILL),
        _instruction(_IF_GREATER, syscall_numbers.NEWEST, then=0, otherwise=1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for denial in denials:
        for name in denial.names.split():
            if name in this.numbers:
                code += _compile(this.numbers[name], denial)
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _compile(number: int, denial: Denial) -> list[bytes]:
    body: list[bytes] = []
    for check in denial.unless:
        body.append(_instruction(_LOAD, _AT_ARGUMENTS + 8 * check.argument))
        if check.mask != ALL_BITS:
            body.append(_instruction(_AND, check.mask))
        left = len(check.values)
        for position, value in enumerate(check.values):
            body.append(_instruction(_IF_EQUAL, value, then=left - position, otherwise=0))
        body.append(_instruction(_RETURN, _ERRNO | denial.error))
    body.append(_instruction(_RETURN, _ALLOW if denial.unless else _ERRNO | denial.error))
    return [_instruction(_IF_EQUAL, number, then=0, otherwise=len(body)), *body]


def _instruction(code: int, operand: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, operand)
