"""Read files that an agent wrote to /output in its sandbox, from an untrusted tar archive."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from anyio import to_thread

from codetaste.harness.run import without_token
from codetaste.sandbox.base import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.sandbox.base import Sandbox

_MAX_OUTPUT_BYTES = 64 * 1024**2
_MAX_MEMBERS = 20_000


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files of an agent.

    Attributes:
        texts: the wanted ones, by their names below /output.
        problems: what is wrong with others, by name; "" for one that was not wanted.
        cut: whether /output is so large that its end was not read.
    """

    texts: Mapping[str, str]
    problems: Mapping[str, str]
    cut: bool

    def describe_problem(self, name: str) -> str:
        """Return why the file ``name`` was not read."""
        problem = f"{OUTPUT}/{name} {self.problems.get(name) or 'is missing'}"
        return f"{problem}{self.cut_note}"

    @property
    def cut_note(self) -> str:
        """How much of /output was read, where that is not all of it."""
        return f" within the first {_MAX_OUTPUT_BYTES:,} bytes of {OUTPUT}" if self.cut else ""


async def read_output_files(
    sandbox: Sandbox, wanted: Sequence[str], max_bytes: int, token: bytes
) -> OutputFiles:
    """Read the files ``wanted``, names below /output; also works on a stopped sandbox.

    A file that is not a regular file, longer than ``max_bytes`` or blank is a problem. Bytes that are not
    valid UTF-8, and ``token``, are replaced.

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
        texts, problems = await to_thread.run_sync(_read_texts, file, wanted, max_bytes)
    texts = {name: without_token(text.encode(), token).decode() for name, text in texts.items()}
    return OutputFiles(texts, problems, left <= 0)


def _read_texts(
    file: BinaryIO, wanted: Sequence[str], max_bytes: int
) -> tuple[dict[str, str], dict[str, str]]:
    file.seek(0)
    texts, problems = dict[str, str](), dict[str, str]()
    try:
        for name, member, archive in _members(file):
            if name not in wanted:
                problems.setdefault(name, "")
                continue
            texts.pop(name, None)
            problems[name] = _fault(member, max_bytes)
            if not problems[name] and (text := _read_text(archive, member, max_bytes)).strip():
                texts[name] = text
            elif not problems[name]:
                problems[name] = "is empty"
    except (tarfile.TarError, OSError, ValueError) as error:
        problems.setdefault(wanted[0], f"cannot be read: {error}")
    return texts, problems


def _members(file: BinaryIO) -> Iterator[tuple[str, tarfile.TarInfo, tarfile.TarFile]]:
    """Yield the members of the archive with their paths relative to the archived folder."""
    with tarfile.open(fileobj=file, mode="r:", errors="replace") as archive:
        for number, member in enumerate(archive):
            if number >= _MAX_MEMBERS:
                return
            top, _, name = member.name.removeprefix("./").lstrip("/").partition("/")
            if top == OUTPUT.lstrip("/"):
                yield name, member, archive


def _fault(member: tarfile.TarInfo, max_bytes: int) -> str:
    if not member.isreg() or member.sparse is not None:
        return "is not a regular file"
    return f"is longer than {max_bytes:,} bytes" if member.size > max_bytes else ""


def _read_text(archive: tarfile.TarFile, member: tarfile.TarInfo, max_bytes: int) -> str:
    content = archive.extractfile(member)
    if content is None:
        return ""
    with content:
        return content.read(max_bytes).decode("utf-8-sig", "replace").replace("\0", "\ufffd")
