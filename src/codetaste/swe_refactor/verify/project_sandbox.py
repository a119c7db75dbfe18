"""A sandbox in which one project is built: its JDKs, its files, and commands of the build tool."""

from __future__ import annotations

import re
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread, to_thread

from codetaste.core.files import remove_tree
from codetaste.errors import SandboxError
from codetaste.harness.testbed.build import HEAD_REF, build_testbed
from codetaste.harness.testbed.testbed import Testbed, testbed_archive
from codetaste.java.build.build_system import BuildTool
from codetaste.java.build.commands import (
    GRADLE_JDK,
    INIT_SCRIPT,
    AgentOptions,
    CommandOptions,
    Goal,
    build_command,
)
from codetaste.java.build.maven_files import maven_settings, maven_toolchains
from codetaste.sandbox.base import HOME, CommandLimits, MemoryEnd, Mount
from codetaste.sandbox.provider import sandbox_spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from codetaste.java.build.build_system import Build
    from codetaste.sandbox.base import CommandResult, Egress, Sandbox
    from codetaste.swe_refactor.verify.local_repository import PreparedBuild
    from codetaste.swe_refactor.verify.settings import VerifyContext

JACOCO = "/opt/codetaste/jacoco"
EXEC_FILE = "/output/coverage/jacoco.exec"
MAVEN_MOUNT, GRADLE_MOUNT = "/opt/codetaste/maven-repository", "/opt/codetaste/gradle-home"
OWN_FOLDER = f"{HOME}/.codetaste"
_INIT_FILE = f"{OWN_FOLDER}/init.gradle"
_STUB_HOME = f"{OWN_FOLDER}/no-jvm"
_SHORT_S = 120.0
_COPY_S = 1800.0
_MARGIN_S = 1800.0
_TAIL_BYTES = 256 * 1024
_SCRIPT_OUTPUT_BYTES = 64 * 1024**2
_TAIL_MAVEN = (3, 9)
"""The first Maven that reads a second local repository."""
_FIND_JDKS = """
export JAVA_HOME
for home in /opt/jdk/* /usr/lib/jvm/*; do
    [ -x "$home/bin/javac" ] || continue
    printf '%s ' "$(readlink -f "$home")"
    # Starting each takes a second on a busy machine.
    sed -n 's/^JAVA_VERSION="\\(.*\\)"/javac \\1/p' "$home/release" 2>/dev/null | grep . ||
        "$home/bin/javac" -version 2>&1
    JAVA_HOME=$home
done
printf 'maven '
mvn -v 2>/dev/null | sed -n 's/.*Apache Maven \\([0-9.]*\\).*/\\1/p' | head -n 1
"""
_RUN = 'export PATH="$JAVA_HOME/bin:$PATH"\nexec "$@" 2>&1 </dev/null'
_EMPTY = f"""
if [ "$(stat -c %d /testbed)" = "$(stat -c %d /tmp)" ]; then # the time of a renaming, not of many removals
    earlier=$(mktemp -d) && find /testbed -mindepth 1 -maxdepth 1 -exec mv -t "$earlier" -- {{}} + || exit 1
fi
find /testbed /output -mindepth 1 -delete || exit 1
mkdir -p /output/coverage {_STUB_HOME}/bin {HOME}/.m2/repository
printf '#!/bin/sh\\nexit 1\\n' >{_STUB_HOME}/bin/java
printf 'JAVA_VERSION="17"\\n' >{_STUB_HOME}/release
chmod 755 {_STUB_HOME}/bin/java
"""
_JAVAC = re.compile(r"^(\S+) javac (?:1\.)?(\d+)", re.MULTILINE)
_MAVEN = re.compile(r"^maven (\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BuildRun:
    """One command of the build tool. ``output`` is the end of what it wrote."""

    goal: Goal
    result: CommandResult
    output: str
    command: str

    @property
    def succeeded(self) -> bool:
        """Whether it ended without an error."""
        return self.result.exit_code == 0

    @property
    def lacked_memory(self) -> bool:
        """Whether processes of it were killed as the sandbox had no more memory."""
        return self.result.memory is MemoryEnd.LIMIT


@dataclass(slots=True)
class ProjectSandbox:
    """An open sandbox for builds. ``jdks`` are its JDKs: folder by feature release."""

    sandbox: Sandbox
    context: VerifyContext
    build: Build
    offline: bool
    jdks: Mapping[int, str] = field(default_factory=dict)
    maven: tuple[int, int] = (0, 0)

    async def find_tools(self) -> None:
        """Find the JDKs and the release of Maven.

        Raises:
            SandboxError: the sandbox is gone.
        """
        done = await self._script(_FIND_JDKS, _SHORT_S)
        output = done.stdout.decode(errors="replace")
        homes: dict[int, str] = {}
        for found in _JAVAC.finditer(output):
            homes.setdefault(int(found[2]), found[1])
        self.jdks = dict(sorted(homes.items()))
        if maven := _MAVEN.search(output):
            self.maven = int(maven[1]), int(maven[2])

    async def use_repository(self) -> None:
        """Make the local repository of the host usable.

        Raises:
            SandboxError: the sandbox is gone.
        """
        if self.build.tool is BuildTool.GRADLE:
            await self._copy(GRADLE_MOUNT, f"{HOME}/.gradle")
        elif not self.offline and self.maven < _TAIL_MAVEN:
            await self._copy(MAVEN_MOUNT, f"{HOME}/.m2/repository")

    async def put_tree(self, tree: Path) -> None:
        """Replace what is in /testbed by ``tree``, with a repository of one commit.

        Raises:
            SandboxError: it could not be put there.
            SourceError: the tree cannot be read.
        """
        done = await self._script(_EMPTY, _SHORT_S)
        if done.exit_code != 0:
            raise SandboxError("the sandbox of a build cannot be emptied")
        files = {
            f"{HOME}/.m2/settings.xml": maven_settings(self.context.repository_url),
            f"{HOME}/.m2/toolchains.xml": maven_toolchains(self.jdks),
            _INIT_FILE: INIT_SCRIPT.encode(),
            **self.context.files,
        }
        async with _testbed(tree, self.context.scratch) as testbed:
            await self.sandbox.put(testbed_archive(testbed, files))

    async def run(self, goal: Goal, jdk: int, limit_s: float, agent: AgentOptions | None = None) -> BuildRun:
        """Run the build tool with a JDK of the sandbox.

        Raises:
            SandboxError: the sandbox ended.
        """
        options = CommandOptions(
            java_home=self.jdks[jdk],
            jdk=jdk,
            offline=self.offline,
            repository=self._repository_options(),
            agent=agent or AgentOptions(),
            repository_url=self.context.repository_url,
            stub_jvm=f"{_STUB_HOME}/bin/java",
            init_script=_INIT_FILE,
            wrapper=self.build.needs_wrapper,
            gradle_home=self.jdks.get(GRADLE_JDK, self.jdks[jdk]),
        )
        command = build_command(self.build.tool or BuildTool.MAVEN, goal, options)
        tail = bytearray()

        async def keep(piece: bytes) -> None:
            tail.extend(piece)
            if len(tail) > 2 * _TAIL_BYTES:
                del tail[:-_TAIL_BYTES]

        done = await self.sandbox.run(
            ["/bin/bash", "-c", _RUN, "codetaste", *command.argv],
            limits=CommandLimits(wall_s=limit_s),
            env=command.env,
            sink=keep,
        )
        return BuildRun(goal, done, tail[-_TAIL_BYTES:].decode(errors="replace"), command.shown)

    async def save_dependencies(self) -> None:
        """Add what was fetched to the local repository of the host.

        Raises:
            SandboxError: it cannot be read.
        """
        is_gradle = self.build.tool is BuildTool.GRADLE
        name = "gradle" if is_gradle else "maven"
        async with self.sandbox.get(f"{HOME}/{'.gradle' if is_gradle else '.m2/repository'}") as archive:
            await self.context.local.add(name, archive)

    async def script(self, text: str, *arguments: str, limit_s: float = _SHORT_S) -> bytes:
        """Run a script of ours in /testbed; return its output, b"" if it failed or wrote too much.

        Raises:
            SandboxError: the sandbox ended, or there was no end in time: that says nothing of the project.
        """
        done = await self._script(text, limit_s, *arguments)
        if done.timed_out:
            raise SandboxError(f"a step after a build took more than {limit_s:g} s: the machine is too busy")
        return done.stdout if done.exit_code == 0 and not done.truncated else b""

    def _repository_options(self) -> tuple[str, ...]:
        if self.build.tool is BuildTool.GRADLE:
            return (f"--gradle-user-home={HOME}/.gradle",)
        if self.maven >= _TAIL_MAVEN:
            return (f"-Dmaven.repo.local.tail={MAVEN_MOUNT}",)
        return (f"-Dmaven.repo.local={MAVEN_MOUNT}",) if self.offline else ()

    async def _copy(self, source: str, target: str) -> None:
        await self._script('mkdir -p "$2" && cp -r "$1/." "$2"', _COPY_S, source, target)

    async def _script(self, text: str, limit_s: float, *arguments: str) -> CommandResult:
        limits = CommandLimits(wall_s=limit_s, output_bytes=_SCRIPT_OUTPUT_BYTES)
        return await self.sandbox.run(["/bin/bash", "-c", text, "codetaste", *arguments], limits=limits)


@asynccontextmanager
async def open_project_sandbox(
    context: VerifyContext, job: str, build: Build, egress: Egress, prepared: PreparedBuild | None = None
) -> AsyncIterator[ProjectSandbox]:
    """Open a sandbox for builds of the project: offline, if the build is ``prepared``.

    Raises:
        SandboxError: it cannot be opened.
    """
    limits = context.limits
    spec = sandbox_spec(
        context.config,
        job,
        image=context.image,
        mounts=(
            Mount(context.jacoco, JACOCO),
            Mount(context.local.path("maven"), MAVEN_MOUNT),
            Mount(context.local.path("gradle"), GRADLE_MOUNT),
            *context.mounts,
        ),
        egress=egress,
        lifetime_s=2 * limits.jdks * (limits.compile_s + limits.fetch_s) + 4 * limits.tests_s + _MARGIN_S,
    )
    async with context.sandboxes.open(spec) as sandbox:
        project = ProjectSandbox(sandbox, context, build, offline=prepared is not None)
        if prepared is None:
            await project.find_tools()
        else:
            project.jdks, project.maven = prepared.jdks, prepared.maven
        await project.use_repository()
        yield project


@asynccontextmanager
async def _testbed(tree: Path, scratch: Path) -> AsyncIterator[Testbed]:
    folder = scratch / f"testbed-{secrets.token_hex(6)}"
    try:
        await to_thread.run_sync(build_testbed, [tree], folder, from_thread.check_cancelled)
        head = await to_thread.run_sync((folder / "git" / HEAD_REF).read_text)
        yield Testbed(folder, head.strip())
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)
