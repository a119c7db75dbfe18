"""A release archive, and a web server on loopback that serves it with faults on demand."""

from __future__ import annotations

import http.server
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.instances_csv import format_table

INSTANCES = (
    Instance("made", "one", "a" * 40, "b" * 40, None, "api", "go"),
    Instance("made", "two", "c" * 40, "d" * 40, None, "api", "rust"),
)


def release_files(instances: tuple[Instance, ...] = INSTANCES) -> dict[str, bytes]:
    """Return all files of a complete benchmark."""
    files = {"instances.csv": format_table(instances).encode(), "assets/default.semgrepignore": b"*.svg\n"}
    for each in instances:
        task, image = f"assets/descriptions/{each.path}", f"instance_images/{each.path}"
        metadata = {"base_hash": each.commit_hash, "golden_hash": each.golden_commit_hash}
        files |= {
            f"{task}/description.md": b"all\n",
            f"{task}/open_description.md": b"some\n",
            f"assets/rules/{each.path}/rules_positive.yml": b"rules: [1]\n",
            f"assets/rules/{each.path}/rules_negative.yml": b"rules: [2]\n",
            f"{image}/instance_metadata.json": json.dumps(metadata).encode(),
            f"{image}/scripts/setup_system.sh": b"true\n",
            f"{image}/scripts/setup_shell.sh": b"true\n",
            f"{image}/scripts/run_tests": b"true\n",
        }
    return files


def zip_files(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def write_files(files: dict[str, bytes], root: Path) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


@dataclass
class ServedFile:
    """``faults`` are answered first, one by one: a status, a number of bytes to break off after, or "loop".

    Attributes:
        content: the bytes.
        etag: the ETag header; "" for none.
        kind: the content type.
        ranges: whether range requests are answered with a part.
        range_headers: the Range header of each request, "" without.
    """

    content: bytes
    etag: str = '"one"'
    kind: str = "application/zip"
    ranges: bool = True
    faults: list[int | str] = field(default_factory=list)
    range_headers: list[str] = field(default_factory=list)
    url: str = ""


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the file ``served`` of its class."""

    protocol_version = "HTTP/1.1"
    served: ServedFile

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.served.range_headers.append(wanted)
        fault = self.served.faults.pop(0) if self.served.faults else None
        if fault == "loop" or self.path == "/loop":
            self._answer(302, {"Location": "/loop"})
        elif isinstance(fault, int) and 400 <= fault < 600:
            self._answer(fault, {})
        else:
            self._send(wanted, cut=fault if isinstance(fault, int) else None)

    def _send(self, wanted: str, cut: int | None) -> None:
        served, whole = self.served, len(self.served.content)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if not served.ranges or self.headers.get("If-Range") != served.etag:
            start = 0
        head = {"Content-Type": served.kind} | ({"ETag": served.etag} if served.etag else {})
        if start >= whole and start:
            self._answer(416, {"Content-Range": f"bytes */{whole}"})
            return
        part = {"Content-Range": f"bytes {start}-{whole - 1}/{whole}"} if start else {}
        self._answer(206 if start else 200, head | part, served.content[start:], cut)

    def _answer(self, status: int, head: dict[str, str], body: bytes = b"", cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in head.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.close_connection = cut is not None or self.close_connection


@contextmanager
def serving(served: ServedFile) -> Iterator[ServedFile]:
    handler = type("Bound", (Handler,), {"served": served})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False
    served.url = f"http://127.0.0.1:{server.server_address[1]}/codetaste100.zip"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
