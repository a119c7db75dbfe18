"""What an agent's sandbox needs beside the code, so that the project builds and its tests run offline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.java.build.build_system import BuildTool
from codetaste.java.build.commands import (
    GRADLE_JDK,
    INIT_SCRIPT,
    SKIPPED_CHECKS,
    CommandOptions,
    Goal,
    build_command,
)
from codetaste.java.build.maven_files import maven_settings, maven_toolchains
from codetaste.sandbox.base import HOME, TESTBED, CommandLimits, Mount
from codetaste.sandbox.local.start import SANDBOX_PATH
from codetaste.swe_refactor.verify.project_sandbox import GRADLE_MOUNT, MAVEN_MOUNT

if TYPE_CHECKING:
    from codetaste.sandbox.base import Sandbox
    from codetaste.swe_refactor.score.base_build import BaseBuild

_TAIL_MAVEN = (3, 9)
"""The first Maven that reads a second local repository, so that its own can be written."""
_COPY_S = 1800.0


@dataclass(frozen=True, slots=True)
class ProjectAccess:
    """The build tool, the JDK and the dependencies of a project, as its files before were built with them."""

    base: BaseBuild

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The dependencies, read-only, and settings of the host's tools."""
        local = self.base.context.local
        return (
            Mount(local.path("maven"), MAVEN_MOUNT),
            Mount(local.path("gradle"), GRADLE_MOUNT),
            *self.base.context.mounts,
        )

    @property
    def env(self) -> dict[str, str]:
        """Variables of every command: the JDK, and what the build tool reads."""
        base = self.base
        home = base.prepared.jdks[base.jdk]
        path = f"{home}/bin:{SANDBOX_PATH}"
        if base.build.tool is BuildTool.GRADLE:
            options = CommandOptions(
                home,
                base.jdk,
                repository_url=base.context.repository_url,
                wrapper=base.build.needs_wrapper,
                gradle_home=base.prepared.jdks.get(GRADLE_JDK, home),
            )
            command = build_command(BuildTool.GRADLE, Goal.TEST, options)
            return {**{name: value for name, value in command.env.items() if value}, "PATH": path}
        tail = {"MAVEN_ARGS": f"-Dmaven.repo.local.tail={MAVEN_MOUNT}"} if self._has_tail else {}
        return {"JAVA_HOME": home, "PATH": path, **tail}

    @property
    def files(self) -> dict[str, bytes]:
        """Files in HOME: settings of the build tool, by their paths."""
        context = self.base.context
        settings = maven_settings(
            context.repository_url,
            repository="" if self._has_tail else MAVEN_MOUNT,
            offline=True,
            skipped=SKIPPED_CHECKS,
        )
        return {
            f"{HOME}/.m2/settings.xml": settings,
            f"{HOME}/.m2/toolchains.xml": maven_toolchains(self.base.prepared.jdks),
            f"{HOME}/.gradle/init.d/codetaste.gradle": INIT_SCRIPT.encode(),
            **context.files,
        }

    @property
    def test_command(self) -> str:
        """The command that compiles the project and runs its tests, in the project's folder."""
        if self.base.build.tool is BuildTool.GRADLE:
            return f"{'bash gradlew' if self.base.build.needs_wrapper else 'gradle'} --offline test"
        return "mvn -o test"

    @property
    def folder(self) -> str:
        """The folder of the project in the sandbox."""
        return f"{TESTBED}/{self.base.folder}".rstrip("/")

    async def copy_dependencies(self, sandbox: Sandbox) -> None:
        """Copy those that the build tool must be able to write to.

        Raises:
            SandboxError: the sandbox ended.
        """
        if self.base.build.tool is BuildTool.GRADLE:
            command = ["cp", "-r", f"{GRADLE_MOUNT}/.", f"{HOME}/.gradle"]
            await sandbox.run(command, limits=CommandLimits(wall_s=_COPY_S))

    @property
    def _has_tail(self) -> bool:
        return self.base.prepared.maven >= _TAIL_MAVEN
