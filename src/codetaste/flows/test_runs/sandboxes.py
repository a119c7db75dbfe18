"""Open sandboxes for test runs: the scripts are mounted read-only, the code is in /testbed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.environment.scripts import SCRIPTS
from codetaste.harness.testbed.testbed import testbed_archive
from codetaste.sandbox.base import NO_EGRESS, Mount, Privileges
from codetaste.sandbox.provider import sandbox_spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.flows.test_runs.context import SuiteServices
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.sandbox.base import Egress, Sandbox


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
