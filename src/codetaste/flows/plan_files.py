"""Plans as an agent left them in its box: read by the host from an archive that nobody need trust."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from anyio import to_thread

from codetaste.flows.trials import PLANS
from codetaste.sandbox.box import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.sandbox.box import Box

PLAN_BYTES = 256 * 1024
"""A longer plan is none: it goes into a prompt."""
_OUTPUT_BYTES = 64 * 1024**2
_MEMBERS = 20_000
ONE = "refactoring_plan.md"
MANY = tuple(f"refactoring_plans/refactoring_plan{number}.md" for number in range(PLANS))


@dataclass(frozen=True, slots=True)
class Plans:
    """The texts of all plans that were asked for, in their order; none where there is a ``problem``."""

    texts: tuple[str, ...] = ()
    problem: str = ""


async def read_plans(box: Box, mode: str) -> Plans:
    """Read what an agent wrote for ``mode``, "plan" or "multiplan"; works on a box that is stopped too.

    Files that are no regular files, too long or blank do not count. Text that is no UTF-8 is read as well as
    it can be.

    Raises:
        SandboxError: the box cannot be read.
    """
    with TemporaryFile() as file:
        left = _OUTPUT_BYTES
        async with box.get(OUTPUT) as chunks:
            async for chunk in chunks:
                await to_thread.run_sync(file.write, chunk[:left])
                left -= len(chunk)
                if left <= 0:
                    break
        found, problem = await to_thread.run_sync(_found, file, (ONE,) if mode == "plan" else MANY)
    if left <= 0 and problem:
        problem += f" within the first {_OUTPUT_BYTES:,} bytes of {OUTPUT}"
    return Plans(problem=problem) if problem else Plans(found)


def _found(file: BinaryIO, wanted: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    file.seek(0)
    texts, faults = dict[str, str](), dict[str, str]()
    try:
        for name, member, archive in _members(file):
            if name in wanted:
                texts.pop(name, None)
                faults[name] = _fault(member)
                if not faults[name] and (text := _text(archive, member)).strip():
                    texts[name] = text
                elif not faults[name]:
                    faults[name] = "is empty"
            elif name.startswith("refactoring_plan") and name.endswith(".md"):
                faults.setdefault(name, "")
    except (tarfile.TarError, OSError, ValueError) as error:
        faults.setdefault(wanted[0], f"cannot be read: {error}")
    return tuple(texts[name] for name in wanted if name in texts), _problem(wanted, texts, faults)


def _problem(wanted: tuple[str, ...], texts: Mapping[str, str], faults: Mapping[str, str]) -> str:
    """Say what is wrong with the first plan that is not there, and what is there instead."""
    lacking = [name for name in wanted if name not in texts]
    if not lacking:
        return ""
    first = lacking[0]
    others = ", ".join(sorted(name for name in faults if name not in lacking)[: 2 * PLANS])
    said = f"{OUTPUT}/{first} {faults.get(first) or 'is missing'}"
    more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return said + more + (f" (there are: {others})" if others else "")


def _members(file: BinaryIO) -> Iterator[tuple[str, tarfile.TarInfo, tarfile.TarFile]]:
    """Give the members of the archive, by their path below the folder that was archived."""
    with tarfile.open(fileobj=file, mode="r:", errors="replace") as archive:
        for number, member in enumerate(archive):
            if number >= _MEMBERS:
                return
            top, _, name = member.name.removeprefix("./").lstrip("/").partition("/")
            if top == OUTPUT.lstrip("/"):
                yield name, member, archive


def _fault(member: tarfile.TarInfo) -> str:
    if not member.isreg() or member.sparse is not None:
        return "is no regular file"
    return f"is longer than {PLAN_BYTES:,} bytes" if member.size > PLAN_BYTES else ""


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = archive.extractfile(member)
    if content is None:
        return ""
    with content:
        return content.read(PLAN_BYTES).decode("utf-8-sig", "replace").replace("\0", "\ufffd")
