"""The JDKs on this machine, found in the usual places, and which of them serves a tool.

A JDK that codetaste itself has installed (``java/jdk_package.py``) is one of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.concurrency import gather
from codetaste.core.processes import kill_process_group
from codetaste.errors import ToolMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HOME_VARIABLE = "JAVA_HOME"
INSTALLED_FOLDER = "jdks"
"""The folder of the cache with the JDKs that codetaste has installed."""

_PLACES = ("/usr/lib/jvm", "/opt/java", "/Library/Java/JavaVirtualMachines")
_HOME_PLACES = (".sdkman/candidates/java", ".jdks")
_VERSION_TIMEOUT_S = 30.0
_VERSION_BYTES = 64 * 1024
_KILL_S = 5.0
_VERSION = re.compile(r'version "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Jdk:
    """A Java runtime, usually with its compiler.

    Attributes:
        home: its folder, with ``bin/java``.
        feature: its feature release: 8, 11, 17, 21, 25.
        version: its full version, such as "25.0.3" or "1.8.0_402".
        compiler: whether it has one; ``java FILE.java`` needs it.
    """

    home: Path
    feature: int
    version: str
    compiler: bool

    @property
    def java(self) -> Path:
        """The program that starts a JVM."""
        return self.home / "bin" / "java"


async def find_jdks(
    named: Iterable[Path] = (), *, cache: Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Jdk, ...]:
    """Return the JDKs of this machine that work, each once.

    First those of ``named``, then that of JAVA_HOME, then all others, the oldest release first.

    Args:
        named: folders of JDKs that the user names.
        cache: the cache folder, for the JDKs that codetaste has installed.
        environ: for JAVA_HOME, PATH and HOME; by default that of this process.
    """
    environment = os.environ if environ is None else environ
    first = [*named]
    if home := environment.get(HOME_VARIABLE):
        first.append(Path(home))
    others = await to_thread.run_sync(lambda: list(_usual_places(environment, cache)))
    preferred, usual = await to_thread.run_sync(lambda: (_existing(first), _existing(others)))
    homes = dict.fromkeys((*preferred, *usual))
    found = [jdk for jdk in await gather([partial(read_jdk, home) for home in homes]) if jdk is not None]
    return tuple(sorted(found, key=lambda jdk: (jdk.home not in preferred, jdk.feature)))


async def find_jdk(
    minimum: int,
    *,
    purpose: str,
    named: Iterable[Path] = (),
    cache: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Jdk:
    """Return the first JDK of ``find_jdks`` with a compiler whose feature release is at least ``minimum``.

    Raises:
        ToolMissing: there is none; the message names ``purpose``, what was found, and what to do.
    """
    jdks = await find_jdks(named, cache=cache, environ=environ)
    for jdk in jdks:
        if jdk.feature >= minimum and jdk.compiler:
            return jdk
    there = ", ".join(f"{jdk.feature} in {jdk.home}" for jdk in jdks) or "none"
    raise ToolMissing(
        f"{purpose} needs a JDK of release {minimum} or newer; on this machine: {there}. "
        f"Run `codetaste java install`, or name one in {HOME_VARIABLE}"
    )


async def read_jdk(home: Path) -> Jdk | None:
    """Return the JDK in the folder ``home``; None if there is none that works."""
    try:
        with anyio.fail_after(_VERSION_TIMEOUT_S):
            printed = await _read_version(home / "bin" / "java")
        compiler = await anyio.Path(home / "bin" / "javac").exists()
    except (OSError, ValueError):  # a time-out is an OSError; no path has a null character
        return None
    match = _VERSION.search(printed)
    feature = feature_release(match[1]) if match else None
    return None if match is None or feature is None else Jdk(home, feature, match[1], compiler)


async def _read_version(java: Path) -> str:
    """Return the beginning of what ``java -version`` writes, "" if it fails; nothing of it runs on."""
    process = await anyio.open_process(
        [str(java), "-version"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    output = bytearray()
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        async for chunk in process.stdout:
            output += chunk[: _VERSION_BYTES - len(output)]
        return "" if await process.wait() else output.decode(errors="replace")
    finally:
        await kill_process_group(process, _KILL_S)


def feature_release(version: str) -> int | None:
    """Return the feature release of a Java version: 8 of "1.8.0_402" and of "8", 25 of "25-ea"; else None."""
    match = re.match(r"(?:1\.)?(\d{1,3})(?!\d)", version.strip())
    return int(match[1]) if match else None


def _existing(homes: Iterable[Path]) -> dict[Path, None]:
    """Return the folders among ``homes`` that exist, without links, in their order. Blocking."""
    found: dict[Path, None] = {}
    for home in homes:
        with suppress(OSError, RuntimeError, ValueError):  # a loop of links, a name that no folder has
            found[home.resolve(strict=True)] = None
    return found


def _usual_places(environ: Mapping[str, str], cache: Path | None) -> Iterator[Path]:
    """Yield the folders in which JDKs may be, blocking."""
    if cache is not None:
        yield from sorted((cache / INSTALLED_FOLDER).glob("*"))
    for name in _PLACES:
        for folder in sorted(Path(name).glob("*")):
            yield folder / "Contents" / "Home" if name.startswith("/Library") else folder
    home = environ.get("HOME", "")
    if Path(home).is_absolute():
        for name in _HOME_PLACES:
            yield from sorted(Path(home, name).glob("*"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path).resolve().parents[1]
