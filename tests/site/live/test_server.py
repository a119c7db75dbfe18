"""The server on a real socket: readers that ask oddly, slowly, or go away."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from codetaste.site.live import followed_run
from support.site.journals import SESSION, append_journal, ended, job, started, write_journal

PAGE = "/live/run/index.html"
MANY_JOBS = 3000
WAIT_S = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "run", [SESSION, job("a"), started("a")])


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each request read the journal."""
    monkeypatch.setattr(followed_run, "_MIN_INTERVAL_S", 0.0)
    monkeypatch.setattr(followed_run, "_MAX_INTERVAL_S", 0.0)


def connect(address: str) -> socket.socket:
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return socket.create_connection((parts.hostname, parts.port), WAIT_S)


def test_head_has_the_headers_of_get_and_no_body(root: Path, serve: Callable[[Path], str]) -> None:
    address = serve(root)
    for path in (PAGE, "/assets/site.css", "/nothing.html"):
        page, head = httpx.get(address + path), httpx.head(address + path)
        assert head.status_code == page.status_code
        assert head.headers["content-type"] == page.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
        assert head.content == b""
    style = f"{address}/assets/site.css"
    assert int(httpx.head(style).headers["content-length"]) == len(httpx.get(style).content)


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /live/run/index.html?" + "x=1&" * 12_000,
        "GET /live/run/changes.json?since=" + "9" * 40_000,
        "GET /live/run/changes.json?since=%ff%00-%0d%0a.1",
        "GET /live/run/job.html?key=" + "%2e%2e%2f" * 4000,
        "GET /" + "a/" * 10_000,
        "GET //evil.example/%00",
        "GET /live/run/../../../etc/passwd",
        "GET http://evil.example/live/run/index.html",
        "GET /" + "x" * 200_000,
        "NONSENSE /",
        "GET",
        "\x16\x03\x01\x02\x00",
    ],
    ids=lambda line: line[:40],
)
def test_odd_requests_get_an_answer_and_harm_no_other(
    root: Path, serve: Callable[[Path], str], request_line: str
) -> None:
    address = serve(root)
    with connect(address) as connection:
        answer = b""
        with suppress(OSError):  # the server may close before it has read all
            connection.sendall(
                f"{request_line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
            )
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                answer += part
    if answer:
        assert int(answer.split(b" ", 2)[1]) in {200, 400, 404, 405, 431}
        assert b"root:" not in answer
        assert len(answer) < 1_000_000
    assert httpx.get(address + PAGE).status_code == 200


@pytest.mark.usefixtures("_at_once")
def test_readers_that_stall_or_go_away_hold_up_no_other(tmp_path: Path, serve: Callable[[Path], str]) -> None:
    root = write_journal(tmp_path / "run", [SESSION, *(job(f"job-{n}") for n in range(MANY_JOBS))])
    address = serve(root)
    request = f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
    with ExitStack() as stack:
        for number in range(30):
            connection = stack.enter_context(connect(address))
            if number % 3 == 0:
                connection.sendall(request)  # never the end of the head
            else:
                connection.sendall(request + b"\r\n")  # never reads the answer
            if number % 3 == 2:
                connection.close()
        answer = httpx.get(address + PAGE, timeout=WAIT_S)
        assert answer.status_code == 200
        assert f"job-{MANY_JOBS - 1}".encode() in answer.content
        append_journal(root, [started("job-7"), ended("job-7", "failed", error="why")])
        assert b"why" in httpx.get(f"{address}/live/run/changes.json", timeout=WAIT_S).content


@pytest.mark.usefixtures("_at_once")
def test_run_that_is_deleted_and_made_anew_while_it_is_watched(
    root: Path, serve: Callable[[Path], str]
) -> None:
    address = serve(root)
    changes = f"{address}/live/run/changes.json"
    first = httpx.get(changes).json()
    shutil.rmtree(root)
    gone = httpx.get(changes, params={"since": first["version"]}).json()
    assert "Problem" in gone["summary"]
    assert "journal.jsonl" in gone["summary"]
    assert httpx.get(f"{address}/live/run/job.html", params={"key": "a"}).status_code == 200
    assert httpx.get(f"{address}/index.html").status_code == 200
    # The new run's journal is longer than what was read of the old one.
    write_journal(root, [SESSION, *(job(f"new-{number}") for number in range(100))])
    anew = httpx.get(changes, params={"since": gone["version"]}).json()
    assert anew["whole"]
    assert "Problem" not in anew["summary"]
    assert len(anew["job_rows"]) == 100
    assert httpx.get(f"{address}/live/run/job.html", params={"key": "a"}).status_code == 404
