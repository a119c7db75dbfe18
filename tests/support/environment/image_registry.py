"""A registry of container images on loopback: version 2 of the distribution API, without deletion."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

_BLOB = re.compile(r"/v2/(.+)/blobs/(sha256:[0-9a-f]{64})")
_UPLOAD = re.compile(r"/v2/(.+)/blobs/uploads/([0-9a-f-]*)")
_MANIFEST = re.compile(r"/v2/(.+)/manifests/([^/]+)")


@dataclass
class ImageRegistry:
    """``login`` is "user:password" where one is needed."""

    login: str = ""
    host: str = ""
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)

    @property
    def tags(self) -> set[str]:
        """The names with tags that were pushed."""
        return {name for name in self.manifests if "@" not in name}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: ImageRegistry

    def answer(self, status: HTTPStatus, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status: HTTPStatus, code: str, **headers: str) -> None:
        body = {"errors": [{"code": code, "message": code.lower().replace("_", " ")}]}
        self.answer(status, json.dumps(body).encode(), Content_Type="application/json", **headers)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def route(self) -> None:
        content = self.body()
        expected = f"Basic {base64.b64encode(self.registry.login.encode()).decode()}"
        path, _, query = self.path.partition("?")
        if self.registry.login and self.headers.get("Authorization") != expected:
            self.fail(HTTPStatus.UNAUTHORIZED, "UNAUTHORIZED", WWW_Authenticate='Basic realm="test"')
        elif path == "/v2/":
            self.answer(HTTPStatus.OK, b"{}")
        elif match := _UPLOAD.fullmatch(path):
            self.upload(match[1], match[2], query, content)
        elif match := _BLOB.fullmatch(path):
            blob = self.registry.blobs.get(match[2])
            if blob is None:
                self.fail(HTTPStatus.NOT_FOUND, "BLOB_UNKNOWN")
            else:
                self.answer(HTTPStatus.OK, blob, Docker_Content_Digest=match[2])
        elif match := _MANIFEST.fullmatch(path):
            self.manifest(match[1], match[2], content)
        else:
            self.fail(HTTPStatus.NOT_FOUND, "NAME_UNKNOWN")

    def upload(self, name: str, ident: str, query: str, content: bytes) -> None:
        ident = ident or str(uuid.uuid4())
        self.registry.uploads[ident] = self.registry.uploads.get(ident, b"") + content
        place = f"http://{self.registry.host}/v2/{name}/blobs/uploads/{ident}"
        if self.command != "PUT":
            end = max(0, len(self.registry.uploads[ident]) - 1)
            self.answer(HTTPStatus.ACCEPTED, Location=place, Range=f"0-{end}", Docker_Upload_UUID=ident)
            return
        blob = self.registry.uploads.pop(ident)
        digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        assert digest.replace(":", "%3A") in query or digest in query
        self.registry.blobs[digest] = blob
        self.answer(HTTPStatus.CREATED, Location=place, Docker_Content_Digest=digest)

    def manifest(self, name: str, reference: str, content: bytes) -> None:
        if self.command == "PUT":
            digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
            stored = self.headers["Content-Type"], content
            self.registry.manifests[f"{name}:{reference}"] = self.registry.manifests[f"{name}@{digest}"] = (
                stored
            )
            self.answer(HTTPStatus.CREATED, Docker_Content_Digest=digest)
            return
        mark = "@" if reference.startswith("sha256:") else ":"
        found = self.registry.manifests.get(f"{name}{mark}{reference}")
        if found is None:
            self.fail(HTTPStatus.NOT_FOUND, "MANIFEST_UNKNOWN")
            return
        digest = f"sha256:{hashlib.sha256(found[1]).hexdigest()}"
        self.answer(HTTPStatus.OK, found[1], Content_Type=found[0], Docker_Content_Digest=digest)

    def do_GET(self) -> None:
        self.route()

    def do_HEAD(self) -> None:
        self.route()

    def do_POST(self) -> None:
        self.route()

    def do_PATCH(self) -> None:
        self.route()

    def do_PUT(self) -> None:
        self.route()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@contextmanager
def serving(registry: ImageRegistry) -> Iterator[ImageRegistry]:
    handler = type("Handler", (_Handler,), {"registry": registry})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        registry.host = f"127.0.0.1:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()
