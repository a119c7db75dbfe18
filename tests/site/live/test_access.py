"""Who gets an answer of the live server: no other host name, no other site, nobody without the token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from codetaste.site.live.access import HEADERS, Access
from codetaste.site.live.app import ViewApp
from codetaste.site.live.current_site import CurrentSite
from codetaste.site.live.serve import followed_runs
from support.site import requests
from support.site.journals import SESSION, job, write_journal

TOKEN = "a-token-of-enough-characters"


class Client:
    """Sends requests to the application, as they come from a connection."""

    def __init__(self, connection: requests.Client) -> None:
        self._connection = connection

    def __call__(self, method: str, path: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self._connection.send(method, path, named)


@contextmanager
def serving(root: Path, access: Access) -> Iterator[Client]:
    """Serve a run in one event loop: what one request has begun, a later one may wait for."""
    app = ViewApp(access, CurrentSite([root], None, "runs"), followed_runs([root]))
    with requests.connected(app) as connection:
        yield Client(connection)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "run", [SESSION, job("a")])


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    with serving(root, Access("127.0.0.1")) as client:
        yield client


@pytest.fixture
def guarded(root: Path) -> Iterator[Client]:
    with serving(root, Access("0.0.0.0", TOKEN)) as client:
        yield client


PAGE = "/live/run/index.html"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_get_and_head_are_answered(client: Client, method: str) -> None:
    answer = client(method, PAGE)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9999", "localhost:80", "[::1]:80", "LOCALHOST"])
def test_names_of_the_loopback_are_known(client: Client, host: str) -> None:
    assert client("GET", PAGE, host=host).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1@evil.example", "[::1", "::"]
)
def test_other_host_names_get_nothing_as_dns_may_be_rebound(client: Client, host: str) -> None:
    answer = client("GET", PAGE, host=host)
    assert answer.status_code == 421
    assert "a" not in answer.headers.get("access-control-allow-origin", "")


@pytest.mark.parametrize(
    ("site", "mode", "dest", "code"),
    [
        ("cross-site", "no-cors", "script", 403),
        ("same-site", "cors", "empty", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_pages_of_other_sites_may_link_but_not_load(
    client: Client, site: str, mode: str, dest: str, code: int
) -> None:
    answer = client("GET", PAGE, sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest)
    assert answer.status_code == code


def test_every_answer_has_the_protecting_headers_and_none_of_cors(client: Client) -> None:
    for method, path in [("GET", PAGE), ("GET", "/nothing"), ("POST", PAGE), ("GET", "/")]:
        headers = client(method, path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert not [name for name in headers if name.startswith("access-control")]
    assert "frame-ancestors 'none'" in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/../journal.jsonl",
        "/live/../../journal.jsonl",
        "/live/run/../../../journal.jsonl",
        "/live/%2e%2e/%2e%2e/etc/passwd",
        "/live/run/%2e%2e%2fjournal.jsonl",
        "/journal.jsonl",
        "/live/run/journal.jsonl",
        "http://127.0.0.1//etc/passwd",
        "/assets/../../../pyproject.toml",
        "/live/run/job.html?key=../../etc/passwd",
        "/live/run/job.html",
        "/live/other/index.html",
    ],
)
def test_nothing_but_pages_of_the_site_has_an_address(client: Client, path: str) -> None:
    answer = client("GET", path)
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    sheet = re.search(r'rel="stylesheet" href="([^"]+)"', answer.text)
    assert sheet is not None
    assert urljoin(str(answer.url), sheet[1]) == "http://127.0.0.1/assets/site.css"


def test_without_the_token_no_page_is_shown(guarded: Client) -> None:
    for path in (PAGE, "/", "/assets/site.js", f"{PAGE}?token=", f"{PAGE}?token=wrong", f"{PAGE}?token=%ff"):
        answer = guarded("GET", path)
        assert answer.status_code == 401, path
        assert TOKEN not in answer.text
    for cookie in (f"codetaste-80={TOKEN}", "codetaste-80=", "garbage;;=", f"token={TOKEN}"):
        assert guarded("GET", PAGE, cookie=cookie).status_code == 401
    assert guarded("GET", PAGE, authorization="Bearer no").status_code == 401


def test_token_is_replaced_by_a_cookie_and_leaves_the_address(guarded: Client) -> None:
    answer = guarded("GET", f"{PAGE}?q=some%20words&token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PAGE}?q=some+words"
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert guarded("GET", PAGE, cookie=cookie.partition(";")[0]).status_code == 200
    assert guarded("GET", PAGE, authorization=f"Bearer {TOKEN}").status_code == 200


def test_token_never_leads_to_another_host(guarded: Client) -> None:
    answer = guarded("GET", f"http://127.0.0.1//evil.example/x?token={TOKEN}")
    assert answer.headers["location"].startswith("/evil.example")


def test_at_another_address_only_addresses_and_its_own_name_are_known(guarded: Client) -> None:
    bearer = f"Bearer {TOKEN}"
    assert guarded("GET", PAGE, authorization=bearer, host="192.168.7.7:80").status_code == 200
    assert guarded("GET", PAGE, authorization=bearer, host="rebound.example").status_code == 421
