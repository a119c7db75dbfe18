"""A Java program that answers requests: one source file, compiled once, or launched by ``java`` as it is.

The protocol: the program prints ``{"ready": true}`` when it has started. A request is a JSON object in a
line of standard input; the answer is a line ``{"id": …, "answer": …}`` or ``{"id": …, "error": "…"}`` with
the id of the request. The program redirects ``System.out`` to ``System.err`` first, since libraries print. A
thread reads standard input and ends the JVM at its end, also in the middle of a request: then codetaste was
killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.java.jdk import Jdk

OUT_OF_MEMORY_EXIT = 3
"""Exit code of a JVM with ExitOnOutOfMemoryError."""

_PASSED_VARIABLES = ("PATH", "LANG", "TZ")


@dataclass(frozen=True, slots=True)
class JavaProgram:
    """A program with its JVM.

    Attributes:
        name: names it in messages.
        jdk: runs it; with a compiler.
        source: its source file.
        class_path: the jars that it needs.
        heap_bytes: the largest heap of each JVM; a request that needs more ends it.
        options: further options of ``java``.
        classes: the folder of its compiled classes; None if ``java`` compiles the source at each start.
    """

    name: str
    jdk: Jdk
    source: Path
    class_path: tuple[Path, ...]
    heap_bytes: int
    options: tuple[str, ...] = ()
    classes: Path | None = None

    def command(self, scratch: Path) -> list[str]:
        """Return the command line of a JVM whose temporary files are in ``scratch``."""
        folders = (*([self.classes] if self.classes else []), *self.class_path)
        return [
            str(self.jdk.java),
            f"-Xmx{self.heap_bytes // 1024}k",
            "-Xss16m",  # RefactoringMiner and JDT recurse over deep expressions
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+DisplayVMOutputToStderr",
            "-XX:+UseSerialGC",  # a JVM a core: parallel collectors would compete with each other
            "-XX:-UsePerfData",
            f"-XX:ErrorFile={scratch}/crash.log",
            f"-Djava.io.tmpdir={scratch}",
            f"-Duser.home={scratch}",
            "-Dfile.encoding=UTF-8",
            "-Djava.awt.headless=true",
            *self.options,
            "-cp",
            os.pathsep.join(map(str, folders)),
            self.source.stem if self.classes else str(self.source),
        ]

    def environment(self, scratch: Path) -> dict[str, str]:
        """Return its environment: nothing of the user's Java or git settings."""
        passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        hidden = {"HOME": str(scratch), "XDG_CONFIG_HOME": str(scratch), "GIT_CONFIG_NOSYSTEM": "1"}
        return {"PATH": os.defpath, **passed, **hidden, "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
