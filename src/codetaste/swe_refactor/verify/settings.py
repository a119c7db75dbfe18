"""What a verification needs: sandboxes, the image, the tool that measures coverage, limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import remove_tree
from codetaste.environment.registries import allow_entries
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.repository import maven_repository
from codetaste.java.artifacts.store import install_artifacts, jars_folder
from codetaste.sandbox.base import Mount
from codetaste.swe_refactor.verify.local_repository import LocalRepository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.sandbox.base import SandboxProvider
    from codetaste.sandbox.config import SandboxConfig

_HOST_SETTINGS = ("maven", "gradle", "java-*-openjdk")
"""Folders of /etc in which Debian's JDKs and tools have settings without which they do not start."""
JACOCO = "jacoco-0.8.14"
"""The set of jars that measures coverage."""
_JACOCO_GROUP = "org/jacoco/"


@dataclass(frozen=True, slots=True)
class VerifyLimits:
    """Time limits in seconds, and how many JDKs are tried.

    Attributes:
        compile_s: of compiling one side once.
        fetch_s: of fetching all that one side needs.
        tests_s: of all tests of one side.
        jdks: that are tried at most.
    """

    compile_s: float = 900.0
    fetch_s: float = 1800.0
    tests_s: float = 1800.0
    jdks: int = 4


@dataclass(frozen=True, slots=True)
class VerifyContext:
    """What the verifications of one project share.

    Attributes:
        sandboxes: where builds run.
        config: limits of a sandbox.
        image: the Java image; "" for sandboxes without images.
        local: dependencies of the project, on this host.
        scratch: folder for trees; used by this process alone.
        jacoco: folder with the jars of JaCoCo, ``agent`` and ``cli`` are paths in it.
        agent: the agent that measures coverage.
        cli: the program that reports it.
        repository_url: the Maven repository that stands for all others.
        hosts: that builds may reach while they fetch: entries of an allow list.
        files: more files for HOME, such as settings of tools.
        mounts: more folders for builds; JDKs in /opt/jdk and /usr/lib/jvm are found.
        limits: of time.
    """

    sandboxes: SandboxProvider
    config: SandboxConfig
    image: str
    local: LocalRepository
    scratch: Path
    jacoco: Path
    agent: str
    cli: str
    repository_url: str
    hosts: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: VerifyLimits = field(default_factory=VerifyLimits)


async def make_verify_context(
    sandboxes: SandboxProvider,
    config: SandboxConfig,
    *,
    image: str,
    folder: Path,
    cache: Path,
    hosts: Sequence[str] = (),
    limits: VerifyLimits | None = None,
) -> VerifyContext:
    """Return what the verifications of one project share; JaCoCo is fetched if it is not there.

    Args:
        sandboxes: where builds run; the host's own JDKs and Maven are used where they have no images.
        config: limits of a sandbox.
        image: the Java image; "" for the JDKs and the Maven of this host, in a sandbox without an engine.
        folder: of the project in the run, used by this process alone: its dependencies stay there, and trees
            for a while. What a killed process left there is removed.
        cache: the cache folder, for JaCoCo.
        hosts: that builds may reach beside the Maven repository of this host, as an allow list has them.
        limits: of time.

    Raises:
        SourceError: the jars cannot be fetched, or Maven's settings cannot be read.
        StorageFull: no space left.
    """
    jacoco = load_artifact_set(JACOCO)
    await install_artifacts(jacoco, cache)
    agent, cli = (each.path.removeprefix(_JACOCO_GROUP) for each in jacoco.artifacts)
    url = await to_thread.run_sync(maven_repository)
    folder, jars = await to_thread.run_sync(lambda: (folder.absolute(), jars_folder(cache).absolute()))
    await to_thread.run_sync(remove_tree, folder / "scratch")
    return VerifyContext(
        sandboxes,
        config,
        image,
        LocalRepository(folder / "dependencies"),
        folder / "scratch",
        jars / _JACOCO_GROUP,
        agent,
        cli,
        url,
        (*await allow_entries([url]), *hosts),
        mounts=() if image else await to_thread.run_sync(_host_settings),
        limits=limits or VerifyLimits(),
    )


def _host_settings() -> tuple[Mount, ...]:
    found = (path for pattern in _HOST_SETTINGS for path in sorted(Path("/etc").glob(pattern)))
    return tuple(Mount(path, str(path)) for path in found if path.is_dir())
