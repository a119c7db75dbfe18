"""A package index on loopback, with faults on demand."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def sdist(name: str, version: str, files: dict[str, str]) -> bytes:
    """Return a source distribution as a build tool makes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


@dataclass
class PackageIndex:
    """``faults`` are answered first, one by one: a status, or "cut" to break off in the middle."""

    files: dict[str, bytes] = field(default_factory=dict)
    project: str = "demo"
    html: bool = False
    hashes: bool = True
    faults: list[int | str] = field(default_factory=list)
    requested_paths: list[str] = field(default_factory=list)
    url: str = ""

    def page(self) -> tuple[str, bytes]:
        if self.html:
            links = "".join(
                f'<a href="../../files/{name}{self._fragment(content)}">{name}</a>'
                for name, content in self.files.items()
            )
            return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        files = [
            {"filename": name, "url": f"../../files/{name}", "hashes": self._hashes(content)}
            for name, content in self.files.items()
        ]
        page = {"meta": {"api-version": "1.0"}, "name": self.project, "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()

    def _hashes(self, content: bytes) -> dict[str, str]:
        return {"sha256": hashlib.sha256(content).hexdigest()} if self.hashes else {}

    def _fragment(self, content: bytes) -> str:
        return "".join(f"#{name}={value}" for name, value in self._hashes(content).items())


@contextmanager
def serving(index: PackageIndex) -> Iterator[PackageIndex]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.requested_paths.append(self.path)
            fault = index.faults.pop(0) if index.faults else None
            if isinstance(fault, int):
                self.send_error(fault)
                return
            name = self.path.rpartition("/")[2]
            if self.path == f"/simple/{index.project}/":
                kind, body = index.page()
            elif self.path.startswith("/files/") and name in index.files:
                kind, body = "application/octet-stream", index.files[name]
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        index.url = f"http://127.0.0.1:{server.server_port}/simple"
        try:
            yield index
        finally:
            server.shutdown()
