"""What a command in a box takes: ``true``, 1 MB of output, a kill; beside an exec by a Docker engine's API.

Wall time as the caller sees it, from the request to the exit code, in one process and in turns; the peer's
container is of the same image and idles otherwise. A kill is measured from the decision to the end: an exec
whose client goes away runs on, so the peer kills inside, by a second exec.

    python perf/box_commands.py [--socket /var/run/docker.sock] [--image NAME] [--count 30]
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from measure import Report, arguments, machine, ratio, versions

from codetaste.sandbox.base import CommandLimits, Sandbox, SandboxSpec
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.local.sandbox import bubblewrap_provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiodocker import Docker

MEGABYTE = 1_000_000
PATIENCE_S = 0.05
MOST = 0.1
"""Of the peer's latency."""
WHAT = ("true", "1 MB of output", "a kill")


class InBox:
    """Commands in an open box."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box

    async def run(self, *command: str) -> float:
        """Run a command to its end; return how long it took, in seconds."""
        began = time.perf_counter()
        done = await self._box.run(command, limits=CommandLimits(output_bytes=2 * MEGABYTE))
        took = time.perf_counter() - began
        assert done.exit_code == 0, done
        assert len(done.stdout) in {0, MEGABYTE}
        return took

    async def kill(self) -> float:
        """Start a long command; return how long it took to end it, in seconds."""
        began = time.perf_counter()
        done = await self._box.run(["sleep", "1000"], limits=CommandLimits(wall_s=PATIENCE_S))
        assert done.timed_out
        return time.perf_counter() - began - PATIENCE_S


class InContainer:
    """Commands by exec in a container that idles."""

    def __init__(self, container: Any) -> None:  # noqa: ANN401 - aiodocker's own type
        self._container = container

    async def _exec(self, command: tuple[str, ...], heard: Callable[[bytes], None]) -> int:
        made = await self._container.exec(list(command), stdout=True, stderr=True)
        async with made.start(detach=False) as stream:
            while (piece := await stream.read_out()) is not None:
                heard(piece.data)
        code: int = (await made.inspect())["ExitCode"]
        return code

    async def run(self, *command: str) -> float:
        """Run a command to its end; return how long it took, in seconds."""
        began, sizes = time.perf_counter(), [0]
        code = await self._exec(command, lambda piece: sizes.append(len(piece)))
        took = time.perf_counter() - began
        assert code == 0
        assert sum(sizes) in {0, MEGABYTE}
        return took

    async def kill(self) -> float:
        """Start a long command; return how long it took to end it, in seconds."""
        said, began = bytearray(), 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._exec, ("sh", "-c", "echo $$; exec sleep 1000"), said.extend)
            while not said.endswith(b"\n"):  # noqa: ASYNC110 - a buffer says nothing
                await anyio.sleep(0.005)
            await anyio.sleep(PATIENCE_S)
            began = time.perf_counter()
            await self._exec(("kill", "-KILL", said.decode().strip()), lambda _: None)
        return time.perf_counter() - began


@contextlib.asynccontextmanager
async def idle_container(client: Docker, image: str) -> AsyncIterator[InContainer]:
    config = {
        "Image": image,
        "Cmd": ["sleep", "3600"],
        "User": "1000:1000",
        "Labels": {"codetaste.perf": "box_commands"},
        "HostConfig": {"NetworkMode": "none"},
    }
    container = await client.containers.create(config)
    try:
        await container.start()
        yield InContainer(container)
    finally:
        with anyio.CancelScope(shield=True):
            await container.delete(force=True, v=True)


async def timed(side: InBox | InContainer, count: int) -> dict[str, float]:
    """Return the median of each kind of command, in milliseconds."""
    asked: dict[str, Callable[[], Awaitable[float]]] = {
        "true": lambda: side.run("true"),
        "1 MB of output": lambda: side.run("head", "-c", str(MEGABYTE), "/dev/zero"),
        "a kill": side.kill,
    }
    return {
        name: 1000 * statistics.median([await one() for _ in range(count)]) for name, one in asked.items()
    }


async def measured(
    rounds: int, count: int, socket: Path | None, image: str
) -> tuple[dict[str, list[dict[str, float]]], dict[str, list[float]]]:
    """Return the medians of each side's rounds, and how long opening a box took, in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with contextlib.AsyncExitStack() as held:
            engine = await held.enter_async_context(connect_engine("docker", socket))
            boxes = open_docker_sandboxes(
                engine, run="perf", image=image, folder=folder / "docker", bundle=None, warn=print
            )
            kinds = {
                "box in a container": await held.enter_async_context(boxes),
                "box in bubblewrap": bubblewrap_provider(folder / "local"),
            }
            opened: dict[str, list[float]] = {kind: [] for kind in kinds}
            sides: dict[str, InBox | InContainer] = {}
            for kind, opener in kinds.items():
                for last in range(rounds):
                    began = time.perf_counter()
                    async with contextlib.AsyncExitStack() as one:
                        box = await one.enter_async_context(opener.open(SandboxSpec("perf")))
                        opened[kind].append(1000 * (time.perf_counter() - began))
                        if last == rounds - 1:
                            sides[kind] = InBox(box)
                            held.push_async_exit(one.pop_all())
            sides["docker exec"] = await held.enter_async_context(idle_container(engine.client, image))
            for side in sides.values():
                await timed(side, 1)
            figures: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
            for number in range(rounds):
                for side in [*sides] if number % 2 == 0 else reversed([*sides]):
                    figures[side].append(await timed(sides[side], count))
    return figures, opened


def main() -> int:
    parser = arguments(__doc__, 5)
    parser.add_argument("--count", type=int, default=20, help="commands of each kind in a round (default 20)")
    parser.add_argument(
        "--socket", type=Path, help="where the engine listens; default: where it usually does"
    )
    parser.add_argument("--image", default=LEAN_IMAGE, help=f"default {LEAN_IMAGE}")
    chosen, about = parser.parse_args(), machine()
    figures, opened = anyio.run(measured, chosen.rounds, chosen.count, chosen.socket, chosen.image)
    report = Report("a command in a box", {**about, **versions(sys.executable, "codetaste", "aiodocker")})
    for what in WHAT:
        each = {side: [one[what] for one in rounds] for side, rounds in figures.items()}
        for side, values in each.items():
            report.add(f"{what}: {side}", values, " ms")
        peer = each.pop("docker exec")
        for side, values in each.items():
            report.add(f"{what}: {side} / docker exec", ratio(values, peer), " ×", most=MOST)
    for kind, values in opened.items():
        most = 300.0 if "bubblewrap" in kind else None
        report.add(f"from nothing to ready: {kind}", values, " ms", most=most)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
