"""A loopback server that answers queries like BigQuery's REST interface: dry runs, jobs, pages, errors."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ya29.made-up"


@dataclass
class ServedTable:
    """What the server knows.

    Attributes:
        fields: names and types of the columns of the answer.
        rows: the answer, in BigQuery's texts.
        bytes_read: what a dry run says.
        page_rows: rows of a page.
        polls: how often the job is not complete yet.
        faults: answered first, one by one: status, message and reason.
        requests: bodies and paths that came in.
    """

    fields: list[tuple[str, str]]
    rows: list[list[str | None]]
    bytes_read: int = 3 * 1024**4
    page_rows: int = 2
    polls: int = 1
    faults: list[tuple[int, str, str]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append((f"{method} {urlsplit(path).path}", body))
        if self.faults:
            status, message, reason = self.faults.pop(0)
            return status, {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}}
        if body.get("dryRun"):
            return 200, {"totalBytesProcessed": str(self.bytes_read), "jobComplete": True, "cacheHit": False}
        reference = {"projectId": "made-project", "jobId": "job_1", "location": "US"}
        if self.polls:
            self.polls -= 1
            return 200, {"jobReference": reference, "jobComplete": False}
        start = int(parse_qs(urlsplit(path).query).get("pageToken", ["0"])[0])
        stop = start + self.page_rows
        page: dict[str, Any] = {
            "jobReference": reference,
            "jobComplete": True,
            "schema": {"fields": [{"name": name, "type": kind} for name, kind in self.fields]},
            "rows": [{"f": [{"v": value} for value in row]} for row in self.rows[start:stop]],
            "totalRows": str(len(self.rows)),
            "totalBytesProcessed": str(self.bytes_read),
        }
        return 200, page | ({"pageToken": str(stop)} if stop < len(self.rows) else {})


@contextmanager
def serving_bigquery(table: ServedTable) -> Iterator[ServedTable]:
    """Serve ``table`` on loopback; its address is ``table.url``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", {})

        def do_POST(self) -> None:
            self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, method: str, body: dict[str, Any]) -> None:
            if self.headers.get("Authorization") == f"Bearer {TOKEN}":
                status, answer = table.answer(method, self.path, body)
            else:
                status, answer = 401, {"error": {"code": 401, "message": "Invalid Credentials"}}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        table.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield table
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
