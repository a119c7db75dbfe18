"""Read the plans that an agent wrote in its sandbox, from an untrusted tar archive."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from anyio import to_thread

from codetaste.benchmark.layout import PLAN_FILE, PLAN_FILES, Mode
from codetaste.flows.infer.plan import PLAN_COUNT
from codetaste.sandbox.base import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.sandbox.base import Sandbox

MAX_PLAN_BYTES = 256 * 1024
"""Longer plans are rejected, because a plan becomes part of a prompt."""
_MAX_OUTPUT_BYTES = 64 * 1024**2
_MAX_MEMBERS = 20_000


@dataclass(frozen=True, slots=True)
class AgentPlans:
    """The texts of all requested plans in their order; empty where there is a ``problem``."""

    texts: tuple[str, ...] = ()
    problem: str = ""


async def read_plans(sandbox: Sandbox, mode: Mode) -> AgentPlans:
    """Read the plans for ``mode``, not "direct"; also works on a stopped sandbox.

    A file that is not a regular file, too long or blank counts as missing. Bytes that are not valid UTF-8 are
    replaced.

    Raises:
        SandboxError: the sandbox cannot be read.
    """
    with TemporaryFile() as file:
        left = _MAX_OUTPUT_BYTES
        async with sandbox.get(OUTPUT) as chunks:
            async for chunk in chunks:
                await to_thread.run_sync(file.write, chunk[:left])
                left -= len(chunk)
                if left <= 0:
                    break
        texts, problem = await to_thread.run_sync(
            _read_plan_texts, file, (PLAN_FILE,) if mode is Mode.PLAN else PLAN_FILES
        )
    if left <= 0 and problem:
        problem += f" within the first {_MAX_OUTPUT_BYTES:,} bytes of {OUTPUT}"
    return AgentPlans(problem=problem) if problem else AgentPlans(texts)


def _read_plan_texts(file: BinaryIO, wanted: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    file.seek(0)
    texts, problems = dict[str, str](), dict[str, str]()
    try:
        for name, member, archive in _members(file):
            if name in wanted:
                texts.pop(name, None)
                problems[name] = _fault(member)
                if not problems[name] and (text := _read_text(archive, member)).strip():
                    texts[name] = text
                elif not problems[name]:
                    problems[name] = "is empty"
            elif name.startswith("refactoring_plan") and name.endswith(".md"):
                problems.setdefault(name, "")
    except (tarfile.TarError, OSError, ValueError) as error:
        problems.setdefault(wanted[0], f"cannot be read: {error}")
    return tuple(texts[name] for name in wanted if name in texts), _problem(wanted, texts, problems)


def _problem(wanted: tuple[str, ...], texts: Mapping[str, str], problems: Mapping[str, str]) -> str:
    """Describe the problem with the first missing plan, and name the plan files that were found."""
    missing = [name for name in wanted if name not in texts]
    if not missing:
        return ""
    first = missing[0]
    others = ", ".join(sorted(name for name in problems if name not in missing)[: 2 * PLAN_COUNT])
    problem = f"{OUTPUT}/{first} {problems.get(first) or 'is missing'}"
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return problem + more + (f" (found: {others})" if others else "")


def _members(file: BinaryIO) -> Iterator[tuple[str, tarfile.TarInfo, tarfile.TarFile]]:
    """Yield the members of the archive with their paths relative to the archived folder."""
    with tarfile.open(fileobj=file, mode="r:", errors="replace") as archive:
        for number, member in enumerate(archive):
            if number >= _MAX_MEMBERS:
                return
            top, _, name = member.name.removeprefix("./").lstrip("/").partition("/")
            if top == OUTPUT.lstrip("/"):
                yield name, member, archive


def _fault(member: tarfile.TarInfo) -> str:
    if not member.isreg() or member.sparse is not None:
        return "is not a regular file"
    return f"is longer than {MAX_PLAN_BYTES:,} bytes" if member.size > MAX_PLAN_BYTES else ""


def _read_text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = archive.extractfile(member)
    if content is None:
        return ""
    with content:
        return content.read(MAX_PLAN_BYTES).decode("utf-8-sig", "replace").replace("\0", "\ufffd")
