"""Time that the metering gateway adds to a streamed request, and its CPU for many streams on one core.

A provider on the loopback streams replies with random usages and records the bill. Programs call it directly,
through our gateway (with budget, journal and transcript), and through proxies that meter little or nothing: a
plain one of starlette and httpx, and with ``--litellm`` LiteLLM's. Proxies have one core, all else the
other. A streamed request is one of a fast model: 40 events, one every 5 ms. ::

    python perf/gateway.py --rounds 5 --litellm
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Report, Spread, arguments, ratio
from peers import peer_python

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDES = Path(__file__).with_name("gateway_sides.py")
STREAMS, PAUSE_S = 200, 0.005
MAX_ADDED_MS, PLAIN_ADDED_MS = 7.0, 2.2
"""The most that the gateway adds where the plain proxy adds ``PLAIN_ADDED_MS``; more where that adds more."""
_PROMPT_BYTES = 80_000


class Side:
    """A server process."""

    def __init__(self, process: subprocess.Popen[str], port: int, token: str) -> None:
        self.process, self.port, self.token = process, port, token

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> list[str]:
        """Ask it to end, and return the words that it prints then."""
        output, _ = self.process.communicate("\n", timeout=60)
        return output.split()


@contextmanager
def side(name: str, *address: str, core: int) -> Iterator[Side]:
    """Run a server of ``gateway_sides.py`` on one core."""
    command = ["taskset", "-c", str(core), sys.executable, str(SIDES), name, *address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        port, *token = process.stdout.readline().split()
        try:
            yield Side(process, int(port), (token or ["none"])[0])
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def litellm(address: str, core: int) -> Iterator[Side]:
    """Run LiteLLM's proxy on one core."""
    python = peer_python("litellm[proxy]")
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        served = {"model": "openai/m", "api_base": f"{address}/v1", "api_key": "none"}
        config = {"model_list": [{"model_name": "m", "litellm_params": served}]}
        Path(folder, "config.json").write_text(json.dumps(config))
        command = [
            "taskset",
            "-c",
            str(core),
            str(python.with_name("litellm")),
            "--config",
            f"{folder}/config.json",
        ]
        command += ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1", "--telemetry", "False"]
        env = {"PATH": os.environ["PATH"], "HOME": folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        env["LITELLM_MASTER_KEY"] = key = f"sk-{secrets.token_hex(32)}"
        with subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                _wait_for(port, process)
                yield Side(process, port, key)
            finally:
                process.kill()


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"LiteLLM's proxy ended with {process.returncode}")
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                time.sleep(2)
                return
        time.sleep(0.1)
    sys.exit("LiteLLM's proxy does not answer")


async def request_stream(at: Side, number: int, pause_s: float) -> tuple[float, float]:
    """Request one stream; return the seconds to its first event and to its end.

    The provider reads the pause between two events from the prompt.
    """
    prompt = f"{number} {pause_s} " + "x" * _PROMPT_BYTES
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "m", "messages": messages, "stream": True, "max_tokens": 2000}
    body["stream_options"] = {"include_usage": True}
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {at.token}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
    began = time.perf_counter()
    writer.write(head.encode() + data)
    answer = first = b""
    first_s = 0.0
    while b"[DONE]" not in answer[-200:]:
        first = await reader.read(65536)
        if not first:
            sys.exit(f"a stream ended early: {answer[-500:]!r}")
        answer += first
        if not first_s and b"data:" in answer:
            first_s = time.perf_counter() - began
    duration_s = time.perf_counter() - began
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        sys.exit(f"refused: {answer[:500]!r}")
    return first_s, duration_s


async def one_by_one(at: Side, count: int) -> tuple[float, float]:
    """Return the median seconds to the first event and to the end."""
    times = [await request_stream(at, number, PAUSE_S) for number in range(count)]
    return tuple(sorted(column)[count // 2] for column in zip(*times, strict=True))  # type: ignore[return-value]


async def all_at_once(at: Side, count: int, pause_s: float = 0.0) -> tuple[float, float]:
    """Return the wall seconds for ``count`` streams at once, and the CPU seconds that the proxy used."""
    before, began = at.cpu_s, time.perf_counter()
    await asyncio.gather(*(request_stream(at, number, pause_s) for number in range(count)))
    return time.perf_counter() - began, at.cpu_s - before


def main() -> int:
    """Measure all sides in turns."""
    parser = arguments(__doc__, 5)
    parser.add_argument("--requests", type=int, default=60, help="requests one after the other in each round")
    parser.add_argument(
        "--litellm", action="store_true", help="measure LiteLLM's proxy too (700 MB to install)"
    )
    chosen = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    report = Report("the metering gateway in front of a provider on the loopback")
    with ExitStack() as stack:
        provider = stack.enter_context(side("provider", core=0))
        address = f"http://127.0.0.1:{provider.port}"
        ours = stack.enter_context(side("ours", address, core=1))
        sides = {"direct": provider, "gateway": ours}
        sides["plain proxy"] = stack.enter_context(side("plain", address, core=1))
        if chosen.litellm:
            sides["LiteLLM"] = stack.enter_context(litellm(address, core=1))
        measure_in_turns(report, sides, chosen.rounds, chosen.requests)
        measure_gateway_alone(report, chosen.rounds)
    return report.end(as_json=chosen.json)


def measure_in_turns(report: Report, sides: dict[str, Side], rounds: int, requests: int) -> None:
    """Time requests one by one and streams at once, in turns."""
    first: dict[str, list[float]] = {name: [] for name in sides}
    whole: dict[str, list[float]] = {name: [] for name in sides}
    wall: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    for at in sides.values():
        asyncio.run(one_by_one(at, 5))
    for number in range(rounds):
        for name in sides if number % 2 == 0 else reversed([*sides]):
            first_s, duration_s = asyncio.run(one_by_one(sides[name], requests))
            wall_s, cpu_s = asyncio.run(all_at_once(sides[name], STREAMS))
            first[name].append(first_s * 1000)
            whole[name].append(duration_s * 1000)
            wall[name].append(wall_s)
            cpu[name].append(cpu_s)
    added = {
        name: [one - other for one, other in zip(whole[name], whole["direct"], strict=True)] for name in sides
    }
    report.slowness = max(1.0, round(Spread.of(added["plain proxy"]).median / PLAIN_ADDED_MS, 2))
    for name in sides:
        report.add(f"a streamed request, {name}: first event", first[name], " ms")
        report.add(f"a streamed request, {name}: whole", whole[name], " ms")
        if name != "direct":
            most = MAX_ADDED_MS if name == "gateway" else None
            report.add(f"a streamed request: added by {name}", added[name], " ms", most=most, scaled=True)
            report.add(f"{STREAMS} streams at once, {name}: wall", wall[name], " s")
            report.add(f"{STREAMS} streams at once, {name}: CPU", cpu[name], " s")
    for name in [*sides][2:]:
        report.add(
            f"{STREAMS} streams at once: CPU of {name} / gateway", ratio(cpu[name], cpu["gateway"]), " ×"
        )


def measure_gateway_alone(report: Report, rounds: int) -> None:
    """Forward streams of a second each, all at once; the settled costs must equal the bill."""
    with side("provider", core=0) as provider:
        address = f"http://127.0.0.1:{provider.port}"
        with side("ours", address, core=1) as ours:
            took = [asyncio.run(all_at_once(ours, STREAMS, 0.025)) for _ in range(rounds)]
            settled, peak = ours.end()
        [bill] = provider.end()
    report.add(f"{STREAMS} streams of a second at once: wall", [wall_s for wall_s, _ in took], " s")
    report.add(f"{STREAMS} streams of a second at once: CPU", [cpu_s for _, cpu_s in took], " s")
    report.add("peak memory of the gateway", [int(peak) * 1024 / 1e6], " MB")
    report.add("settled − billed", [float(Decimal(settled) - Decimal(bill))], " $", most=0, least=0)


if __name__ == "__main__":
    sys.exit(main())
