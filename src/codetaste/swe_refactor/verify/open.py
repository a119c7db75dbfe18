"""Where Java projects are built: the sandboxes, the image, and what the builds of a project share."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from codetaste.errors import SandboxMissing
from codetaste.swe_refactor.verify.settings import VerifyLimits, make_verify_context

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.sandbox.base import SandboxProvider
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.swe_refactor.config import JavaConfig
    from codetaste.swe_refactor.verify.settings import VerifyContext

_NO_BUILD_TOOL = (
    "this machine has neither Maven nor Gradle; install one (sudo apt-get install maven), or build the image "
    "with them (codetaste image build --java)"
)


def check_build_tool(sandboxes: SandboxProvider) -> None:
    """Check that sandboxes without images, which use the host's programs, have a build tool.

    Raises:
        SandboxMissing: there is none.
    """
    if sandboxes.kind == "bubblewrap" and not any(map(shutil.which, ("mvn", "gradle"))):
        raise SandboxMissing(_NO_BUILD_TOOL)


async def open_verification(
    sandboxes: SandboxProvider, sandbox: SandboxConfig, section: JavaConfig, folder: Path, cache: Path
) -> VerifyContext:
    """Return what the builds of one project share.

    Args:
        sandboxes: where builds run.
        sandbox: limits of a sandbox, with the Java image.
        section: limits of builds.
        folder: for the project's dependencies and scratch; used by this process alone.
        cache: the cache folder.

    Raises:
        SourceError: what measures coverage cannot be fetched, or Maven's settings cannot be read.
        StorageFull: no space left.
    """
    in_container = sandboxes.kind != "bubblewrap"
    return await make_verify_context(
        sandboxes,
        sandbox if in_container else sandbox.model_copy(update={"image": ""}),
        image=sandbox.image if in_container else "",
        folder=folder,
        cache=cache,
        hosts=section.hosts,
        limits=VerifyLimits(
            section.compile_time_limit, section.fetch_time_limit, section.test_time_limit, section.jdks
        ),
    )
