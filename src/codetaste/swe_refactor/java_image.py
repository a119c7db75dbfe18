"""The image in which Java projects are built, analysed and refactored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.environment.base_image.recipe import JAVA_IMAGE

if TYPE_CHECKING:
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.swe_refactor.config import JavaConfig


def java_sandbox(sandbox: SandboxConfig, section: JavaConfig) -> SandboxConfig:
    """Return ``[sandbox]`` with the Java image."""
    return sandbox.model_copy(update={"image": section.image or JAVA_IMAGE})
