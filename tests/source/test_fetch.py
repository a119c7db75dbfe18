"""Commits from a URL: only those needed, by hash, or all if the server does not serve single commits."""

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
from support.source.repositories import ENVIRONMENT, GitRepository, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return make_repository(tmp_path / "served/repo")


@pytest.fixture
def served(tmp_path: Path, repository: GitRepository, require: Callable[..., None]) -> Iterator[str]:
    """Serve ``repository`` with a real git server; return its address."""
    core = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    require("git-daemon", ok=(Path(core) / "git-daemon").exists())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = repository.path.parent
    trusted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    command = [str(Path(core) / "git-daemon"), "--export-all", "--reuseaddr", "--listen=127.0.0.1"]
    server = subprocess.Popen(
        [*command, f"--port={port}", f"--base-path={base}", str(base)], env=ENVIRONMENT | trusted
    )
    try:
        for _ in range(4000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"git://127.0.0.1:{port}/repo"
    finally:
        server.kill()
        server.wait()


def fetch_trees(url: str, base: str, golden: str, cache: Path) -> Trees:
    async def main() -> Trees:
        return await checkout_trees(GitOrigin(url, base, golden), cache)

    return anyio.run(main)


def test_only_the_two_commits_are_fetched(repository: GitRepository, served: str, tmp_path: Path) -> None:
    repository.commit({b"old": b"unwanted history"})
    unwanted = repository.git("rev-parse", "HEAD:old")
    repository.git("rm", "--quiet", "old")
    base = repository.commit({b"a": b"1"})
    repository.commit({b"a": b"between"})
    golden = repository.commit({b"a": b"2"})
    trees = fetch_trees(served, base, golden, tmp_path / "cache")
    assert (trees.base / "a").read_text() == "1"
    assert (trees.golden / "a").read_text() == "2"
    (cached,) = (tmp_path / "cache/git").iterdir()
    done = subprocess.run(
        ["git", f"--git-dir={cached}", "cat-file", "-e", unwanted], env=ENVIRONMENT, check=False
    )
    assert done.returncode != 0


def test_concurrent_fetches_of_the_same_commits_agree(
    repository: GitRepository, served: str, tmp_path: Path
) -> None:
    base = repository.commit({b"a": b"1"})
    golden = repository.commit({b"a": b"2"})
    fetched: list[Trees] = []

    async def fetch() -> None:
        fetched.append(await checkout_trees(GitOrigin(served, base, golden), tmp_path / "cache"))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(fetch)

    anyio.run(main)
    assert len(fetched) == 8
    assert len(set(fetched)) == 1


def test_commit_missing_on_the_server_is_named(
    repository: GitRepository, served: str, tmp_path: Path
) -> None:
    base = repository.commit({b"a": b"1"})
    with pytest.raises(SourceError, match=f"git://127.0.0.1:.* has no commit {'9' * 40}"):
        fetch_trees(served, base, "9" * 40, tmp_path / "cache")


def test_stale_locks_of_a_killed_git_are_ignored(
    repository: GitRepository, served: str, tmp_path: Path
) -> None:
    base = repository.commit({b"a": b"1"})
    golden = repository.commit({b"a": b"2"})
    fetch_trees(served, base, base, tmp_path / "cache")
    (cached,) = (tmp_path / "cache/git").iterdir()
    for name in ("shallow.lock", "config.lock", "HEAD.lock", "packed-refs.lock"):
        (cached / name).write_text("")
    assert (fetch_trees(served, base, golden, tmp_path / "cache").golden / "a").read_text() == "2"


def test_whole_repository_is_fetched_from_a_dumb_server(repository: GitRepository, tmp_path: Path) -> None:
    base = repository.commit({b"a": b"1"})
    golden = repository.commit({b"a": b"2"})
    repository.git("clone", "--quiet", "--bare", ".", "../dumb.git")
    subprocess.run(
        ["git", "-C", str(repository.path.parent / "dumb.git"), "update-server-info"],
        check=True,
        env=ENVIRONMENT,
    )
    handler = functools.partial(QuietFiles, directory=str(repository.path.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://user:secret@127.0.0.1:{server.server_port}/dumb.git"
            trees = fetch_trees(url, base, golden, tmp_path / "cache")
            assert (trees.golden / "a").read_text() == "2"
            with pytest.raises(SourceError, match="has no commit") as caught:
                fetch_trees(url, base, "9" * 40, tmp_path / "cache")
            assert "secret" not in str(caught.value)
        finally:
            server.shutdown()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


def test_fetch_unreachable_address_is_reported(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://user:secret@127.0.0.1:{bound.getsockname()[1]}/x.git"
        with pytest.raises(SourceError, match=r"cannot be fetched.*use a local clone") as caught:
            fetch_trees(url, "0" * 40, "1" * 40, tmp_path / "cache")
    assert "secret" not in str(caught.value)


def test_fetch_from_a_hanging_server_times_out(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"git://127.0.0.1:{silent.getsockname()[1]}/x.git"
        started = time.monotonic()
        with pytest.raises(SourceError, match="took more than 1 s"):
            anyio.run(functools.partial(fetch_commits, timeout_s=1.0), url, ["0" * 40], tmp_path / "cache")
        assert time.monotonic() - started < 200


def test_address_that_would_run_a_program_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for url in (f"ext::touch {mark}", f"--upload-pack=touch {mark}", "fd::3"):
        with pytest.raises(SourceError):
            anyio.run(fetch_commits, url, ["0" * 40], tmp_path / "cache")
    assert not mark.exists()
