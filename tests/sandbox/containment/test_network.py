"""A contained command cannot reach anything through sockets."""

# ruff: noqa: E501 (scripts for another interpreter)
from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from support.sandbox.containment import ShellClient


@pytest.fixture
def listeners(tmp_path_factory: pytest.TempPathFactory, shell: ShellClient) -> Iterator[dict[str, object]]:
    """Servers of the host; a test fails if one of them receives anything."""
    path = shell.folders.root / "secret.sock"
    abstract = f"codetaste-test-{id(path)}"
    received: list[str] = []
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(path))
        path.chmod(0o777)
        stack.callback(path.unlink)
        datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagram.bind("\0" + abstract)
        for server in (tcp, unix):
            server.listen()
        for server in (tcp, udp, unix, datagram):
            server.settimeout(0.05)
        yield {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "path": str(path),
            "abstract": abstract,
            "received": received,
        }
        for server in (tcp, unix):
            with contextlib.suppress(TimeoutError):
                server.accept()[0].close()
                received.append("connection")
        for server in (udp, datagram):
            with contextlib.suppress(TimeoutError):
                received.append(server.recv(100).decode())
    assert received == []


def test_sockets_of_all_families_are_refused(shell: ShellClient, listeners: dict[str, object]) -> None:
    result = shell.py(
        """
        tcp, udp, path, abstract = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
        attempt("tcp", socket.create_connection, ("127.0.0.1", tcp), 2)
        attempt("udp", lambda: socket.socket(2, 2).sendto(b"x", ("127.0.0.1", udp)))
        attempt("unix", lambda: socket.socket(1, 1).connect(path))
        attempt("abstract", lambda: socket.socket(1, 2).sendto(b"x", chr(0) + abstract))
        for family in range(46):
            for kind in (1, 2, 3, 5):
                attempt("family %d %d" % (family, kind), socket.socket, family, kind, 0)
        attempt("vsock", lambda: socket.socket(40, 1).connect((2, 1)))
        attempt("netlink", lambda: socket.socket(16, 3, 0))
        attempt("packet", lambda: socket.socket(17, 3, 0))
        """,
        listeners["tcp"],
        listeners["udp"],
        listeners["path"],
        listeners["abstract"],
    )
    assert "DONE" not in result.out, result.out
    assert result.out.count("refused") == 4 + 46 * 4 + 3, result.output


def test_socket_pair_works_but_cannot_be_reconnected(
    shell: ShellClient, listeners: dict[str, object]
) -> None:
    result = shell.py(
        """
        a, b = socket.socketpair()
        a.send(b"through"); print(b.recv(10).decode())
        attempt("datagrams", socket.socketpair, 1, 2)
        attempt("internet", socket.socketpair, 2, 1)
        attempt("connect", a.connect, sys.argv[1])
        attempt("bind", a.bind, chr(0) + "mine")
        attempt("listen", a.listen)
        attempt("send to", a.sendto, b"x", sys.argv[1])
        """,
        listeners["path"],
    )
    assert result.out.startswith("through\n"), result.output
    assert "DONE" not in result.out, result.out
    assert result.out.count("refused") == 6


def test_io_uring_is_unavailable(shell: ShellClient) -> None:
    result = shell.py(
        "for n in (425, 426, 427): syscall('io_uring', n, 8, ctypes.create_string_buffer(120), 0, 0, 0, 0)"
    )
    assert result.out.count("refused ENOSYS") == 3, result.output


def test_network_devices_of_bash_and_programs_reach_nothing(
    shell: ShellClient, listeners: dict[str, object]
) -> None:
    port = listeners["tcp"]
    result = shell.sh(
        f"echo x > /dev/tcp/127.0.0.1/{port} && echo REACHED; echo x > /dev/udp/127.0.0.1/{listeners['udp']} && echo REACHED; "
        f'curl -sS -m 2 http://127.0.0.1:{port}/ && echo REACHED; python3 -c "import urllib.request as u; '
        f"u.urlopen('http://127.0.0.1:{port}/', timeout=2)\" && echo REACHED; getent hosts localhost.localdomain. && echo REACHED"
    )
    assert "REACHED" not in result.out, result.output


def test_socket_file_in_tree_does_not_bypass_network_isolation(shell: ShellClient) -> None:
    path = shell.folders.tree / "server.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        try:
            path.chmod(0o777)
            server.listen()
            result = shell.py("attempt('inside', lambda: socket.socket(1, 1).connect('server.sock'))")
        finally:
            path.unlink()
    assert "refused" in result.out, result.output
