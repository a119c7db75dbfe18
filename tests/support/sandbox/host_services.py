"""Services of this machine that nobody in a box should reach, and what they heard."""

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

REACHED = b"HTTP/1.0 200 OK\r\n\r\nreached"


def host_addresses() -> list[str]:
    """Every address of this machine's own, loopback first; link-local ones need a name of an interface."""
    lines = [line.split() for line in Path("/proc/net/fib_trie").read_text().splitlines()]
    four = {
        before[1]
        for before, line in itertools.pairwise(lines)
        if line[:3] == ["/32", "host", "LOCAL"] and before[0] == "|--"
    }
    six: set[str] = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            found = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))
            six |= {found} if not found.startswith("fe80") else set()
    return [*sorted(four, key=lambda one: (one != "127.0.0.1", one)), *sorted(six)]


@dataclass
class Listeners:
    """Listening sockets; ``heard`` has the name of each that somebody reached."""

    folder: Path
    abstract: str = field(default_factory=lambda: f"codetaste-test-{uuid.uuid4().hex}")
    heard: list[str] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "service.sock"

    def targets(self, *groups: str, **more: Any) -> dict[str, Any]:
        """What ``ways_out.py`` is told."""
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
        chosen = stack.enter_context(selectors.DefaultSelector())

        def add(name: str, found: socket.socket) -> socket.socket:
            stack.enter_context(found)
            found.settimeout(0)
            chosen.register(found, selectors.EVENT_READ, name)
            return found

        for name, kind in (
            ("tcp", socket.SOCK_STREAM),
            ("udp", socket.SOCK_DGRAM),
            ("dns", socket.SOCK_DGRAM),
        ):
            found = socket.socket(socket.AF_INET6, kind)
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            found.bind(("::", 0))
            add(name, found)
            self.ports[name] = found.getsockname()[1]
            if kind == socket.SOCK_STREAM:
                found.listen()
        loopback = add("loopback", socket.create_server(("127.0.0.1", 0)))
        self.ports["loopback"] = loopback.getsockname()[1]
        for address in (str(self.path), f"\0{self.abstract}"):
            found = add(f"unix {address!r}", socket.socket(socket.AF_UNIX))
            found.bind(address)
            found.listen()
        self.path.chmod(0o666)
        add("datagram", socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)).bind(f"\0{self.abstract}-datagram")
        return chosen

    def _answer(self, name: str, found: socket.socket) -> None:
        self.heard.append(name)
        if found.type == socket.SOCK_DGRAM:
            said, sender = found.recvfrom(4000)
            if sender:
                found.sendto(b"reached" + said, sender)
            return
        stream, _ = found.accept()
        with stream:
            stream.settimeout(5)
            stream.recv(4000)
            stream.sendall(REACHED)

    def _serve(self, chosen: selectors.BaseSelector, ending: threading.Event) -> None:
        while not ending.is_set():
            for key, _ in chosen.select(0.05):
                assert isinstance(key.fileobj, socket.socket)
                with contextlib.suppress(OSError):
                    self._answer(key.data, key.fileobj)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Listeners]:
        ending = threading.Event()
        with contextlib.ExitStack() as stack:
            chosen = self._open(stack)
            server = threading.Thread(target=self._serve, args=(chosen, ending))
            server.start()
            try:
                yield self
            finally:
                ending.set()
                server.join()
                self.path.unlink()
