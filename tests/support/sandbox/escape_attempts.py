"""Tries to escape from a sandbox; outside a sandbox it succeeds, which shows that the attempts are real.

usage: python3 - TARGETS      TARGETS is JSON. Prints a line of JSON: each attempt's result, "" if it failed.

Its targets are listeners of the test; it contacts no other address. It changes nothing: a file is opened and
closed again. It needs only the standard library, so it runs wherever there is Python.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

TIMEOUT_S = 1.0
Attempts = dict[str, Callable[[], object]]


def try_tcp(host: str, port: int, request: bytes = b"GET / HTTP/1.0\r\n\r\n") -> str:
    with socket.create_connection((host, port), TIMEOUT_S) as stream:
        return exchange(stream, request)


def try_unix(path: str, kind: int = socket.SOCK_STREAM) -> str:
    with socket.socket(socket.AF_UNIX, kind) as stream:
        stream.settimeout(TIMEOUT_S)
        stream.connect(path)
        if kind == socket.SOCK_DGRAM:
            stream.send(b"x")
            return "sent"
        return exchange(stream, b"GET / HTTP/1.0\r\n\r\n")


def exchange(stream: socket.socket, request: bytes) -> str:
    stream.sendall(request)
    return stream.recv(4000).decode("latin-1")


def try_udp(host: str, port: int, request: bytes = b"x") -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(TIMEOUT_S)
        datagrams.sendto(request, (host, port))
        return datagrams.recv(4000).decode("latin-1")


def try_broadcast(port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        datagrams.settimeout(TIMEOUT_S)
        datagrams.sendto(b"x", ("255.255.255.255", port))
        return "sent"


def dns_query(name: str) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def resolve(name: str) -> str:
    """Resolve ``name`` with the system's resolver; only where no name server can be reached."""
    return str(socket.getaddrinfo(name, 80))


def make_socket(family: int, kind: int, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return "made"


def try_ping(host: str, kind: int) -> str:
    with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as pings:
        pings.settimeout(TIMEOUT_S)
        pings.sendto(b"\x08\0\xf7\xff\0\0\0\0", (host, 0))
        return str(len(pings.recv(100)))


def make_interface() -> str:
    """Ask the kernel for another network interface (RTM_NEWLINK, of kind dummy)."""
    kind = struct.pack("HH", 10, 1) + b"dummy\0\0\0"
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH", 4 + len(kind), 18 | 0x8000) + kind
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.settimeout(TIMEOUT_S)
        link.bind((0, 0))
        link.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
        error = -struct.unpack_from("i", link.recv(4000), 16)[0]
    if error:
        raise OSError(error, os.strerror(error))
    return "made"


LIBC = ctypes.CDLL(None, use_errno=True)
CALLS = {  # x86-64, aarch64
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "setns": (308, 268),
    "unshare": (272, 97),
    "mount": (165, 40),
    "open_by_handle_at": (304, 265),
}


def call(name: str, *arguments: Any) -> str:
    number = CALLS[name][os.uname().machine == "aarch64"]
    if LIBC.syscall(number, *arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return "done"


def in_child(name: str, *arguments: Any) -> str:
    """Make a system call in a child process, because it would change this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, call(name, *arguments).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as reader:
        result = reader.read().decode()
    if not result:
        raise OSError(name)
    return result


def open_for_writing(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY))
    return "opened"


def make_device() -> str:
    path = os.path.join(tempfile.mkdtemp(), "memory")  # noqa: PTH118
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 1))
    os.close(os.open(path, os.O_RDONLY))
    return "made"


def enter_namespace(path: str) -> str:
    namespace = os.open(path, os.O_RDONLY)
    try:
        return in_child("setns", namespace, 0)
    finally:
        os.close(namespace)


def open_url(url: str) -> str:
    """Fetch ``url`` through the proxy that the variables name."""
    return urllib.request.urlopen(url, timeout=5 * TIMEOUT_S).read().decode("latin-1")  # type: ignore[no-any-return]


def network_attempts(targets: dict[str, Any]) -> Attempts:
    """Return attempts to reach listeners over the network; with an open network they succeed."""
    attempts: Attempts = {}
    for host in targets["hosts"]:
        attempts[f"tcp {host}"] = lambda host=host: try_tcp(host, targets["tcp"])
        attempts[f"udp {host}"] = lambda host=host: try_udp(host, targets["udp"])
        attempts[f"dns {host}"] = lambda host=host: try_udp(host, targets["dns"], dns_query("secret.test"))
    for host in targets["neighbours"]:
        attempts[f"neighbour {host}"] = lambda host=host: try_tcp(host, targets["neighbour"])
    return attempts


def socket_attempts(targets: dict[str, Any]) -> Attempts:
    """Return attempts to reach listeners of the host by Unix sockets."""
    attempts: Attempts = {
        "abstract": lambda: try_unix("\0" + targets["abstract"]),
        "abstract datagram": lambda: try_unix("\0" + targets["abstract"] + "-datagram", socket.SOCK_DGRAM),
    }
    for path in targets["paths"]:
        attempts[f"socket {path}"] = lambda path=path: try_unix(path)
    return attempts


def privileged_attempts(targets: dict[str, Any]) -> Attempts:
    """Return attempts that must fail in every sandbox, whatever its network."""
    host = targets["hosts"][0]
    buffer = ctypes.create_string_buffer(256)
    return {
        "ping": lambda: try_ping(host, socket.SOCK_RAW),
        "raw": lambda: make_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
        "raw 6": lambda: make_socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_TCP),
        "packet": lambda: make_socket(17, socket.SOCK_RAW, 3),
        "packet datagram": lambda: make_socket(17, socket.SOCK_DGRAM, 3),
        "vsock": lambda: make_socket(40, socket.SOCK_STREAM),
        "vsock datagram": lambda: make_socket(40, socket.SOCK_DGRAM),
        "other families": make_other_sockets,
        "new interface": make_interface,
        "io_uring": lambda: call("io_uring_setup", 8, buffer),
        "process keyring": lambda: call("add_key", b"user", b"codetaste", b"x", 1, -2),
        "session keyring": lambda: call("keyctl", 0, -3, 0),
        "user keyring": lambda: call("keyctl", 0, -4, 0),
        "user namespace": lambda: in_child("unshare", 0x10000000),
        "user and network namespace": lambda: in_child("unshare", 0x50000000),
        "network namespace": lambda: in_child("unshare", 0x40000000),
        "mount namespace": lambda: in_child("unshare", 0x00020000),
        "network of the first process": lambda: enter_namespace("/proc/1/ns/net"),
        "mounts of the first process": lambda: enter_namespace("/proc/1/ns/mnt"),
        "mount": lambda: in_child("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "handle": open_by_handle,
        "bpf": lambda: call("bpf", 0, ctypes.create_string_buffer(struct.pack("4I", 2, 4, 4, 1), 120), 120),
        "perf": lambda: call("perf_event_open", perf_attributes(), 0, -1, -1, 0),
        "device": make_device,
        **{
            f"write {path}": (lambda path=path: open_for_writing(path))
            for path in (
                "/proc/sys/kernel/core_pattern",
                "/proc/sys/kernel/modprobe",
                "/proc/sys/net/ipv4/ip_forward",
                "/proc/sys/net/ipv4/ping_group_range",
                "/proc/sysrq-trigger",
                "/sys/kernel/uevent_helper",
                "/dev/kmsg",
                "/dev/mem",
                "/dev/net/tun",
                "/dev/vsock",
                "/dev/fuse",
            )
        },
    }


def make_other_sockets() -> str:
    """Make sockets of families that no network namespace contains or no program needs."""
    found = []
    for family in {*range(64)} - {1, 2, 10, 16, 17, 40}:
        for kind in (1, 2, 3, 4, 5, 10):
            try:
                make_socket(family, kind)
            except OSError:
                continue
            found.append((family, kind))
    if not found:
        raise OSError("none")
    return str(found)


def open_by_handle() -> str:
    """Open a folder by its inode number instead of a path, like the "shocker" exploit."""
    handle = struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0)
    root = os.open("/", os.O_RDONLY)
    try:
        return call("open_by_handle_at", root, handle, os.O_RDONLY)
    finally:
        os.close(root)


def perf_attributes() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0), 112)  # PERF_COUNT_SW_CPU_CLOCK


def forward_attempts(targets: dict[str, Any]) -> Attempts:
    """Return attempts that use the sandbox's port forwards or its proxy."""
    attempts: Attempts = {
        f"forward {name}": lambda forward=forward: try_tcp(
            "127.0.0.1", forward["port"], forward["request"].encode("latin-1")
        )
        for name, forward in targets.get("forwards", {}).items()
    }
    for url in targets.get("urls", []):
        attempts[f"url {url}"] = lambda url=url: open_url(url)
    if targets.get("isolated"):
        attempts["resolve"] = lambda: resolve("secret.test")
        attempts["resolve numbers"] = lambda: str(socket.gethostbyaddr(targets["hosts"][-1]))
        attempts["broadcast"] = lambda: try_broadcast(targets["udp"])
        attempts["other port of loopback"] = lambda: try_tcp("127.0.0.1", targets["loopback"])
        attempts["other port of loopback 6"] = lambda: try_tcp("::1", targets["tcp"])
    return attempts


def main() -> None:
    targets = json.loads(sys.argv[1])
    attempts: Attempts = {}
    for group in targets["groups"]:
        attempts.update(
            {
                "network": network_attempts,
                "sockets": socket_attempts,
                "privileged": privileged_attempts,
                "forwards": forward_attempts,
            }[group](targets)
        )
    outcomes: dict[str, str] = {}

    def attempt(name: str, action: Callable[[], object]) -> None:
        try:
            outcomes[name] = str(action()) or "an empty answer"
        except Exception:  # noqa: BLE001 - any failure is the result
            outcomes[name] = ""

    # Attempts that wait for a response run concurrently; the others run alone.
    concurrent = [
        name for name in attempts if name.split()[0] in {"tcp", "udp", "dns", "neighbour", "forward", "url"}
    ]
    threads = [threading.Thread(target=attempt, args=(name, attempts[name])) for name in concurrent]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, action in attempts.items():
        if name not in concurrent:
            attempt(name, action)
    sys.stdout.write(json.dumps(outcomes) + "\n")


main()
