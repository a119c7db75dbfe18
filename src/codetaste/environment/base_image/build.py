"""Build a base image: run the steps of a recipe in a sandbox, prove its tools, and commit it.

The steps are run by root of the sandbox and reach the registries of this host and nothing else. An image that
was made from the same is found by the key of its content and not built again. What a killed build leaves is
labelled, and removed when the next one starts.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.hashing import file_sha256
from codetaste.core.text import printable
from codetaste.core.units import format_duration
from codetaste.environment.base_image.check import (
    POLYGLOT,
    CheckedTool,
    check_tools,
    describe_differences,
    sandbox_folder,
)
from codetaste.environment.images.names import KEY_LABEL, content_key
from codetaste.environment.registries import Registries, find_registries, sandbox_archives
from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits, Mount, Privileges, SandboxSpec
from codetaste.sandbox.docker.bootstrap.root_filesystem import RootFilesystem, import_root_filesystem
from codetaste.sandbox.docker.engine import delete_resource, engine_errors
from codetaste.sandbox.docker.images import find_image, image_id, image_labels, tag_image
from codetaste.sandbox.docker.provider import commit_sandbox, open_docker_sandboxes
from codetaste.sandbox.docker.reaper import remove_orphans
from codetaste.sandbox.docker.spec import make_labels
from codetaste.sandbox.egress import open_allowlist_egress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from codetaste.environment.base_image.check import ToolCheck
    from codetaste.environment.base_image.recipe import Recipe, RecipeStep
    from codetaste.sandbox.base import Egress, Sandbox
    from codetaste.sandbox.docker.engine import ContainerEngine
    from codetaste.sandbox.docker.provider import DockerSandboxProvider

DIFFERENCES_LABEL = "codetaste.differences"
"""What of an image is not as the recipe wants it, in one line."""
IMAGE_FILE = "/etc/codetaste/image.json"
"""In the image: its tools with their versions."""
_USER = "benchmarker"
_BOOTSTRAP_PACKAGES = ("ca-certificates", "python3")
_OPENGREP_MOUNT = "/opt/codetaste/opengrep"
_MARGIN_S = 3600.0
_DISK_BYTES = 40 * 1024**3
_MEMORY_BYTES = 8 * 1024**3
_PROCESSES = 8192
_LAST_LINES = 3
_TAIL_BYTES = 4096
_SHORT_S = 120.0
_SOURCES = "rm -rf /etc/apt/sources.list.d && cat >/etc/apt/sources.list"
_EMPTY = "find /home/agent /testbed /tmp /var/tmp -mindepth 1 -delete"


@dataclass(frozen=True, slots=True)
class BaseImageRequest:
    """What to build.

    Attributes:
        name: of the image.
        recipe: its steps.
        checks: of its tools; it is not built if one that is needed does not work.
        opengrep: the program that steps find at $OPENGREP; None for none.
        logs: folder of the steps' log files.
        mirrors: of the distribution, as ``RootFilesystem`` has them; "" for the usual ones.
        from_image: an image in the engine that it is made from; by default a new root file system.
        allow: further entries of the allow list.
        bundle: certificate authorities of this host, for the sandbox.
        rebuild: build it although there is one of the same content.
        kind: of the image.
    """

    name: str
    recipe: Recipe
    checks: tuple[ToolCheck, ...]
    opengrep: Path | None
    logs: Path
    mirrors: tuple[str, ...] = ()
    from_image: str = ""
    allow: tuple[str, ...] = ()
    bundle: Path | None = None
    rebuild: bool = False
    kind: str = POLYGLOT


@dataclass(frozen=True, slots=True)
class BaseImage:
    """A base image; ``tools`` is empty if it was there already."""

    name: str
    ident: str
    key: str
    differences: str
    tools: tuple[CheckedTool, ...] = ()


async def build_base_image(
    engine: ContainerEngine, request: BaseImageRequest, notify: Callable[[str], None]
) -> BaseImage:
    """Build a base image, or name the one that was made from the same.

    Raises:
        ConfigError: a name, a mirror or an entry of the allow list is invalid.
        ToolMissing: mmdebstrap is not installed.
        SandboxMissing: the image to make it from does not exist.
        SandboxError: a step failed, a tool does not work, or the engine failed.
    """
    if removed := await remove_orphans(engine):
        notify(f"removed leftovers of earlier runs from {engine.kind}: {removed}")
    registries = await find_registries()
    for problem in registries.problems:
        notify(problem)
    key = await _key(engine, request, registries)
    ident = None if request.rebuild else await find_image(engine, request.kind, KEY_LABEL, key)
    if ident is not None:
        await tag_image(engine, ident, request.name)
        differences = (await image_labels(engine, ident)).get(DIFFERENCES_LABEL, "")
        notify(f"{request.name} was built from the same before ({ident}); --rebuild builds it again")
        return BaseImage(request.name, ident, key, differences)
    async with sandbox_folder() as folder, AsyncExitStack() as stack:
        base = request.from_image or await stack.enter_async_context(_bootstrap(engine, request, notify))
        sandboxes = await stack.enter_async_context(
            open_docker_sandboxes(
                engine,
                run="image",
                image=base,
                folder=folder / "sandboxes",
                bundle=request.bundle,
                warn=notify,
            )
        )
        hosts = [*registries.hosts, *request.allow, *await _archive_hosts(sandboxes, request)]
        egress = await stack.enter_async_context(open_allowlist_egress(hosts, folder=folder))
        sandbox = await stack.enter_async_context(
            sandboxes.open(_spec(request, egress, registries.variables))
        )
        await _write_sources(sandbox, request)
        await run_steps(sandbox, request.recipe, request.logs, notify, egress)
        tools = await _checked_tools(sandbox, request, egress, notify)
        await _finish(sandbox, request, key, tools)
        differences = describe_differences(tools)
        labels = {KEY_LABEL: key, DIFFERENCES_LABEL: differences}
        ident = await commit_sandbox(sandbox, request.name, request.kind, labels, request.recipe.environment)
    return BaseImage(request.name, ident, key, differences, tools)


async def _key(engine: ContainerEngine, request: BaseImageRequest, registries: Registries) -> str:
    base = ""
    if request.from_image:
        with engine_errors(engine, f"build on {request.from_image}"):
            base = await image_id(engine, request.from_image)
    opengrep = request.opengrep
    return content_key(
        request.kind,
        recipe=request.recipe.to_json(),
        checks=[check.script for check in request.checks],
        base=base,
        mirrors=list(request.mirrors),
        registries=dict(registries.variables),
        allow=sorted(request.allow),
        opengrep="" if opengrep is None else await to_thread.run_sync(file_sha256, opengrep),
    )


@asynccontextmanager
async def _bootstrap(
    engine: ContainerEngine, request: BaseImageRequest, notify: Callable[[str], None]
) -> AsyncIterator[str]:
    """Give the image of a new root file system, which loses its name at the end."""
    name = f"codetaste/bootstrap:{secrets.token_hex(6)}"
    recipe = request.recipe
    root = RootFilesystem(
        recipe.suite,
        _BOOTSTRAP_PACKAGES,
        kind="bootstrap",
        components=recipe.components,
        mirrors=request.mirrors,
        user=_USER,
        labels=make_labels("image", "", _MARGIN_S),
        apt_options=recipe.apt_options,
    )
    notify(f"making the root file system of {recipe.base} {recipe.suite}")
    try:
        await import_root_filesystem(engine, root, name, notify)
        yield name
    finally:
        with anyio.CancelScope(shield=True):
            await delete_resource(engine, f"images/{name}")


async def _archive_hosts(sandboxes: DockerSandboxProvider, request: BaseImageRequest) -> tuple[str, ...]:
    """Return the hosts of the distribution's archives, which apt in the image knows."""
    async with sandboxes.open(SandboxSpec("image/apt", privileges=Privileges.SYSTEM)) as sandbox:
        await _write_sources(sandbox, request)
        hosts = await sandbox_archives(sandbox)
    if not hosts:
        raise SandboxError(
            f"{request.from_image or request.recipe.suite} has no apt that lists its archives: "
            "base images are made of Debian or Ubuntu"
        )
    return hosts


def _source_lines(request: BaseImageRequest) -> list[str]:
    recipe = request.recipe
    areas = (recipe.components or "main").replace(",", " ")
    return [
        mirror if mirror.startswith("deb ") else f"deb {mirror} {recipe.suite} {areas}"
        for mirror in request.mirrors
    ]


async def _write_sources(sandbox: Sandbox, request: BaseImageRequest) -> None:
    """Let an existing image use the mirrors; a new root file system has them already."""
    if request.from_image and request.mirrors:
        await _run_as_root(sandbox, _SOURCES, "\n".join([*_source_lines(request), ""]))


def _spec(request: BaseImageRequest, egress: Egress, variables: Mapping[str, str]) -> SandboxSpec:
    opengrep = request.opengrep
    return SandboxSpec(
        "image/build",
        mounts=() if opengrep is None else (Mount(opengrep, _OPENGREP_MOUNT),),
        egress=egress,
        env={**variables, "OPENGREP": _OPENGREP_MOUNT, "DEBIAN_FRONTEND": "noninteractive"},
        memory_bytes=_MEMORY_BYTES,
        cpus=float(os.cpu_count() or 1),
        processes=_PROCESSES,
        disk_bytes=_DISK_BYTES,
        lifetime_s=sum(step.limit_s for step in request.recipe.steps) + _MARGIN_S,
        privileges=Privileges.SUDO,
    )


async def run_steps(
    sandbox: Sandbox, recipe: Recipe, logs: Path, notify: Callable[[str], None], egress: Egress
) -> None:
    """Run the steps of a recipe in a sandbox, each with a log file ``NN-name.log`` in ``logs``.

    Args:
        sandbox: with privileges.
        recipe: the steps.
        logs: a folder, which is created.
        notify: receives a line for each step.
        egress: of the sandbox; steps without network do not get its variables.

    Raises:
        SandboxError: a step failed, or took too long; the message has the end of its log.
    """
    await anyio.Path(logs).mkdir(parents=True, exist_ok=True)
    hidden = dict.fromkeys(egress.env, "")
    for number, step in enumerate(recipe.steps, 1):
        log = logs / f"{number:02}-{step.name}.log"
        began = anyio.current_time()
        env = {**recipe.variables, **({} if step.network else hidden)}
        problem = await _run_step(sandbox, step, log, env)
        took = format_duration(anyio.current_time() - began)
        if problem and not step.optional:
            raise SandboxError(f"step {step.name} of the image {problem}; its log is {log}")
        notify(
            f"{step.name}: {took}" + (f"; it {problem}, and is optional; its log is {log}" if problem else "")
        )


async def _run_step(sandbox: Sandbox, step: RecipeStep, log: Path, env: Mapping[str, str]) -> str:
    """Run one step; return what went wrong, "" for nothing."""
    async with await anyio.open_file(log, "wb") as file:
        done = await sandbox.run(
            ["/bin/bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{step.script}"],
            limits=CommandLimits(wall_s=step.limit_s),
            env=env,
            workdir="/",
            sink=lambda chunk: _write(file, chunk),
            root=True,
        )
        await file.write(done.stderr)
    if done.exit_code == 0:
        return ""
    tail = await to_thread.run_sync(partial(_last_lines, log))
    end = (
        f"had no end within {format_duration(step.limit_s)}"
        if done.timed_out
        else f"ended with {done.exit_code}"
    )
    return f"{end}: {tail}"


async def _write(file: anyio.AsyncFile[bytes], chunk: bytes) -> None:
    await file.write(chunk)
    await file.flush()  # people follow it


def _last_lines(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    last = [printable(line.strip()) for line in lines if line.strip()][-_LAST_LINES:]
    return " / ".join(last) or "no output"


async def _checked_tools(
    sandbox: Sandbox, request: BaseImageRequest, egress: Egress, notify: Callable[[str], None]
) -> tuple[CheckedTool, ...]:
    notify(f"checking {len(request.checks)} tools")
    # As in a sandbox of the image: with its variables, and without a network.
    env = {**dict.fromkeys(egress.env, ""), **request.recipe.environment}
    tools = await check_tools(sandbox, request.checks, env=env)
    if broken := [tool for tool in tools if not tool.sound]:
        reasons = "; ".join(f"{tool.tool} is {tool.state} ({tool.detail})" for tool in broken)
        raise SandboxError(f"the image is not as it must be: {reasons}")
    return tools


async def _finish(
    sandbox: Sandbox, request: BaseImageRequest, key: str, tools: tuple[CheckedTool, ...]
) -> None:
    """Remove what the checks left, and write the file about the image."""
    recipe = request.recipe
    about = {
        "json_format": 1,
        "kind": request.kind,
        "key": key,
        "base": recipe.base,
        "suite": recipe.suite,
        "tools": [tool.to_json() for tool in tools],
    }
    await _run_as_root(sandbox, _EMPTY)
    write = f"mkdir -p {os.path.dirname(IMAGE_FILE)} && cat >{IMAGE_FILE}"  # noqa: PTH120 - of a sandbox
    await _run_as_root(sandbox, write, json.dumps(about, indent=2) + "\n")


async def _run_as_root(sandbox: Sandbox, script: str, stdin: str = "") -> None:
    done = await sandbox.run(
        ["/bin/sh", "-c", script],
        limits=CommandLimits(wall_s=_SHORT_S),
        stdin=stdin.encode(),
        workdir="/",
        root=True,
    )
    if done.exit_code != 0:
        message = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SandboxError(f"a command in the image ended with {done.exit_code}: {' '.join(message)}")
