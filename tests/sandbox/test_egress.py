"""A program in a sandbox cannot escape; outside a sandbox the same program can."""

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
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE
from codetaste.sandbox.proxy.server import HostRequest
from support.sandbox.host_services import Listeners

pytestmark = pytest.mark.anyio
PROGRAM = (Path(__file__).parents[1] / "support" / "sandbox" / "escape_attempts.py").read_bytes()
ALL_GROUPS = ("network", "sockets", "privileged", "forwards")
NETWORK_KINDS = ("tcp", "udp", "dns")
GATEWAY_RESPONSE = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
"""The gateway's response to a health check."""
MIN_ATTEMPTS = 45
"""The number of attempts, without which reaching nothing proves nothing."""


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    # The path is short and open to every user: only its absence in the sandbox protects the socket.
    with tempfile.TemporaryDirectory(prefix="codetaste-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Listeners(folder).listening() as found:
            yield found


@pytest.fixture
def neighbour(request: pytest.FixtureRequest, provider: SandboxProvider) -> Iterator[dict[str, Any]]:
    """The targets of another container, with a server, in the network of containers."""
    if provider.kind == "bubblewrap":
        yield {}
        return
    engine = request.getfixturevalue(f"{provider.kind}_engine")
    command = ["python3", "-m", "http.server", "8000"]
    # Podman's default limits exceed those of many hosts.
    limits = [{"Name": name, "Soft": 1024, "Hard": 1024} for name in ("nofile", "nproc")]
    bridge = {"NetworkMode": "bridge", "Ulimits": limits}
    with engine.container(LEAN_IMAGE, Cmd=command, StopSignal="SIGKILL", HostConfig=bridge) as container:
        document = engine.call("GET", f"/containers/{container.container_id}/json").json()
        networks = document["NetworkSettings"]["Networks"]
        (address,) = {one["IPAddress"] for one in networks.values()}
        for _ in range(100):  # the host reaches it
            with contextlib.suppress(OSError), socket.create_connection((address, 8000), 1):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the other container does not listen")
        yield {"neighbours": [address], "neighbour": 8000}


def engine_sockets(provider: SandboxProvider) -> list[str]:
    engine = getattr(provider, "engine", None)
    own = [str(engine.socket)] if engine is not None else []
    return [*own, "/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock"]


async def run_attempts(sandbox: Sandbox, targets: dict[str, Any]) -> dict[str, str]:
    """Run the attempts in a sandbox; return the successful ones after checking their number."""
    limits = CommandLimits(wall_s=90.0, output_bytes=1024**2)
    result = await sandbox.run(["python3", "-", json.dumps(targets)], stdin=PROGRAM, limits=limits)
    assert result.exit_code == 0, result.stderr.decode()
    outcomes: dict[str, str] = json.loads(result.stdout)
    assert len(outcomes) >= (MIN_ATTEMPTS if "privileged" in targets["groups"] else 1), sorted(outcomes)
    return {name: outcome for name, outcome in outcomes.items() if outcome}


def misleading_requests(port: int, host: str, target: int) -> dict[str, dict[str, Any]]:
    """Return requests that make a careless server connect elsewhere, by name."""
    elsewhere = f"{host}:{target}"
    requests = {
        "absolute": f"GET http://{elsewhere}/ HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "absolute messages": f"POST http://{elsewhere}/v1/messages HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "connect": f"CONNECT {elsewhere} HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "host": f"GET / HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n",
        "up": "GET /../../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
        "twice": f"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET http://{elsewhere}/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "socks": f"\x05\x01\x00\x05\x01\x00\x03{chr(len(host))}{host}{chr(target >> 8)}{chr(target & 255)}",
    }
    return {f"{name} {port}": {"port": port, "request": text} for name, text in requests.items()}


async def test_no_egress_reaches_nothing(
    provider: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any]
) -> None:
    targets = listeners.targets(*ALL_GROUPS, isolated=True, **neighbour)
    targets["paths"] += engine_sockets(provider)
    async with provider.open(SandboxSpec("none", egress=egress.no_egress())) as sandbox:
        assert await run_attempts(sandbox, targets) == {}
    assert listeners.reached == []


async def test_gateway_egress_reaches_only_the_gateway(
    provider: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any], tmp_path: Path
) -> None:
    async with open_gateway({}, tmp_path) as gateway:
        targets = listeners.targets(*ALL_GROUPS, isolated=True, **neighbour)
        targets["paths"] += [*engine_sockets(provider), str(gateway.socket)]
        targets["forwards"] = misleading_requests(egress.GATEWAY_PORT, "127.0.0.1", listeners.ports["tcp"])
        async with provider.open(
            SandboxSpec("gateway", egress=egress.gateway_egress(gateway.socket))
        ) as sandbox:
            outcomes = await run_attempts(sandbox, targets)
    assert {name for name in outcomes if not name.startswith("forward ")} == set()
    assert "forward host 8787" in outcomes, "the gateway itself responds"
    for name, outcome in outcomes.items():
        rest = outcome if "connect" in name else outcome.removeprefix(GATEWAY_RESPONSE)
        assert rest == "" or rest.startswith("HTTP/1.1 4"), f"{name}: {outcome}"
        assert "reached" not in outcome
    assert listeners.reached == []


async def test_allowlist_egress_reaches_only_allowed_hosts(
    provider: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any]
) -> None:
    tcp = listeners.ports["tcp"]
    requests: list[HostRequest] = []
    async with egress.open_allowlist_egress(
        [f"named.test=127.0.0.1:{tcp}", f"*.below.test:81=127.0.0.1:{tcp}"], note=requests.append, environ={}
    ) as policy:
        targets = listeners.targets(*ALL_GROUPS, isolated=True, **neighbour)
        targets["paths"] += [*engine_sockets(provider), str(policy.forwards[0].socket)]
        targets["forwards"] = misleading_requests(egress.PROXY_PORT, "127.0.0.1", tcp)
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
        async with provider.open(SandboxSpec("allowlist", egress=policy)) as sandbox:
            outcomes = await run_attempts(sandbox, targets)
    reached = {name: outcome for name, outcome in outcomes.items() if not name.startswith("forward ")}
    # Loopback in the sandbox bypasses the proxy, and nothing listens there.
    assert reached == {"url http://named.test/": "reached", "url http://x.below.test:81/": "reached"}
    assert all(
        outcome.startswith("HTTP/1.1 4") for name, outcome in outcomes.items() if name not in reached
    ), outcomes
    assert listeners.reached == ["tcp", "tcp"]
    assert {str(request) for request in requests if not request.refusal} == {
        "allowed named.test:80",
        "allowed x.below.test:81",
    }
    assert {"unnamed.test", "below.test", "named.test", "127.0.0.1"} <= {
        request.host for request in requests if request.refusal
    }


async def test_open_network_reaches_host_without_other_privileges(
    provider: SandboxProvider, listeners: Listeners, neighbour: dict[str, Any]
) -> None:
    targets = listeners.targets("network", "sockets", "privileged", **neighbour)
    targets["paths"] += engine_sockets(provider)
    async with provider.open(SandboxSpec("open", egress=egress.network_egress())) as sandbox:
        outcomes = await run_attempts(sandbox, targets)
    if provider.kind == "bubblewrap":  # it has the host's network
        expected = [f"{kind} {host}" for kind in NETWORK_KINDS for host in targets["hosts"]]
        expected += ["abstract", "abstract datagram"]
    else:  # a bridge: all addresses of the host except loopback, which is the sandbox's own
        hosts = [host for host in targets["hosts"] if ":" not in host and not host.startswith("127.")]
        assert hosts
        expected = [f"{kind} {host}" for kind in NETWORK_KINDS for host in hosts]
        if provider.kind == "podman":  # its networks are not isolated
            expected += [f"neighbour {address}" for address in neighbour["neighbours"]]
    assert sorted(outcomes) == sorted(expected)
    host_listeners = {name for name in expected if not name.startswith("neighbour")}
    assert all("reached" in outcomes[name] for name in host_listeners - {"abstract datagram"})
    assert len(listeners.reached) >= len(host_listeners)


def test_escape_attempts_succeed_outside_any_sandbox(
    listeners: Listeners, require: Callable[..., None]
) -> None:
    """Attempts run in new network and mount namespaces, so they change nothing on the host."""
    require("unshare", ok=os.geteuid() == 0, reason="only root has the privileges that the attempts need")
    namespaces = ("--net", "--mount", "--ipc", "--uts", "--pid", "--fork", "--mount-proc")
    targets = listeners.targets("network", "sockets", "privileged")
    result = subprocess.run(
        ["unshare", *namespaces, "python3", "-", json.dumps(targets)],
        input=PROGRAM,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    outcomes = {name for name, outcome in json.loads(result.stdout).items() if outcome}
    assert outcomes >= {
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
    assert not {name for name in outcomes if name.split()[0] in {"tcp", "udp", "dns"}}, (
        "the namespace has its own network"
    )
