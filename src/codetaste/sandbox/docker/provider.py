"""Sandboxes in containers of Docker or Podman.

The engine creates, starts, stops and deletes containers, and transfers archives. Commands do not go through
it: the supervisor in the container runs them (``supervisor/client.py``).
"""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.concurrency import background_tasks
from codetaste.core.files import remove_tree
from codetaste.errors import SandboxError, SandboxMissing
from codetaste.sandbox.base import HOME, EndReason, Mount, Privileges
from codetaste.sandbox.ca_bundle import (
    BUNDLE_MOUNT,
    JAVA_MOUNT,
    find_bundle,
    java_trust_store,
    needs_bundle,
    trust_variables,
    with_java_trust,
)
from codetaste.sandbox.docker.base_image import create_container, derive_base_image
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.commit import COMMIT_S, commit_container, image_changes
from codetaste.sandbox.docker.disk import DiskWatch
from codetaste.sandbox.docker.engine import (
    AUTO,
    DOCKER,
    PODMAN,
    EngineGone,
    connect_engine,
    delete_resource,
    engine_errors,
)
from codetaste.sandbox.docker.images import has_health_check, require_image
from codetaste.sandbox.docker.reaper import remove_orphans
from codetaste.sandbox.docker.sandbox import DockerSandbox
from codetaste.sandbox.docker.spec import ContainerSpec, container_config, make_labels, unsupported_limits
from codetaste.sandbox.seccomp.sandbox_filter import render_sandbox_profile
from codetaste.sandbox.supervisor.client import connect_supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from codetaste.core.concurrency import BackgroundTasks
    from codetaste.sandbox.base import Sandbox, SandboxSpec
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.sandbox.docker.engine import ContainerEngine
    from codetaste.sandbox.supervisor.client import SupervisorClient

_JAVA_FILE = "cacerts.jks"
_STARTS_AT_ONCE = 4
_START_S = 120.0
_NETWORK_LIFETIME_S = 7 * 24 * 3600.0


@dataclass(slots=True)
class DockerSandboxProvider:
    """Opens sandboxes in one engine, for one run."""

    engine: ContainerEngine
    run: str
    image: str
    folder: Path
    bundle: Path | None
    seccomp: str
    warn: Callable[[str], None]
    _tasks: BackgroundTasks
    _disk: DiskWatch
    _starts: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_STARTS_AT_ONCE))
    _network: str = ""
    _bases: dict[str, tuple[str, bool]] = field(default_factory=dict)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def kind(self) -> str:
        """What contains: "docker" or "podman"."""
        return self.engine.kind

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[DockerSandbox]:
        """Start a sandbox; it and everything written in it are removed at the end of the block.

        Raises:
            SandboxMissing: the image does not exist.
            SandboxError: it cannot be started; the message has the fix.
        """
        if spec.read_only_root and self.kind == PODMAN:
            raise SandboxMissing(
                "sandbox.read_only_root does not work with podman (its volume archives have other names); "
                "use docker, or leave sandbox.read_only_root out"
            )
        name = f"codetaste-{secrets.token_hex(6)}"
        folder = self.folder / name
        image, health_check = await self._base_image(spec.image or self.image)
        network = await self._shared_network() if spec.egress.network else ""
        resolved = replace(spec, image=image)
        trust = trust_variables(BUNDLE_MOUNT) if self._bundle(spec) else {}
        env = {"HOME": HOME, **trust, **spec.egress.env, **spec.env}
        try:
            async with (
                connect_supervisor(
                    folder,
                    forwards=spec.egress.forwards,
                    lifetime_s=spec.lifetime_s,
                    env=with_java_trust(env) if trust else env,
                    root=spec.privileges is not Privileges.NONE,
                ) as supervisor,
                self._container(name, resolved, supervisor, network, health_check=health_check) as ident,
            ):
                sandbox = DockerSandbox(spec, supervisor, self.engine, name)
                async with self._starts:
                    with engine_errors(
                        self.engine, f"start a sandbox from {spec.image or self.image}", _START_S
                    ):
                        await self.engine.client.containers.container(name).start()
                    await sandbox.wait_ready()
                self._tasks.start_soon(sandbox.watch_end)
                if not self.engine.quota:
                    on_full = partial(sandbox.end_early, EndReason.DISK_FULL)
                    self._disk.add(ident, spec.disk_bytes, on_full, volumes=spec.read_only_root)
                try:
                    yield sandbox
                finally:
                    self._disk.remove(ident)
                    sandbox.expect_end()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, folder)

    def _bundle(self, spec: SandboxSpec) -> Path | None:
        return self.bundle if needs_bundle(spec.egress) else None

    def _trusted(self, bundle: Path) -> tuple[Mount, ...]:
        return Mount(bundle, BUNDLE_MOUNT), Mount((self.folder / _JAVA_FILE).absolute(), JAVA_MOUNT)

    @asynccontextmanager
    async def _container(
        self, name: str, spec: SandboxSpec, supervisor: SupervisorClient, network: str, *, health_check: bool
    ) -> AsyncIterator[str]:
        bundle = self._bundle(spec)
        container = ContainerSpec(
            spec=spec,
            image=spec.image,
            command=supervisor.argv,
            mounts=(*supervisor.mounts, *(self._trusted(bundle) if bundle else ())),
            labels=make_labels(self.run, spec.job, spec.lifetime_s),
            seccomp=self.seccomp,
            network=network,
            health_check=health_check,
        )
        config = container_config(container, self.kind)
        try:
            with (
                anyio.CancelScope(shield=True),  # a cancelled creation would leave an unknown container
                engine_errors(self.engine, f"create a sandbox from {spec.image}"),
            ):
                ident = await create_container(self.engine, name, config, spec.disk_bytes)
        except EngineGone as error:
            if not error.never_sent:
                await self._delete(f"containers/{name}", v="1", force="1")
            raise
        try:
            yield ident
        finally:
            await self._delete(f"containers/{name}", v="1", force="1")

    async def _base_image(self, image: str) -> tuple[str, bool]:
        """Return the image that has what sandboxes need, and whether it has a health check."""
        async with self._lock:
            if image not in self._bases:
                base = await derive_base_image(self.engine, image, self.run)
                self._bases[image] = base, await has_health_check(self.engine, base)
            return self._bases[image]

    async def _delete(self, path: str, **params: str) -> None:
        """Delete an object; the next run removes what cannot be deleted now."""
        with anyio.CancelScope(shield=True):
            try:
                await delete_resource(self.engine, path, **params)
            except SandboxError as error:
                self.warn(f"{error}; it is removed when the next run starts")

    async def _shared_network(self) -> str:
        """Return the network of all sandboxes with full egress, created for the first of them."""
        async with self._lock:
            if not self._network:
                name = f"codetaste-{secrets.token_hex(6)}"
                options = {"com.docker.network.bridge.enable_icc": "false"} if self.kind == DOCKER else {}
                with anyio.CancelScope(shield=True), engine_errors(self.engine, "create a network"):
                    body = {"Name": name, "Driver": "bridge", "Options": options}
                    body["Labels"] = make_labels(self.run, "", _NETWORK_LIFETIME_S)
                    await self.engine.client.networks.create(body)
                    self._network = name
            return self._network

    async def close(self) -> None:
        """Remove what the sandboxes share: the network and derived images."""
        images = [f"images/{base}" for image, (base, _) in self._bases.items() if base != image]
        networks = [f"networks/{self._network}"] if self._network else []
        self._bases, self._network = {}, ""
        for path in (*networks, *images):
            await self._delete(path)


@asynccontextmanager
async def open_run_sandboxes(
    config: SandboxConfig, folder: Path, run: str, warn: Callable[[str], None]
) -> AsyncIterator[DockerSandboxProvider | None]:
    """Open sandboxes in the configured engine; None where it is "auto" and no engine has the image.

    Orphans of killed runs are removed from the engine first.

    Args:
        config: the section; its engine is "auto", "docker" or "podman".
        folder: on the host, for what each sandbox has mounted; used by this process alone.
        run: name of the run, for labels.
        warn: receives messages to the user.

    Raises:
        SandboxMissing: the engine or its image is missing; the message has the fix.
        SandboxError: the engine failed.
    """
    image = config.image or LEAN_IMAGE
    async with AsyncExitStack() as stack:
        engine = None
        try:
            connected = await stack.enter_async_context(connect_engine(config.engine, config.socket))
            await require_image(connected, image)
            engine = connected
        except SandboxError as error:
            if config.engine != AUTO:
                raise
            warn(f"agents run in bubblewrap: {error}")
        if engine is None:
            yield None
            return
        await to_thread.run_sync(remove_tree, folder)
        warn(f"agents run in containers: {engine.kind} {engine.version} at {engine.socket}")
        with engine_errors(engine, "list the limits it enforces"):
            unlimited = unsupported_limits(await engine.client.system.info())
        if unlimited:
            warn(
                f"{engine.kind} on this host does not limit {' or '.join(unlimited)} of a sandbox: "
                "run it as root, or with version 2 of cgroups"
            )
        await _remove_orphans(engine, warn)
        opened = open_docker_sandboxes(
            engine, run=run, image=image, folder=folder, bundle=find_bundle(config.ca_bundle), warn=warn
        )
        provider = await stack.enter_async_context(opened)
        try:
            yield provider
        finally:
            # A commit goes on in the engine when its process is killed, and may have ended only now.
            with anyio.CancelScope(shield=True):
                await _remove_orphans(engine, warn)


async def _remove_orphans(engine: ContainerEngine, warn: Callable[[str], None]) -> None:
    try:
        removed = await remove_orphans(engine)
    except SandboxError as error:
        warn(str(error))
    else:
        if removed:
            warn(f"removed leftovers of earlier runs from {engine.kind}: {removed}")


@asynccontextmanager
async def open_docker_sandboxes(
    engine: ContainerEngine,
    *,
    run: str,
    image: str,
    folder: Path,
    bundle: Path | None,
    warn: Callable[[str], None],
) -> AsyncIterator[DockerSandboxProvider]:
    """Open sandboxes in ``engine`` for the time of the block.

    Args:
        engine: a connected engine.
        run: name of the run, for labels.
        image: of sandboxes whose spec names none.
        folder: on the host, for what each sandbox has mounted; created if missing, and private.
        bundle: CA bundle for sandboxes that reach more than the host.
        warn: receives what could not be removed.
    """
    await anyio.Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    if bundle is not None:
        await anyio.Path(folder / _JAVA_FILE).write_bytes(await to_thread.run_sync(java_trust_store, bundle))
        await anyio.Path(folder / _JAVA_FILE).chmod(0o644)
    seccomp = render_sandbox_profile()
    if engine.kind == PODMAN:  # it takes the name of a file, Docker the text
        file = await anyio.Path(folder / "seccomp.json").resolve()
        await file.write_text(seccomp)
        seccomp = str(file)
    async with background_tasks() as tasks:
        disk = DiskWatch(engine, run)
        tasks.start_soon(disk.watch)
        sandboxes = DockerSandboxProvider(engine, run, image, folder, bundle, seccomp, warn, tasks, disk)
        try:
            yield sandboxes
        finally:
            await sandboxes.close()


async def commit_sandbox(
    sandbox: Sandbox,
    name: str,
    what: str = "sandbox",
    labels: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    *,
    instructions: Sequence[str] = (),
    draft: bool = False,
    within_s: float = COMMIT_S,
) -> str:
    """Commit the files of a sandbox as the image ``name``, and return its id, without mounts and volumes.

    The sandbox may go on, but no command may run in it meanwhile.

    Args:
        sandbox: an open one.
        name: of the image; one that has it loses it.
        what: kind of the image, the value of its label.
        labels: further labels, such as keys of its content.
        env: variables, in addition to those of the sandbox's image; it has none of the sandbox itself.
        instructions: of a Dockerfile: CMD, ENTRYPOINT, USER, WORKDIR; without them it is a shell of root.
        draft: the image is removed once this process is gone, unless ``finish_image`` makes another of it.
        within_s: time limit, in seconds.

    Raises:
        ConfigError: the name, a label or a variable cannot be that of an image.
        SandboxError: the sandbox is not a container, or the engine failed.
    """
    if not isinstance(sandbox, DockerSandbox):
        raise SandboxError(
            f"a {sandbox.kind} sandbox cannot be committed as an image: that needs a container engine"
        )
    if sandbox.spec.read_only_root:
        raise SandboxError(f"{name}: the files of a sandbox with a read-only root cannot be in an image")
    changes = image_changes(what, labels or {}, env or {}, instructions, draft=draft)
    return await commit_container(sandbox.engine, sandbox.name, name, changes, within_s)
