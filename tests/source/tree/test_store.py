"""The tree cache: a tree is made once, completely or not at all, and made again if it was changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import SourceError
from codetaste.source.tree.store import Tree, cached_tree, tree_digest


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def fill(into: Path) -> None:
    await to_thread.run_sync(into.mkdir)
    await to_thread.run_sync((into / "a").write_text, "a")


def test_tree_is_made_once_for_concurrent_callers(tmp_path: Path) -> None:
    made: list[Path] = []
    trees: list[Tree] = []

    async def fill_slowly(into: Path) -> None:
        await anyio.sleep(0.05)
        made.append(into)
        await fill(into)

    async def request() -> None:
        trees.append(await cached_tree(tmp_path, "key", fill_slowly))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(request)

    anyio.run(main)
    assert len(made) == 1
    assert set(trees) == {Tree(tmp_path / "trees/key/tree", tree_digest(tmp_path / "trees/key/tree"))}


def test_cached_tree_changed_on_disk_is_rebuilt(tmp_path: Path) -> None:
    first = anyio.run(cached_tree, tmp_path, "key", fill)
    changes: list[Callable[[Path], object]] = [
        lambda tree: (tree / "a").write_text("b"),
        lambda tree: (tree / "a").unlink(),
        lambda tree: (tree / "more").write_text(""),
        lambda tree: (tree / "a").chmod(0o755),
        lambda tree: os.mkfifo(tree / "pipe"),
        lambda tree: (tree.parent / "seal.json").write_text("{"),
        shutil.rmtree,
    ]
    for change in changes:
        change(first.path)
        assert anyio.run(cached_tree, tmp_path, "key", fill) == first
        assert (first.path / "a").read_text() == "a"
        assert names_in(first.path.parent) == ["seal.json", "tree"]
        assert names_in(tmp_path / "trees") == ["key"]


def test_failed_or_cancelled_fill_leaves_nothing(tmp_path: Path) -> None:
    async def fail(into: Path) -> None:
        await fill(into)
        raise SourceError("no")

    async def hang(into: Path) -> None:
        await fill(into)
        await anyio.sleep_forever()

    async def main() -> None:
        with pytest.raises(SourceError, match="no"):
            await cached_tree(tmp_path, "key", fail)
        with anyio.move_on_after(0.1):
            await cached_tree(tmp_path, "key", hang)
        assert names_in(tmp_path / "trees") == []
        await cached_tree(tmp_path, "key", fill)

    anyio.run(main)


KILLED = """
import sys, anyio
from pathlib import Path
from codetaste.source.tree.store import cached_tree

async def fill(into):
    into.mkdir()
    (into / "half").write_text("")
    print("half", flush=True)
    await anyio.sleep_forever()

anyio.run(cached_tree, Path(sys.argv[1]), "key", fill)
"""


def test_partial_tree_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert names_in(tmp_path / "trees") == [".key.making"]
    tree = anyio.run(cached_tree, tmp_path, "key", fill)
    assert names_in(tree.path) == ["a"]
    assert names_in(tmp_path / "trees") == ["key"]


FULL = """
import sys, anyio
from pathlib import Path
from codetaste.errors import StorageFull
from codetaste.source.origin import GitOrigin
from codetaste.source.checkout import checkout_trees
try:
    anyio.run(checkout_trees, GitOrigin(sys.argv[1], sys.argv[2], sys.argv[2]), Path(sys.argv[3]))
except StorageFull as error:
    print("full:", error)
"""


def test_cached_tree_full_disk_is_reported_and_leaves_nothing(
    tmp_path: Path, require: Callable[..., None]
) -> None:
    from support.source.repositories import make_repository

    made = make_repository(tmp_path / "clone")
    commit = made.commit({b"small": b"x", b"large": os.urandom(2_000_000)})
    cache = tmp_path / "cache"
    cache.mkdir()
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
    script = f'mount -t tmpfs -o size=1m none {cache}; "$@"; ls -A {cache}/trees'
    works = subprocess.run(
        [*mount, f"mount -t tmpfs none {cache}"], capture_output=True, check=False
    ).returncode
    require("unshare", ok=works == 0, reason="a small file system cannot be mounted here")
    command = [sys.executable, "-c", FULL, str(made.path), commit, str(cache)]
    done = subprocess.run([*mount, script, "sh", *command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("full: ")
    assert "No space left" in done.stdout
    assert done.stdout.count("\n") == 1


names = st.binary(min_size=1, max_size=4).filter(
    lambda name: not set(name) & set(b"/\0") and name not in {b".", b".."}
)
files = st.dictionaries(
    names, st.tuples(st.sampled_from(["file", "program", "link"]), st.binary(max_size=20))
)


def expected_digest(entries: dict[bytes, tuple[str, bytes]]) -> str:
    modes = {"file": b"100644", "program": b"100755", "link": b"120000"}
    whole = b"codetaste tree 1\n"
    for name in sorted(entries):
        kind, content = entries[name]
        digest = hashlib.sha256(content).hexdigest().encode()
        whole += b" ".join([modes[kind], str(len(name)).encode(), name, digest]) + b"\n"
    return hashlib.sha256(whole).hexdigest()


@settings(max_examples=60, deadline=None)
@given(files)
def test_digest_depends_on_paths_modes_and_contents(drawn: dict[bytes, tuple[str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entries = {}
        for number, (last, (kind, content)) in enumerate(sorted(drawn.items())):
            name = b"%d/%s" % (number % 2, last)
            path = Path(folder) / os.fsdecode(name)
            path.parent.mkdir(exist_ok=True)
            if kind == "link":
                target = content.replace(b"\0", b"") or b"x"
                path.symlink_to(os.fsdecode(target))
                entries[name] = (kind, target)
            else:
                path.write_bytes(content)
                path.chmod(0o755 if kind == "program" else 0o644)
                entries[name] = (kind, content)
        (Path(folder) / "empty").mkdir()
        assert tree_digest(Path(folder)) == expected_digest(entries)


def test_tree_with_a_pipe_has_no_digest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="'pipe' is neither"):
        tree_digest(tmp_path)
