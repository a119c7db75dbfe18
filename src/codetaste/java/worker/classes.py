"""Compiled classes of Java programs in the cache folder: without them each JVM compiles its program."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import make_locked_folder, remove_abandoned, remove_tree
from codetaste.core.hashing import file_sha256, json_digest

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.java.worker.program import JavaProgram

FOLDER = "java-classes"
"""The folder of the cache with the classes."""
_STAGE = "stage-"
_TIMEOUT_S = 300.0


async def compile_program(program: JavaProgram, cache: Path) -> JavaProgram:
    """Return ``program`` with its classes in the cache folder; it is compiled if they are not there.

    If they cannot be made, ``program`` is returned as it is: ``java`` compiles it, and says what is wrong.
    It is safe to call from several processes.
    """
    try:
        classes = await to_thread.run_sync(_classes, program, cache)
        if not await anyio.Path(classes / f"{program.source.stem}.class").is_file():
            await _compile(program, classes)
    except (OSError, TimeoutError, subprocess.CalledProcessError):
        return program
    return replace(program, classes=classes)


def _classes(program: JavaProgram, cache: Path) -> Path:
    """Return the folder of the classes of this source, JDK and class path."""
    folder = cache.absolute() / FOLDER  # JVMs have a folder of their own
    jdk = [str(program.jdk.home), program.jdk.version]
    return folder / json_digest([file_sha256(program.source), jdk, [str(jar) for jar in program.class_path]])


async def _compile(program: JavaProgram, classes: Path) -> None:
    """Compile ``program`` into the folder ``classes``, which gets its name when it is complete.

    Raises:
        OSError: a folder cannot be written, or the compiler cannot be run.
        CalledProcessError: it does not compile.
        TimeoutError: it takes too long.
    """

    def make_stage() -> tuple[Path, int]:
        classes.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(classes.parent, _STAGE)
        return make_locked_folder(classes.parent, _STAGE)

    stage, lock = await to_thread.run_sync(make_stage)
    try:
        path = ["-cp", os.pathsep.join(map(str, program.class_path))] if program.class_path else []
        command = [
            str(program.jdk.java.with_name("javac")),
            "-proc:none",
            "-nowarn",
            *path,
            "-d",
            str(stage / "classes"),
        ]
        with anyio.fail_after(_TIMEOUT_S):
            await anyio.run_process([*command, str(program.source)], env=program.environment(stage))
        if not await anyio.Path(classes).exists():
            await anyio.Path(stage / "classes").rename(classes)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, stage)
        os.close(lock)
