"""Commits from a URL: only what is needed, by hash, or all where the server gives no hashes."""

from __future__ import annotations

import functools
import http.server
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError
from codetaste.source.checkout import Trees, checkout_trees
from codetaste.source.origin import GitOrigin
from codetaste.source.repository import fetch_commits
from support.source.repositories import ENVIRONMENT, MadeRepository, make_repository


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    return make_repository(tmp_path / "served/repo")


@pytest.fixture
def served(tmp_path: Path, made: MadeRepository, require: Callable[..., None]) -> Iterator[str]:
    """The address of ``made`` as a real git server gives it."""
    core = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    require("git-daemon", ok=(Path(core) / "git-daemon").exists())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = made.path.parent
    trusting = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    command = [str(Path(core) / "git-daemon"), "--export-all", "--reuseaddr", "--listen=127.0.0.1"]
    server = subprocess.Popen(
        [*command, f"--port={port}", f"--base-path={base}", str(base)], env=ENVIRONMENT | trusting
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"git://127.0.0.1:{port}/repo"
    finally:
        server.kill()
        server.wait()


def both(url: str, base: str, golden: str, cache: Path) -> Trees:
    async def main() -> Trees:
        return await checkout_trees(GitOrigin(url, base, golden), cache)

    return anyio.run(main)


def test_only_the_two_commits_are_fetched(made: MadeRepository, served: str, tmp_path: Path) -> None:
    made.commit({b"old": b"unwanted history"})
    unwanted = made.git("rev-parse", "HEAD:old")
    made.git("rm", "--quiet", "old")
    base = made.commit({b"a": b"1"})
    made.commit({b"a": b"between"})
    golden = made.commit({b"a": b"2"})
    trees = both(served, base, golden, tmp_path / "cache")
    assert (trees.base / "a").read_text() == "1"
    assert (trees.golden / "a").read_text() == "2"
    (kept,) = (tmp_path / "cache/git").iterdir()
    found = subprocess.run(
        ["git", f"--git-dir={kept}", "cat-file", "-e", unwanted], env=ENVIRONMENT, check=False
    )
    assert found.returncode != 0


def test_many_may_ask_for_the_same_commits_at_once(made: MadeRepository, served: str, tmp_path: Path) -> None:
    base = made.commit({b"a": b"1"})
    golden = made.commit({b"a": b"2"})
    got: list[Trees] = []

    async def ask() -> None:
        got.append(await checkout_trees(GitOrigin(served, base, golden), tmp_path / "cache"))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)

    anyio.run(main)
    assert len(got) == 8
    assert len(set(got)) == 1


def test_a_commit_that_the_server_lacks_is_named(made: MadeRepository, served: str, tmp_path: Path) -> None:
    base = made.commit({b"a": b"1"})
    with pytest.raises(SourceError, match=f"git://127.0.0.1:.* has no commit {'9' * 40}"):
        both(served, base, "9" * 40, tmp_path / "cache")


def test_locks_that_a_killed_git_left_do_not_matter(
    made: MadeRepository, served: str, tmp_path: Path
) -> None:
    base = made.commit({b"a": b"1"})
    golden = made.commit({b"a": b"2"})
    both(served, base, base, tmp_path / "cache")
    (kept,) = (tmp_path / "cache/git").iterdir()
    for name in ("shallow.lock", "config.lock", "HEAD.lock", "packed-refs.lock"):
        (kept / name).write_text("")
    assert (both(served, base, golden, tmp_path / "cache").golden / "a").read_text() == "2"


def test_a_server_without_hashes_gives_the_whole_repository(made: MadeRepository, tmp_path: Path) -> None:
    base = made.commit({b"a": b"1"})
    golden = made.commit({b"a": b"2"})
    made.git("clone", "--quiet", "--bare", ".", "../dumb.git")
    subprocess.run(
        ["git", "-C", str(made.path.parent / "dumb.git"), "update-server-info"], check=True, env=ENVIRONMENT
    )
    handler = functools.partial(QuietFiles, directory=str(made.path.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://user:secret@127.0.0.1:{server.server_port}/dumb.git"
            trees = both(url, base, golden, tmp_path / "cache")
            assert (trees.golden / "a").read_text() == "2"
            with pytest.raises(SourceError, match="has no commit") as caught:
                both(url, base, "9" * 40, tmp_path / "cache")
            assert "secret" not in str(caught.value)
        finally:
            server.shutdown()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


def test_fetch_unreachable_address_is_reported(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://user:secret@127.0.0.1:{held.getsockname()[1]}/x.git"
        with pytest.raises(SourceError, match=r"cannot be fetched.*use a local clone") as caught:
            both(url, "0" * 40, "1" * 40, tmp_path / "cache")
    assert "secret" not in str(caught.value)


def test_a_server_that_hangs_is_left_in_time(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"git://127.0.0.1:{silent.getsockname()[1]}/x.git"
        started = time.monotonic()
        with pytest.raises(SourceError, match="took more than 1 s"):
            anyio.run(functools.partial(fetch_commits, timeout_s=1.0), url, ["0" * 40], tmp_path / "cache")
        assert time.monotonic() - started < 10


def test_an_address_that_would_run_a_program_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for url in (f"ext::touch {mark}", f"--upload-pack=touch {mark}", "fd::3"):
        with pytest.raises(SourceError):
            anyio.run(fetch_commits, url, ["0" * 40], tmp_path / "cache")
    assert not mark.exists()
