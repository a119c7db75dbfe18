"""Prove the tools of an image by running each, and compare their versions with those that are wanted."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio
import tomli
from anyio import to_thread

from codetaste.core.files import remove_tree, stale_folders
from codetaste.core.text import printable
from codetaste.sandbox.base import CommandLimits, Privileges, SandboxSpec
from codetaste.sandbox.docker.images import image_labels, require_image
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.docker.spec import IMAGE_LABEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from codetaste.sandbox.base import Sandbox
    from codetaste.sandbox.docker.engine import ContainerEngine

POLYGLOT, JAVA = "polyglot", "java"
"""Kinds of base images: values of the label of images."""
CHECK_S = 300.0
"""Time limit of one check: compilers start slowly on a busy machine."""
_PREFIX = "codetaste-image-"
_MISSING = 127
_OUTPUT_BYTES = 16 * 1024
_WITH_FOLDER = '__own=$(mktemp -d) && cd "$__own" || exit 1\ntrap \'rm -rf "$__own"\' EXIT\n'


class ToolState(StrEnum):
    """What a check of a tool has shown."""

    OK = "ok"
    DIFFERS = "differs"
    """It works in another version than the wanted one."""
    MISSING = "missing"
    BROKEN = "broken"
    """It is there and does not work."""


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """The check of one tool; ``recipe.toml`` and ``checks.toml`` describe the fields.

    Attributes:
        tool: its name in the table.
        script: for bash, run by the user; its last line of output is the version.
        wanted: the version, or the beginning of it; "" for any.
        needed: an image without it is not sound.
    """

    tool: str
    script: str
    wanted: str = ""
    needed: bool = True


@dataclass(frozen=True, slots=True)
class CheckedTool:
    """The result for one tool; ``detail`` says why it does not work."""

    tool: str
    wanted: str
    found: str
    state: ToolState
    needed: bool
    detail: str = ""

    @property
    def sound(self) -> bool:
        """Whether the image is as it must be, as far as this tool decides."""
        return not self.needed or self.state in {ToolState.OK, ToolState.DIFFERS}

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


def polyglot_checks() -> tuple[ToolCheck, ...]:
    """Return the checks of the polyglot image."""
    return _read_checks(Path(__file__).with_name("checks.toml"))


def java_checks() -> tuple[ToolCheck, ...]:
    """Return the checks of the Java image."""
    return _read_checks(Path(__file__).parent / "java" / "checks.toml")


def _read_checks(path: Path) -> tuple[ToolCheck, ...]:
    content = tomli.loads(path.read_text("utf-8"))
    return tuple(ToolCheck(**check) for check in content["checks"])


@asynccontextmanager
async def sandbox_folder() -> AsyncIterator[Path]:
    """Give a folder for the sockets of sandboxes; those of killed processes are removed."""

    def make() -> Path:
        for left in stale_folders(Path(tempfile.gettempdir()), _PREFIX):
            remove_tree(left)
        return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))

    folder = await to_thread.run_sync(make)
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)


async def check_image(
    engine: ContainerEngine, image: str, notify: Callable[[str], None]
) -> tuple[CheckedTool, ...]:
    """Run all checks of an image's kind in a new sandbox of it; ``notify`` receives a line for each.

    An image of another kind is checked as a polyglot one.

    Raises:
        SandboxMissing: the image does not exist.
        SandboxError: it cannot be run.
    """
    await require_image(engine, image)
    kind = (await image_labels(engine, image)).get(IMAGE_LABEL, "")
    checks = java_checks() if kind == JAVA else polyglot_checks()
    async with (
        sandbox_folder() as folder,
        open_docker_sandboxes(
            engine, run="image", image=image, folder=folder, bundle=None, warn=notify
        ) as sandboxes,
        sandboxes.open(SandboxSpec("image/check", privileges=Privileges.SUDO)) as sandbox,
    ):
        return await check_tools(sandbox, checks, lambda checked: notify(f"{checked.tool}: {checked.state}"))


async def check_tools(
    sandbox: Sandbox,
    checks: Sequence[ToolCheck],
    note: Callable[[CheckedTool], None] = lambda _checked: None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> tuple[CheckedTool, ...]:
    """Run all checks, one after the other, and return their results.

    Args:
        sandbox: it has the privileges ``SUDO`` if one of the checks needs them.
        checks: what to run.
        note: receives each result.
        env: variables, in addition to those of the sandbox.

    Raises:
        SandboxError: the sandbox ended.
    """
    checked = []
    for check in checks:
        checked.append(await _check(sandbox, check, env))
        note(checked[-1])
    return tuple(checked)


async def _check(sandbox: Sandbox, check: ToolCheck, env: Mapping[str, str]) -> CheckedTool:
    limits = CommandLimits(wall_s=CHECK_S, output_bytes=_OUTPUT_BYTES)
    command = ["/bin/bash", "-euo", "pipefail", "-c", _WITH_FOLDER + check.script]
    done = await sandbox.run(command, limits=limits, env=env, workdir="/")
    lines = done.stdout.decode(errors="replace").split("\n")
    found = printable(next((line.strip() for line in reversed(lines) if line.strip()), ""), 80)
    problems = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if done.timed_out:
        state, detail = ToolState.BROKEN, f"no end within {CHECK_S:g} s"
    elif done.exit_code == _MISSING:
        state, detail = ToolState.MISSING, ""
    elif done.exit_code != 0:
        reason = f": {printable(problems[-1])}" if problems else ""
        state, detail = ToolState.BROKEN, f"its check ended with {done.exit_code}{reason}"
    else:
        right = check.wanted in {"", found} or found.startswith(f"{check.wanted}.")
        state, detail = ToolState.OK if right else ToolState.DIFFERS, ""
    version = found if state in {ToolState.OK, ToolState.DIFFERS} else ""
    return CheckedTool(check.tool, check.wanted, version, state, check.needed, detail)


def format_tools(tools: Sequence[CheckedTool]) -> list[str]:
    """Return the table of results, one line for each tool."""
    width = max((len(tool.tool) for tool in tools), default=0)
    return [
        f"{tool.tool:<{width}}  {tool.found or '-':<12}  {tool.wanted or 'any':<12}  {tool.state}"
        + ("" if tool.needed else " (not needed)" if tool.state is not ToolState.OK else "")
        + (f": {tool.detail}" if tool.detail else "")
        for tool in tools
    ]


def describe_differences(tools: Sequence[CheckedTool]) -> str:
    """Return what is not as wanted, on one line that can be a label of an image, "" for nothing."""
    text = ", ".join(
        f"{tool.tool} {tool.found} instead of {tool.wanted}"
        if tool.state is ToolState.DIFFERS
        else f"{tool.tool} {tool.state}"
        for tool in tools
        if tool.state is not ToolState.OK
    )
    return re.sub(r'["\\$]', "?", text)
