"""``EnvironmentScripts``: the scripts that set up an instance's environment and run its tests (Figure 11).

They are called as ``git clean -xdff && sudo /scripts/setup_system.sh && source /scripts/setup_shell.sh &&
/scripts/run_tests`` in ``/testbed``. Files beside them belong to them: published environments have parsers of
test reports there. Their content is never changed, and their modes are "executable" or not.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    ENVIRONMENT_SCRIPTS,
    RUN_TESTS,
    SCRIPTS_SUMMARY,
    SETUP_SHELL,
    SETUP_SYSTEM,
)
from codetaste.core.files import open_regular_file, remove_tree, storage_error, write_atomically
from codetaste.core.hashing import json_digest
from codetaste.core.tar import DamagedTar, MemberKind, TarMember, TarReader, TarTooLarge
from codetaste.core.text import plural, printable_name
from codetaste.errors import ConfigError, SandboxError
from codetaste.sandbox.base import Mount

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping

SCRIPTS = "/scripts"
"""Where the scripts are in a sandbox, read-only."""
MAX_FILES, MAX_FILE_BYTES, MAX_BYTES = 64, 1024**2, 4 * 1024**2
_MAX_DEPTH = 4
_PROGRAM, _FILE = 0o755, 0o644
_SKIPPED = "__pycache__"
_SHEBANG = re.compile(rb"#![ \t]*(?:\S*/env[ \t]+)?(\S+)")
_SHELLS = {b"bash", b"sh", b"dash"}


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A file of the scripts' folder."""

    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        """The mode with which it is written."""
        return _PROGRAM if self.executable else _FILE


@dataclass(frozen=True, slots=True)
class EnvironmentScripts:
    """The scripts' folder: ``files`` by their path in it. The functions below make it, and check them."""

    files: Mapping[str, ScriptFile]

    @property
    def setup_system(self) -> bytes:
        """``setup_system.sh``, run as root: services and limits of the system."""
        return self.files[SETUP_SYSTEM].content

    @property
    def setup_shell(self) -> bytes:
        """``setup_shell.sh``, sourced by bash: variables, and what is installed in ``/testbed``."""
        return self.files[SETUP_SHELL].content

    @property
    def run_tests(self) -> bytes:
        """``run_tests``: runs the tests and prints their counts."""
        return self.files[RUN_TESTS].content

    @property
    def summary(self) -> str:
        """``SUMMARY.md``: the setup agent's description; "" without one."""
        found = self.files.get(SCRIPTS_SUMMARY)
        return "" if found is None else found.content.decode("utf-8", "replace")

    @property
    def digest(self) -> str:
        """The sha256 (hex) over names, contents and modes of all files."""
        return json_digest(
            [
                [name, file.executable, hashlib.sha256(file.content).hexdigest()]
                for name, file in sorted(self.files.items())
            ]
        )

    def write(self, folder: Path) -> None:
        """Write the files durably to ``folder`` in place of what is there; blocking.

        Raises:
            StorageFull: no space left.
            JournalError: it cannot be written.
        """
        self._write(folder, write_atomically)

    def as_mount(self, folder: Path) -> Mount:
        """Write the files to ``folder`` in place of what is there, and return its mount; blocking.

        Raises:
            StorageFull: no space left.
            SandboxError: it cannot be written.
        """
        try:
            self._write(folder, Path.write_bytes)
        except OSError as error:
            raise storage_error(error, f"{folder}: cannot be written", SandboxError) from error
        return Mount(folder, SCRIPTS)

    def _write(self, folder: Path, write: Callable[[Path, bytes], object]) -> None:
        remove_tree(folder)
        for name, file in sorted(self.files.items()):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, file.content)
            path.chmod(file.mode)
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            path.chmod(_PROGRAM)  # a sandbox's user must be able to read it, whatever the umask is

    def archive(self) -> bytes:
        """Return a tar archive with the folder ``scripts``, owned by root; equal scripts give equal bytes."""
        into = io.BytesIO()
        root = SCRIPTS[1:]
        folders = {
            "/".join(name.split("/")[:depth]) for name in self.files for depth in range(name.count("/") + 1)
        }
        with tarfile.open(fileobj=into, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for folder in sorted(folders):
                info = tarfile.TarInfo(f"{root}/{folder}".rstrip("/"))
                info.type, info.mode = tarfile.DIRTYPE, _PROGRAM
                archive.addfile(info)
            for name, file in sorted(self.files.items()):
                info = tarfile.TarInfo(f"{root}/{name}")
                info.size, info.mode = len(file.content), file.mode
                archive.addfile(info, io.BytesIO(file.content))
        return into.getvalue()


def make_scripts(
    setup_system: bytes, setup_shell: bytes, run_tests: bytes, summary: str = "", *, where: str = SCRIPTS
) -> EnvironmentScripts:
    """Return scripts with these contents; ``where`` is their place in messages.

    Raises:
        ConfigError: as ``read_scripts``.
    """
    contents = dict(zip(ENVIRONMENT_SCRIPTS, (setup_system, setup_shell, run_tests), strict=True))
    files = {name: ScriptFile(content, executable=True) for name, content in contents.items()}
    if summary:
        files[SCRIPTS_SUMMARY] = ScriptFile(summary.encode("utf-8", "surrogateescape"))
    return _checked(files, [], where)


def read_scripts(folder: Path) -> EnvironmentScripts:
    """Read the scripts in ``folder``, of a benchmark for example; blocking.

    Raises:
        ConfigError: the folder or a script is missing, too large, not a regular file, or cannot be run; one
            line for each.
    """
    files: dict[str, ScriptFile] = {}
    problems: list[str] = []
    try:
        for name, path in _walk(folder):
            if len(files) == MAX_FILES:
                problems.append(f"{folder}: more than {MAX_FILES} files")
                break
            if not stat.S_ISREG(path.lstat().st_mode):
                problems.append(f"{path}: not a regular file")
                continue
            with open_regular_file(path) as file:
                executable = bool(os.fstat(file.fileno()).st_mode & 0o100)
                files[name] = ScriptFile(file.read(MAX_FILE_BYTES + 1), executable)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: cannot be read: {error.strerror}") from None
    return _checked(files, problems, str(folder))


async def read_scripts_archive(archive: AsyncIterable[bytes], where: str = SCRIPTS) -> EnvironmentScripts:
    """Read the scripts from the tar archive of their folder, as a sandbox gives it; it is untrusted.

    Args:
        archive: names of members begin with the name of the folder.
        where: the folder in messages.

    Raises:
        ConfigError: as ``read_scripts``, or the archive is damaged.
    """
    members = _Members(where)
    reader = TarReader(members, 2 * MAX_BYTES)
    try:
        async for chunk in archive:
            if chunk:
                reader.feed(chunk)
        if not reader.ended:
            reader.feed(b"")
    except TarTooLarge:
        members.problems.append(f"{where}: more than {MAX_BYTES:,} bytes")
    except DamagedTar as error:
        raise ConfigError(f"{where}: cannot be read: {error}") from None
    if members.too_many:
        members.problems.append(f"{where}: more than {MAX_FILES} files")
    return _checked(members.files, members.problems, where)


@dataclass(slots=True)
class _Members:
    """Collects the files of an archive; a ``TarHandler``."""

    where: str
    files: dict[str, ScriptFile] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    too_many: bool = False
    _name: str = ""
    _executable: bool = False
    _content: bytearray = field(default_factory=bytearray)

    def member(self, member: TarMember) -> bool:
        parts = [part for part in member.name.split(b"/") if part not in {b"", b"."}][1:]
        if not parts or member.kind is MemberKind.FOLDER or _SKIPPED.encode() in parts:
            return False
        shown = f"{self.where}/{b'/'.join(parts).decode('utf-8', 'backslashreplace')}"
        if member.kind is not MemberKind.FILE:
            self.problems.append(f"{shown}: {member.kind.value}, not a regular file")
        elif b".." in parts or len(parts) > _MAX_DEPTH:
            self.problems.append(f"{self.where}: {printable_name(member.name)} cannot be there")
        elif len(self.files) == MAX_FILES:
            self.too_many = True
        elif member.size > MAX_FILE_BYTES:
            self.problems.append(f"{shown}: {member.size:,} bytes, at most {MAX_FILE_BYTES:,}")
        else:
            self._name = b"/".join(parts).decode("utf-8", "surrogateescape")
            self._executable = member.executable
            self._content.clear()
            return True
        return False

    def content(self, chunk: bytes) -> None:
        self._content += chunk

    def end(self) -> None:
        self.files[self._name] = ScriptFile(bytes(self._content), self._executable)


def _walk(folder: Path, depth: int = 1) -> Iterator[tuple[str, Path]]:
    """Yield the path below ``folder``, as text and as a path, of everything that is no folder."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            if path.name == _SKIPPED:
                continue
            if depth == _MAX_DEPTH:
                yield path.name, path
                continue
            for name, inner in _walk(path, depth + 1):
                yield f"{path.name}/{name}", inner
        else:
            yield path.name, path


def _checked(files: dict[str, ScriptFile], problems: Iterable[str], where: str) -> EnvironmentScripts:
    found = list(problems)
    found += [
        f"{where}/{name}: more than {MAX_FILE_BYTES:,} bytes"
        for name, file in files.items()
        if len(file.content) > MAX_FILE_BYTES
    ]
    if not found and sum(len(file.content) for file in files.values()) > MAX_BYTES:
        found.append(f"{where}: more than {MAX_BYTES:,} bytes in {plural(len(files), 'file')}")
    for name in ENVIRONMENT_SCRIPTS:
        if any(problem.startswith(f"{where}/{name}:") for problem in found):
            continue
        problem = _problem(name, files[name]) if name in files else "missing"
        found += [f"{where}/{name}: {problem}"] if problem else []
    if found:
        raise ConfigError(*found)
    return EnvironmentScripts(dict(sorted(files.items())))


def _problem(name: str, script: ScriptFile) -> str:
    """Return why a script cannot be run, "" if it can."""
    first = script.content.partition(b"\n")[0]
    shebang = _SHEBANG.match(first)
    if b"\0" in script.content:
        return "has NUL bytes; it must be a text"
    if first.endswith(b"\r"):
        return "has the line ends of Windows, with which it cannot be run; save it with those of Unix"
    if name == SETUP_SHELL:
        program = shebang[1].rpartition(b"/")[2] if shebang else b""
        if program in _SHELLS or not program:
            return ""
        return f"is sourced by bash, but its first line names {program.decode('utf-8', 'backslashreplace')}"
    if shebang is None:
        return "its first line names no interpreter; it must be like #!/bin/bash"
    return "" if script.executable else f"is not executable; run chmod +x {name}"
