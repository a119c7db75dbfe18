"""What all test runs of a run share, and the sandboxes that they run in.

The scripts are mounted read-only, the code is in /testbed.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import Lock, to_thread

from codetaste.environment.scripts import SCRIPTS
from codetaste.flows.environment.result import load_scripts
from codetaste.harness.testbed.testbed import testbed_archive
from codetaste.sandbox.base import NO_EGRESS, Mount, Privileges
from codetaste.sandbox.provider import sandbox_spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from codetaste.environment.images.runtime import RuntimeEnvironment
    from codetaste.evaluation.test_runs.suite import SuiteLimits
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.orchestration.job import JobContext
    from codetaste.sandbox.base import Egress, Sandbox, SandboxProvider
    from codetaste.sandbox.config import SandboxConfig

_T = TypeVar("_T")
SUITES_FOLDER = ".suites"
"""The folder of a run for what sandboxes of test runs have mounted; it is removed at the end."""
_TRIES, _PAUSE_S = 3, 10.0


@dataclass(frozen=True, slots=True)
class SuiteServices:
    """What test runs need.

    Attributes:
        sandboxes: opens their sandboxes, in a container engine.
        sandbox_config: the section ``[sandbox]``.
        cache: the folder where trees and testbeds are cached between runs.
        folder: a folder of the run for the scripts that sandboxes mount, and for patched trees.
        network: what a test run reaches if its environment needs the network: the registries of this host.
        home: files in HOME with the settings of tools for these, by path.
        limits: time limits of the scripts.
        cpus: cores of one test run.
        memory_bytes: memory at which a test run is killed.
        memory_reserved_bytes: memory that a test run is guaranteed.
        writing: held while scripts are written.
    """

    sandboxes: SandboxProvider
    sandbox_config: SandboxConfig
    cache: Path
    folder: Path
    network: Egress
    home: Mapping[str, bytes]
    limits: SuiteLimits
    cpus: float
    memory_bytes: int
    memory_reserved_bytes: int
    writing: Lock = field(default_factory=Lock)

    async def mount_scripts(
        self, environment: RuntimeEnvironment, load_text: Callable[[str], Awaitable[str]]
    ) -> Path:
        """Return a folder with the scripts of an environment, which is written unless it is there.

        Raises:
            JournalError: the scripts are missing or damaged, or cannot be written.
        """
        folder = self.folder / (environment.key or environment.scripts)
        async with self.writing:
            if not await to_thread.run_sync(folder.is_dir):
                scripts = await load_scripts(environment.scripts, load_text)
                await to_thread.run_sync(scripts.write, folder)
        return folder


@dataclass(frozen=True, slots=True)
class SuiteSandbox:
    """One sandbox of a test run.

    Attributes:
        job: key of the job, for labels.
        image: a setup image, or a runtime image.
        scripts: a folder of the host with the scripts.
        privileges: what the scripts need.
        egress: what they reach.
        testbed: the code to put into /testbed; None where the image has it.
    """

    job: str
    image: str
    scripts: Path
    privileges: Privileges = Privileges.NONE
    egress: Egress = NO_EGRESS
    testbed: Testbed | None = None


@asynccontextmanager
async def open_suite_sandbox(services: SuiteServices, wanted: SuiteSandbox) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox; it and all that was written in it are removed at the end of the block.

    Raises:
        SandboxMissing: the image does not exist, or there is no container engine.
        SandboxError: the sandbox cannot be opened or filled.
    """
    limits = services.limits
    spec = sandbox_spec(
        services.sandbox_config,
        wanted.job,
        image=wanted.image,
        privileges=wanted.privileges,
        egress=wanted.egress,
        cpus=services.cpus,
        memory_bytes=services.memory_bytes,
        memory_reserved_bytes=services.memory_reserved_bytes,
        mounts=(Mount(wanted.scripts, SCRIPTS),),
        # Twice, as the gates run the scripts twice in one sandbox.
        lifetime_s=3600.0 + 2 * (limits.setup_s + limits.tests_s),
    )
    async with services.sandboxes.open(spec) as sandbox:
        home = services.home if wanted.egress is services.network else {}
        if wanted.testbed is not None:
            await sandbox.put(testbed_archive(wanted.testbed, home))
        yield sandbox


async def repeat_while_faulty(
    attempt: Callable[[], Awaitable[_T]], fault: Callable[[_T], str], job: JobContext, what: str = "tests"
) -> _T:
    """Return the first result that the machine has not spoilt, or that of the third attempt.

    Args:
        attempt: makes a result.
        fault: says what the machine is to blame for in a result, "" for nothing.
        job: gets a note of each fault.
        what: is attempted.
    """
    for number in range(1, _TRIES + 1):
        result = await attempt()
        why = fault(result)
        if not why:
            break
        job.note(f"{what}, attempt {number} of {_TRIES}: {why}")
        await anyio.sleep(_PAUSE_S * number if number < _TRIES else 0)
    return result
