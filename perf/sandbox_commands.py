"""Time of a command in a sandbox: ``true``, 1 MB of output, a kill; beside an exec by a Docker engine's API.

Wall time of the caller from the request to the exit code, in one process and in turns. The peer's container
has the same image and is otherwise idle. A kill is measured from the decision to the end: an exec continues
without its client, so the peer kills in the container, by a second exec.

    python perf/sandbox_commands.py [--socket /var/run/docker.sock] [--image NAME] [--count 30]
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
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.local.sandbox import bubblewrap_provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiodocker import Docker

MEGABYTE = 1_000_000
KILL_AFTER_S = 0.05
MAX_RATIO = 0.1
"""The highest ratio to the peer's latency."""
COMMANDS = ("true", "1 MB of output", "a kill")


class InSandbox:
    """Commands in an open sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def run(self, *command: str) -> float:
        """Run a command to its end and return the seconds that it took."""
        began = time.perf_counter()
        done = await self._sandbox.run(command, limits=CommandLimits(output_bytes=2 * MEGABYTE))
        took = time.perf_counter() - began
        assert done.exit_code == 0, done
        assert len(done.stdout) in {0, MEGABYTE}
        return took

    async def kill(self) -> float:
        """Start a long command and return the seconds that it took to end it."""
        began = time.perf_counter()
        done = await self._sandbox.run(["sleep", "1000"], limits=CommandLimits(wall_s=KILL_AFTER_S))
        assert done.timed_out
        return time.perf_counter() - began - KILL_AFTER_S


class InContainer:
    """Commands by exec in an idle container."""

    def __init__(self, container: Any) -> None:  # noqa: ANN401 - aiodocker's own type
        self._container = container

    async def _exec(self, command: tuple[str, ...], on_output: Callable[[bytes], None]) -> int:
        execution = await self._container.exec(list(command), stdout=True, stderr=True)
        async with execution.start(detach=False) as stream:
            while (piece := await stream.read_out()) is not None:
                on_output(piece.data)
        code: int = (await execution.inspect())["ExitCode"]
        return code

    async def run(self, *command: str) -> float:
        """Run a command to its end and return the seconds that it took."""
        began, sizes = time.perf_counter(), [0]
        code = await self._exec(command, lambda piece: sizes.append(len(piece)))
        took = time.perf_counter() - began
        assert code == 0
        assert sum(sizes) in {0, MEGABYTE}
        return took

    async def kill(self) -> float:
        """Start a long command and return the seconds that it took to end it."""
        output, began = bytearray(), 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._exec, ("sh", "-c", "echo $$; exec sleep 1000"), output.extend)
            while not output.endswith(b"\n"):  # noqa: ASYNC110 - a buffer has no event
                await anyio.sleep(0.005)
            await anyio.sleep(KILL_AFTER_S)
            began = time.perf_counter()
            await self._exec(("kill", "-KILL", output.decode().strip()), lambda _: None)
        return time.perf_counter() - began


@contextlib.asynccontextmanager
async def idle_container(client: Docker, image: str) -> AsyncIterator[InContainer]:
    config = {
        "Image": image,
        "Cmd": ["sleep", "3600"],
        "User": "1000:1000",
        "Labels": {"codetaste.perf": "sandbox_commands"},
        "HostConfig": {"NetworkMode": "none"},
    }
    container = await client.containers.create(config)
    try:
        await container.start()
        yield InContainer(container)
    finally:
        with anyio.CancelScope(shield=True):
            await container.delete(force=True, v=True)


async def time_commands(side: InSandbox | InContainer, count: int) -> dict[str, float]:
    """Return the median of each kind of command, in milliseconds."""
    commands: dict[str, Callable[[], Awaitable[float]]] = {
        "true": lambda: side.run("true"),
        "1 MB of output": lambda: side.run("head", "-c", str(MEGABYTE), "/dev/zero"),
        "a kill": side.kill,
    }
    return {
        name: 1000 * statistics.median([await one() for _ in range(count)]) for name, one in commands.items()
    }


async def measure(
    rounds: int, count: int, socket: Path | None, image: str
) -> tuple[dict[str, list[dict[str, float]]], dict[str, list[float]]]:
    """Return the medians of each side's rounds, and the times of opening a sandbox, in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with contextlib.AsyncExitStack() as stack:
            engine = await stack.enter_async_context(connect_engine("docker", socket))
            container_provider = open_docker_sandboxes(
                engine, run="perf", image=image, folder=folder / "docker", bundle=None, warn=print
            )
            kinds = {
                "sandbox in a container": await stack.enter_async_context(container_provider),
                "sandbox in bubblewrap": bubblewrap_provider(folder / "local"),
            }
            opened: dict[str, list[float]] = {kind: [] for kind in kinds}
            sides: dict[str, InSandbox | InContainer] = {}
            for kind, provider in kinds.items():
                for number in range(rounds):
                    began = time.perf_counter()
                    async with contextlib.AsyncExitStack() as one:
                        sandbox = await one.enter_async_context(provider.open(SandboxSpec("perf")))
                        opened[kind].append(1000 * (time.perf_counter() - began))
                        if number == rounds - 1:
                            sides[kind] = InSandbox(sandbox)
                            stack.push_async_exit(one.pop_all())
            sides["docker exec"] = await stack.enter_async_context(idle_container(engine.client, image))
            for side in sides.values():
                await time_commands(side, 1)
            figures: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
            for number in range(rounds):
                for side in [*sides] if number % 2 == 0 else reversed([*sides]):
                    figures[side].append(await time_commands(sides[side], count))
    return figures, opened


def main() -> int:
    parser = arguments(__doc__, 5)
    parser.add_argument("--count", type=int, default=20, help="commands of each kind in a round (default 20)")
    parser.add_argument("--socket", type=Path, help="socket of the engine; default: the usual one")
    parser.add_argument("--image", default=LEAN_IMAGE, help=f"default {LEAN_IMAGE}")
    chosen, about = parser.parse_args(), machine()
    figures, opened = anyio.run(measure, chosen.rounds, chosen.count, chosen.socket, chosen.image)
    report = Report("a command in a sandbox", {**about, **versions(sys.executable, "codetaste", "aiodocker")})
    for command in COMMANDS:
        each = {side: [one[command] for one in rounds] for side, rounds in figures.items()}
        for side, values in each.items():
            report.add(f"{command}: {side}", values, " ms")
        peer = each.pop("docker exec")
        for side, values in each.items():
            report.add(f"{command}: {side} / docker exec", ratio(values, peer), " ×", most=MAX_RATIO)
    for kind, values in opened.items():
        most = 300.0 if "bubblewrap" in kind else None
        report.add(f"from nothing to ready: {kind}", values, " ms", most=most)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
