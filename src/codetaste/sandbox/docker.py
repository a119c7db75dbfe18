"""Boxes in containers of Docker or Podman.

The engine is asked to make, start and delete a container, to stop it, and for archives in and out. Commands
do not go through it: a program inside (``warden.py``) runs them.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError, SandboxMissing
from codetaste.sandbox.beside import beside
from codetaste.sandbox.box import Mount
from codetaste.sandbox.box_filter import box_profile
from codetaste.sandbox.ca_bundle import INSIDE, variables, wants_bundle
from codetaste.sandbox.docker_base import base_of, create
from codetaste.sandbox.docker_box import DockerBox
from codetaste.sandbox.docker_disk import DiskWatch
from codetaste.sandbox.docker_engine import EngineGone, asking, delete
from codetaste.sandbox.docker_image import commit_container
from codetaste.sandbox.docker_labels import labels
from codetaste.sandbox.docker_socket import DOCKER, PODMAN
from codetaste.sandbox.docker_spec import Order, container_config
from codetaste.sandbox.warden import control

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from codetaste.sandbox.beside import Beside
    from codetaste.sandbox.box import Box, BoxSpec
    from codetaste.sandbox.docker_engine import ContainerEngine
    from codetaste.sandbox.warden import Control

_STARTS_AT_ONCE = 4
_START_S = 120.0
_NETWORK_LIFETIME_S = 7 * 24 * 3600.0


@dataclass(slots=True)
class DockerBoxes:
    """Opens boxes in one engine, for one run."""

    engine: ContainerEngine
    run: str
    image: str
    folder: Path
    bundle: Path | None
    seccomp: str
    warn: Callable[[str], None]
    _tasks: Beside
    _disk: DiskWatch
    _starts: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_STARTS_AT_ONCE))
    _network: str = ""
    _bases: dict[str, str] = field(default_factory=dict)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def kind(self) -> str:
        """What contains: "docker" or "podman"."""
        return self.engine.kind

    def open(self, spec: BoxSpec) -> AbstractAsyncContextManager[Box]:
        """Start a box; at the end of the block it and all that it wrote are gone.

        Raises:
            SandboxMissing: its image is not there.
            SandboxError: it cannot be had; the message says what to do.
        """
        return self._opened(spec)

    @asynccontextmanager
    async def _opened(self, spec: BoxSpec) -> AsyncIterator[Box]:
        if spec.read_only_root and self.kind == PODMAN:
            raise SandboxMissing(
                "podman cannot be asked for a read-only root: its archives of volumes name files otherwise; "
                "use docker, or leave sandbox.read_only_root out"
            )
        name = f"codetaste-{secrets.token_hex(6)}"
        folder = self.folder / name
        image = await self._base(spec.image or self.image)
        network = await self._shared_network() if spec.egress.network else ""
        made = replace(spec, image=image)
        try:
            async with (
                control(folder, ways=spec.egress.ways, lifetime_s=spec.lifetime_s) as held,
                self._container(name, made, held, network) as ident,
            ):
                box = DockerBox(self.engine, name, spec, held)
                async with self._starts:
                    with asking(self.engine, f"start a box of {spec.image or self.image}", _START_S):
                        await self.engine.call("POST", f"containers/{name}/start")
                    await box.ready()
                self._tasks.start_soon(box.attend)
                if not self.engine.quota:
                    self._disk.add(ident, spec.disk_bytes, box.fill, volumes=spec.read_only_root)
                try:
                    yield box
                finally:
                    self._disk.remove(ident)
                    box.close()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(shutil.rmtree, folder, True)  # noqa: FBT003

    @asynccontextmanager
    async def _container(self, name: str, spec: BoxSpec, held: Control, network: str) -> AsyncIterator[str]:
        """Make a container for the time of the block, and give its id."""
        try:
            with anyio.CancelScope(shield=True):  # or nobody would know that it is there
                ident = await self._created(name, spec, held, network)
        except EngineGone as error:
            if not error.unheard:
                await self._delete(name)
            raise
        try:
            yield ident
        finally:
            await self._delete(name)

    async def _created(self, name: str, spec: BoxSpec, held: Control, network: str) -> str:
        """Make the container and return its id."""
        trusted = self.bundle if wants_bundle(spec.egress) else None
        order = Order(
            spec=spec,
            image=spec.image,
            command=held.argv,
            mounts=(
                *held.mounts,
                *((Mount(trusted, INSIDE),) if trusted else ()),
            ),
            env={**(variables(INSIDE) if trusted else {}), **spec.egress.env, **spec.env},
            labels=labels(self.run, spec.job, spec.lifetime_s),
            seccomp=self.seccomp,
            network=network,
        )
        with asking(self.engine, f"make a box of {spec.image}"):
            return await create(self.engine, name, container_config(order, self.kind), spec.disk_bytes)

    async def _base(self, image: str) -> str:
        """Return the image to make boxes of, which has what they need."""
        async with self._lock:
            if image not in self._bases:
                self._bases[image] = await base_of(self.engine, image, self.run)
            return self._bases[image]

    async def _delete(self, name: str) -> None:
        """Delete a container with all that it wrote, whatever its state; a reaper comes for what is left."""
        with anyio.CancelScope(shield=True):
            try:
                await delete(self.engine, f"containers/{name}", v="1", force="1")
            except SandboxError as error:
                self.warn(f"{error}; it is removed when the next run starts")

    async def _shared_network(self) -> str:
        """Return the network of all boxes that may reach everything, made for the first of them."""
        async with self._lock:
            if not self._network:
                name = f"codetaste-{secrets.token_hex(6)}"
                apart = {"com.docker.network.bridge.enable_icc": "false"} if self.kind == DOCKER else {}
                with anyio.CancelScope(shield=True), asking(self.engine, "make a network"):
                    body = {"Name": name, "Driver": "bridge", "Options": apart}
                    body["Labels"] = labels(self.run, "", _NETWORK_LIFETIME_S)
                    await self.engine.call("POST", "networks/create", body=body)
                    self._network = name
            return self._network

    async def close(self) -> None:
        """Remove what the boxes had in common."""
        made = [f"images/{base}" for image, base in self._bases.items() if base != image]
        networks = [f"networks/{self._network}"] if self._network else []
        self._bases, self._network = {}, ""
        with anyio.CancelScope(shield=True):
            for path in (*networks, *made):
                try:
                    await delete(self.engine, path)
                except SandboxError as error:
                    self.warn(f"{error}; it is removed when the next run starts")


@asynccontextmanager
async def docker_boxes(
    engine: ContainerEngine,
    *,
    run: str,
    image: str,
    folder: Path,
    bundle: Path | None,
    warn: Callable[[str], None],
) -> AsyncIterator[DockerBoxes]:
    """Open boxes in ``engine`` for the time of the block.

    Args:
        engine: which has answered.
        run: whose boxes they are: their label.
        image: of boxes whose spec names none.
        folder: of this machine, for what each box has mounted while it lives; made if need be, and private.
        bundle: certificate authorities for boxes that reach more than this machine.
        warn: is told what could not be removed.
    """
    seccomp = await to_thread.run_sync(_prepare, folder, engine.kind)
    async with beside() as tasks:
        disk = DiskWatch(engine, run)
        tasks.start_soon(disk.watch)
        boxes = DockerBoxes(engine, run, image, folder, bundle, seccomp, warn, tasks, disk)
        try:
            yield boxes
        finally:
            await boxes.close()


def _prepare(folder: Path, kind: str) -> str:
    """Make the folder, and return the filter of system calls: Docker takes its text, Podman a file's name."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if kind == DOCKER:
        return box_profile()
    file = folder / "seccomp.json"
    file.write_text(box_profile())
    return str(file.resolve())


async def commit(box: Box, name: str, what: str = "box") -> str:
    """Keep the files of a box as the image ``name``, and return its id; mounts and volumes are not in it.

    Raises:
        ConfigError: ``name`` cannot be the name of an image.
        SandboxError: it is no container, or the engine cannot.
    """
    if not isinstance(box, DockerBox):
        raise SandboxError(f"a box of {box.kind} cannot be kept as an image: it needs a container engine")
    return await commit_container(box.engine, box.name, name, what)
