"""A program inside of a box tries every way out; the same program gets out where nothing holds it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codetaste.gateway.gateway import open_gateway
from codetaste.sandbox import egress
from codetaste.sandbox.base import CommandLimits, Sandbox, SandboxProvider, SandboxSpec
from codetaste.sandbox.docker.lean_image import LEAN_IMAGE
from codetaste.sandbox.proxy.server import HostRequest
from support.sandbox.host_services import Listeners

pytestmark = pytest.mark.anyio
PROGRAM = (Path(__file__).parents[1] / "support" / "sandbox" / "escape_attempts.py").read_bytes()
EVERYTHING = ("network", "sockets", "privileged", "ways")
NETWORK = ("tcp", "udp", "dns")
ALIVE = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
"""What the gateway says of itself to whoever asks for nothing."""
AT_LEAST = 45
"""How many ways are tried: a program that tries nothing reaches nothing."""


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    # A short path that everybody may walk: only that it is not there inside keeps it from being reached.
    with tempfile.TemporaryDirectory(prefix="codetaste-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Listeners(folder).listening() as found:
            yield found


@pytest.fixture
def neighbour(request: pytest.FixtureRequest, boxes: SandboxProvider) -> Iterator[dict[str, Any]]:
    """Another container, in a network that containers have, with something that listens."""
    if boxes.kind == "bubblewrap":
        yield {}
        return
    engine = request.getfixturevalue(f"{boxes.kind}_engine")
    command = ["python3", "-m", "http.server", "8000"]
    # Podman would ask for more than many machines give it.
    limits = [{"Name": name, "Soft": 1024, "Hard": 1024} for name in ("nofile", "nproc")]
    bridge = {"NetworkMode": "bridge", "Ulimits": limits}
    with engine.container(LEAN_IMAGE, Cmd=command, StopSignal="SIGKILL", HostConfig=bridge) as container:
        said = engine.call("GET", f"/containers/{container.ident}/json").json()
        networks = said["NetworkSettings"]["Networks"]
        (address,) = {one["IPAddress"] for one in networks.values()}
        for _ in range(100):  # from here it is reached
            with contextlib.suppress(OSError), socket.create_connection((address, 8000), 1):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the other container does not listen")
        yield {"neighbours": [address], "neighbour": 8000}


def engine_sockets(boxes: SandboxProvider) -> list[str]:
    engine = getattr(boxes, "engine", None)
    own = [str(engine.socket)] if engine is not None else []
    return [*own, "/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock"]


async def tried(box: Sandbox, targets: dict[str, Any]) -> dict[str, str]:
    """All that came of trying: only what was reached, after a look at how much was tried."""
    limits = CommandLimits(wall_s=90.0, output_bytes=1024**2)
    done = await box.run(["python3", "-", json.dumps(targets)], stdin=PROGRAM, limits=limits)
    assert done.exit_code == 0, done.stderr.decode()
    came: dict[str, str] = json.loads(done.stdout)
    assert len(came) >= (AT_LEAST if "privileged" in targets["groups"] else 1), sorted(came)
    return {name: what for name, what in came.items() if what}


def requests(port: int, host: str, target: int) -> dict[str, dict[str, Any]]:
    """Requests that lead a careless server elsewhere."""
    elsewhere = f"{host}:{target}"
    said = {
        "absolute": f"GET http://{elsewhere}/ HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "absolute messages": f"POST http://{elsewhere}/v1/messages HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "connect": f"CONNECT {elsewhere} HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "host": f"GET / HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "up": "GET /../../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
        "twice": f"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET http://{elsewhere}/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "socks": f"\x05\x01\x00\x05\x01\x00\x03{chr(len(host))}{host}{chr(target >> 8)}{chr(target & 255)}",
    }
    return {f"{name} {port}": {"port": port, "said": text} for name, text in said.items()}


async def test_no_egress_reaches_nothing(
    boxes: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any]
) -> None:
    targets = listeners.targets(*EVERYTHING, asks_nobody=True, **neighbour)
    targets["paths"] += engine_sockets(boxes)
    async with boxes.open(SandboxSpec("none", egress=egress.no_egress())) as box:
        assert await tried(box, targets) == {}
    assert listeners.heard == []


async def test_with_the_gateway_only_its_own_answers_are_had(
    boxes: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any], tmp_path: Path
) -> None:
    async with open_gateway({}, tmp_path) as gateway:
        targets = listeners.targets(*EVERYTHING, asks_nobody=True, **neighbour)
        targets["paths"] += [*engine_sockets(boxes), str(gateway.socket)]
        targets["ways"] = requests(egress.GATEWAY_PORT, "127.0.0.1", listeners.ports["tcp"])
        async with boxes.open(SandboxSpec("gateway", egress=egress.gateway_egress(gateway.socket))) as box:
            came = await tried(box, targets)
    assert {name for name in came if not name.startswith("way ")} == set()
    assert "way host 8787" in came, "the gateway itself answers"
    for name, what in came.items():
        rest = what if "connect" in name else what.removeprefix(ALIVE)
        assert rest == "" or rest.startswith("HTTP/1.1 4"), f"{name}: {what}"
        assert "reached" not in what
    assert listeners.heard == []


async def test_with_an_allowlist_only_the_named_host_is_reached(
    boxes: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any]
) -> None:
    tcp = listeners.ports["tcp"]
    visits: list[HostRequest] = []
    async with egress.open_allowlist_egress(
        [f"named.test=127.0.0.1:{tcp}", f"*.below.test:81=127.0.0.1:{tcp}"], note=visits.append, environ={}
    ) as policy:
        targets = listeners.targets(*EVERYTHING, asks_nobody=True, **neighbour)
        targets["paths"] += [*engine_sockets(boxes), str(policy.forwards[0].socket)]
        targets["ways"] = requests(egress.PROXY_PORT, "127.0.0.1", tcp)
        hosts = (
            "localhost",
            "127.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "unnamed.test",
            "below.test",
        )
        targets["urls"] = [
            "http://named.test/",
            "http://x.below.test:81/",
            "http://named.test:81/",
            *(f"http://{host}:{port}/" for host in hosts for port in (80, 81, tcp)),
        ]
        async with boxes.open(SandboxSpec("allowlist", egress=policy)) as box:
            came = await tried(box, targets)
    reached = {name: what for name, what in came.items() if not name.startswith("way ")}
    # What is on loopback inside is no business of the proxy's, and there nobody listens.
    assert reached == {"url http://named.test/": "reached", "url http://x.below.test:81/": "reached"}
    assert all(what.startswith("HTTP/1.1 4") for name, what in came.items() if name not in reached), came
    assert listeners.heard == ["tcp", "tcp"]
    assert {str(visit) for visit in visits if not visit.refusal} == {
        "allowed named.test:80",
        "allowed x.below.test:81",
    }
    assert {"unnamed.test", "below.test", "named.test", "127.0.0.1"} <= {v.host for v in visits if v.refusal}


async def test_open_network_reaches_host_and_nothing_else_opens(
    boxes: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any]
) -> None:
    targets = listeners.targets("network", "sockets", "privileged", **neighbour)
    targets["paths"] += engine_sockets(boxes)
    async with boxes.open(SandboxSpec("open", egress=egress.network_egress())) as box:
        came = await tried(box, targets)
    if boxes.kind == "bubblewrap":  # it has this machine's own network
        outside = [f"{kind} {host}" for kind in NETWORK for host in targets["hosts"]]
        outside += ["abstract", "abstract datagram"]
    else:  # a bridge: all addresses of this machine but those that are loopback's there too
        hosts = [host for host in targets["hosts"] if ":" not in host and not host.startswith("127.")]
        assert hosts
        outside = [f"{kind} {host}" for kind in NETWORK for host in hosts]
        if boxes.kind == "podman":  # whose networks are not kept apart
            outside += [f"neighbour {address}" for address in neighbour["neighbours"]]
    assert sorted(came) == sorted(outside)
    ours = {name for name in outside if not name.startswith("neighbour")}
    assert all("reached" in came[name] for name in ours - {"abstract datagram"})
    assert len(listeners.heard) >= len(ours)


def test_escape_attempts_succeed_outside_any_sandbox(
    listeners: Listeners, require: Callable[..., None]
) -> None:
    """In a network and a tree of mounts of the test's own: what does change something changes it there."""
    require("unshare", ok=os.geteuid() == 0, reason="only root can show what a privilege opens")
    apart = ("--net", "--mount", "--ipc", "--uts", "--pid", "--fork", "--mount-proc")
    targets = listeners.targets("network", "sockets", "privileged")
    done = subprocess.run(
        ["unshare", *apart, "python3", "-", json.dumps(targets)],
        input=PROGRAM,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    came = {name for name, what in json.loads(done.stdout).items() if what}
    assert came >= {
        f"socket {listeners.path}",
        "raw",
        "packet",
        "packet datagram",
        "network namespace",
        "mount namespace",
        "network of the first process",
        "mounts of the first process",
        "mount",
        "write /proc/sys/kernel/core_pattern",
        "write /proc/sys/net/ipv4/ip_forward",
    }
    assert not {name for name in came if name.split()[0] in {"tcp", "udp", "dns"}}, "a network of its own"
