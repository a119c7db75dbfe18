"""Tries every way out of the place where it runs: inside of boxes, and outside to show that it can succeed.

``python3 - TARGETS``: JSON in, one line of JSON out: what was tried, and "" where it was refused or else what
came of it. Its targets are listeners of the test's own. Nothing is asked of any other address, and nothing is
changed: what would be is opened, and closed again. Standard library only: it runs wherever there is Python.
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

WITHIN_S = 1.0
Tried = dict[str, Callable[[], object]]


def tcp(host: str, port: int, said: bytes = b"GET / HTTP/1.0\r\n\r\n") -> str:
    with socket.create_connection((host, port), WITHIN_S) as stream:
        return talk(stream, said)


def unix(path: str, kind: int = socket.SOCK_STREAM) -> str:
    with socket.socket(socket.AF_UNIX, kind) as stream:
        stream.settimeout(WITHIN_S)
        stream.connect(path)
        if kind == socket.SOCK_DGRAM:
            stream.send(b"x")
            return "sent"
        return talk(stream, b"GET / HTTP/1.0\r\n\r\n")


def talk(stream: socket.socket, said: bytes) -> str:
    stream.sendall(said)
    return stream.recv(4000).decode("latin-1")


def udp(host: str, port: int, said: bytes = b"x") -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(WITHIN_S)
        datagrams.sendto(said, (host, port))
        return datagrams.recv(4000).decode("latin-1")


def broadcast(port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        datagrams.settimeout(WITHIN_S)
        datagrams.sendto(b"x", ("255.255.255.255", port))
        return "sent"


def query(name: str) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def resolve(name: str) -> str:
    """Ask whoever this place asks; for places only that have nobody to ask."""
    return str(socket.getaddrinfo(name, 80))


def made(family: int, kind: int, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return "made"


def ping(host: str, kind: int) -> str:
    with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as pings:
        pings.settimeout(WITHIN_S)
        pings.sendto(b"\x08\0\xf7\xff\0\0\0\0", (host, 0))
        return str(len(pings.recv(100)))


def new_interface() -> str:
    """Ask the kernel for another network interface (RTM_NEWLINK, of kind dummy)."""
    kind = struct.pack("HH", 10, 1) + b"dummy\0\0\0"
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH", 4 + len(kind), 18 | 0x8000) + kind
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.settimeout(WITHIN_S)
        link.bind((0, 0))
        link.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
        refused = -struct.unpack_from("i", link.recv(4000), 16)[0]
    if refused:
        raise OSError(refused, os.strerror(refused))
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
    """Make a call that would change this very process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, call(name, *arguments).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as said:
        done = said.read().decode()
    if not done:
        raise OSError(name)
    return done


def opened(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY))
    return "opened"


def device() -> str:
    path = os.path.join(tempfile.mkdtemp(), "memory")  # noqa: PTH118
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 1))
    os.close(os.open(path, os.O_RDONLY))
    return "made"


def enter(path: str) -> str:
    namespace = os.open(path, os.O_RDONLY)
    try:
        return in_child("setns", namespace, 0)
    finally:
        os.close(namespace)


def by_proxy(url: str) -> str:
    """As a program does that follows the variables."""
    return urllib.request.urlopen(url, timeout=5 * WITHIN_S).read().decode("latin-1")  # type: ignore[no-any-return]


def network(targets: dict[str, Any]) -> Tried:
    """What leads to listeners of a network; in an open one it reaches them."""
    tries: Tried = {}
    for host in targets["hosts"]:
        tries[f"tcp {host}"] = lambda host=host: tcp(host, targets["tcp"])
        tries[f"udp {host}"] = lambda host=host: udp(host, targets["udp"])
        tries[f"dns {host}"] = lambda host=host: udp(host, targets["dns"], query("secret.test"))
    for host in targets["neighbours"]:
        tries[f"neighbour {host}"] = lambda host=host: tcp(host, targets["neighbour"])
    return tries


def sockets(targets: dict[str, Any]) -> Tried:
    """What leads to listeners of this machine in other ways."""
    tries: Tried = {
        "abstract": lambda: unix("\0" + targets["abstract"]),
        "abstract datagram": lambda: unix("\0" + targets["abstract"] + "-datagram", socket.SOCK_DGRAM),
    }
    for path in targets["paths"]:
        tries[f"socket {path}"] = lambda path=path: unix(path)
    return tries


def privileged(targets: dict[str, Any]) -> Tried:
    """What nobody in a box may do, whatever network it has."""
    host = targets["hosts"][0]
    buffer = ctypes.create_string_buffer(256)
    return {
        "ping": lambda: ping(host, socket.SOCK_RAW),
        "raw": lambda: made(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
        "raw 6": lambda: made(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_TCP),
        "packet": lambda: made(17, socket.SOCK_RAW, 3),
        "packet datagram": lambda: made(17, socket.SOCK_DGRAM, 3),
        "vsock": lambda: made(40, socket.SOCK_STREAM),
        "vsock datagram": lambda: made(40, socket.SOCK_DGRAM),
        "other families": other_families,
        "new interface": new_interface,
        "io_uring": lambda: call("io_uring_setup", 8, buffer),
        "process keyring": lambda: call("add_key", b"user", b"codetaste", b"x", 1, -2),
        "session keyring": lambda: call("keyctl", 0, -3, 0),
        "user keyring": lambda: call("keyctl", 0, -4, 0),
        "user namespace": lambda: in_child("unshare", 0x10000000),
        "user and network namespace": lambda: in_child("unshare", 0x50000000),
        "network namespace": lambda: in_child("unshare", 0x40000000),
        "mount namespace": lambda: in_child("unshare", 0x00020000),
        "network of the first process": lambda: enter("/proc/1/ns/net"),
        "mounts of the first process": lambda: enter("/proc/1/ns/mnt"),
        "mount": lambda: in_child("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "handle": handle,
        "bpf": lambda: call("bpf", 0, ctypes.create_string_buffer(struct.pack("4I", 2, 4, 4, 1), 120), 120),
        "perf": lambda: call("perf_event_open", perf_attributes(), 0, -1, -1, 0),
        "device": device,
        **{
            f"write {path}": (lambda path=path: opened(path))
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


def other_families() -> str:
    """Sockets of families that no network namespace contains, or nobody needs."""
    found = []
    for family in {*range(64)} - {1, 2, 10, 16, 17, 40}:
        for kind in (1, 2, 3, 4, 5, 10):
            try:
                made(family, kind)
            except OSError:
                continue
            found.append((family, kind))
    if not found:
        raise OSError("none")
    return str(found)


def handle() -> str:
    """Open a folder by its number, past all names (as "shocker" did)."""
    what = struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0)
    root = os.open("/", os.O_RDONLY)
    try:
        return call("open_by_handle_at", root, what, os.O_RDONLY)
    finally:
        os.close(root)


def perf_attributes() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0), 112)  # a clock of software


def ways(targets: dict[str, Any]) -> Tried:
    """What goes by the ways that this place has: each a request, whole."""
    tries: Tried = {
        f"way {name}": lambda way=way: tcp("127.0.0.1", way["port"], way["said"].encode("latin-1"))
        for name, way in targets.get("ways", {}).items()
    }
    for url in targets.get("urls", []):
        tries[f"url {url}"] = lambda url=url: by_proxy(url)
    if targets.get("asks_nobody"):
        tries["resolve"] = lambda: resolve("secret.test")
        tries["resolve numbers"] = lambda: str(socket.gethostbyaddr(targets["hosts"][-1]))
        tries["broadcast"] = lambda: broadcast(targets["udp"])
        tries["other port of loopback"] = lambda: tcp("127.0.0.1", targets["loopback"])
        tries["other port of loopback 6"] = lambda: tcp("::1", targets["tcp"])
    return tries


def main() -> None:
    targets = json.loads(sys.argv[1])
    tries: Tried = {}
    for group in targets["groups"]:
        tries.update(
            {"network": network, "sockets": sockets, "privileged": privileged, "ways": ways}[group](targets)
        )
    came: dict[str, str] = {}

    def attempt(name: str, what: Callable[[], object]) -> None:
        try:
            came[name] = str(what()) or "an empty answer"
        except Exception:  # noqa: BLE001 - refused is refused
            came[name] = ""

    # Those that wait for an answer wait together; the others have the process to themselves.
    waiting = [name for name in tries if name.split()[0] in {"tcp", "udp", "dns", "neighbour", "way", "url"}]
    threads = [threading.Thread(target=attempt, args=(name, tries[name])) for name in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, what in tries.items():
        if name not in waiting:
            attempt(name, what)
    sys.stdout.write(json.dumps(came) + "\n")


main()
