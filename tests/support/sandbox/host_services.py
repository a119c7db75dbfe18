"""Services of the host that no sandbox may reach, and a record of those that were reached."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESPONSE = b"HTTP/1.0 200 OK\r\n\r\nreached"


def host_addresses() -> list[str]:
    """Return the host's addresses, loopback first, without link-local ones, which need an interface."""
    lines = [line.split() for line in Path("/proc/net/fib_trie").read_text().splitlines()]
    ipv4 = {
        before[1]
        for before, line in itertools.pairwise(lines)
        if line[:3] == ["/32", "host", "LOCAL"] and before[0] == "|--"
    }
    ipv6: set[str] = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))
            ipv6 |= {address} if not address.startswith("fe80") else set()
    return [*sorted(ipv4, key=lambda address: (address != "127.0.0.1", address)), *sorted(ipv6)]


@dataclass
class Listeners:
    """Listening sockets; ``reached`` has the name of each that got a connection or datagram."""

    folder: Path
    abstract: str = field(default_factory=lambda: f"codetaste-test-{uuid.uuid4().hex}")
    reached: list[str] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "service.sock"

    def targets(self, *groups: str, **more: Any) -> dict[str, Any]:
        """Return the argument of ``escape_attempts.py``."""
        return {
            "groups": groups,
            "hosts": host_addresses(),
            "neighbours": [],
            "abstract": self.abstract,
            "paths": [str(self.path)],
            **self.ports,
            **more,
        }

    def _open(self, stack: contextlib.ExitStack) -> selectors.BaseSelector:
        selector = stack.enter_context(selectors.DefaultSelector())

        def add(name: str, listener: socket.socket) -> socket.socket:
            stack.enter_context(listener)
            listener.settimeout(0)
            selector.register(listener, selectors.EVENT_READ, name)
            return listener

        for name, kind in (
            ("tcp", socket.SOCK_STREAM),
            ("udp", socket.SOCK_DGRAM),
            ("dns", socket.SOCK_DGRAM),
        ):
            listener = socket.socket(socket.AF_INET6, kind)
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(("::", 0))
            add(name, listener)
            self.ports[name] = listener.getsockname()[1]
            if kind == socket.SOCK_STREAM:
                listener.listen()
        loopback = add("loopback", socket.create_server(("127.0.0.1", 0)))
        self.ports["loopback"] = loopback.getsockname()[1]
        for address in (str(self.path), f"\0{self.abstract}"):
            listener = add(f"unix {address!r}", socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        self.path.chmod(0o666)
        add("datagram", socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)).bind(f"\0{self.abstract}-datagram")
        return selector

    def _respond(self, name: str, listener: socket.socket) -> None:
        self.reached.append(name)
        if listener.type == socket.SOCK_DGRAM:
            data, sender = listener.recvfrom(4000)
            if sender:
                listener.sendto(b"reached" + data, sender)
            return
        stream, _ = listener.accept()
        with stream:
            stream.settimeout(5)
            stream.recv(4000)
            stream.sendall(RESPONSE)

    def _serve(self, selector: selectors.BaseSelector, stopping: threading.Event) -> None:
        while not stopping.is_set():
            for key, _ in selector.select(0.05):
                assert isinstance(key.fileobj, socket.socket)
                with contextlib.suppress(OSError):
                    self._respond(key.data, key.fileobj)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Listeners]:
        stopping = threading.Event()
        with contextlib.ExitStack() as stack:
            selector = self._open(stack)
            server = threading.Thread(target=self._serve, args=(selector, stopping))
            server.start()
            try:
                yield self
            finally:
                stopping.set()
                server.join()
                self.path.unlink()
