"""Archives of images: every layer is searched, deleted files too; those of the base image are left out."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.environment.leak_search.golden import GoldenTraces
from codetaste.environment.leak_search.image import LeakTerms, search_archive
from codetaste.environment.leak_search.layers import search_folder
from codetaste.environment.leak_search.report import CONFIG, LeakReport
from codetaste.environment.leak_search.search import LeakSearch
from codetaste.environment.leak_search.secrets import make_secrets
from codetaste.errors import SandboxError
from support.environment.golden import BASE, GOLDEN, NEW_FILE, Files, as_tar, write_tree
from support.environment.image_archives import docker_archive, layer_id, oci_archive

pytestmark = pytest.mark.anyio
FORMATS = {
    "docker": docker_archive,
    "oci": partial(oci_archive, compressed=False),
    "oci, compressed": partial(oci_archive, compressed=True),
}
ROOT: Files = {"bin/sh": b"#!", "usr/lib/python3/base.py": BASE["forge/heat.py"]}
LEAK: Files = {"usr/lib/python3/new.py": GOLDEN[NEW_FILE]}
DELETED: Files = {"usr/lib/python3/.wh.new.py": b""}


async def pieces(archive: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(archive), size):
        yield archive[at : at + size]


async def search(
    archive: bytes, golden: GoldenTraces, leave_out: Collection[str] = (), size: int = 100_000
) -> LeakReport:
    terms = LeakTerms(golden, make_secrets({"KEY": "q7Xv29fLmPzkW3"}))
    return await search_archive(pieces(archive, size), terms, leave_out=leave_out)


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
async def test_file_that_a_later_layer_deletes_is_found(
    golden: GoldenTraces, make: Callable[[Sequence[Files]], bytes]
) -> None:
    found = await search(make([ROOT, LEAK, DELETED]), golden)
    assert [(leak.layer, leak.path) for leak in found.leaks] == [(layer_id(LEAK), "usr/lib/python3/new.py")]
    assert sorted(found.layers) == sorted(map(layer_id, [ROOT, LEAK, DELETED]))


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
async def test_layers_of_the_base_image_do_not_count(
    golden: GoldenTraces, make: Callable[[Sequence[Files]], bytes]
) -> None:
    found = await search(make([ROOT, LEAK, DELETED]), golden, {layer_id(ROOT), layer_id(LEAK)})
    assert found.is_clean
    assert found.layers == (layer_id(DELETED),)
    assert found.files == 0


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
async def test_clean_image_has_no_hit(golden: GoldenTraces, make: Callable[[Sequence[Files]], bytes]) -> None:
    found = await search(make([ROOT, {f"testbed/{path}": content for path, content in BASE.items()}]), golden)
    assert (found.leaks, found.not_searched) == ((), ())


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
async def test_secrets_in_variables_labels_and_history_are_found(
    golden: GoldenTraces, make: Callable[..., bytes]
) -> None:
    secret = "q7Xv29fLmPzkW3"
    more: dict[str, Any] = {
        "config": {"Env": [f"KEY={secret}"], "Labels": {"note": f"is {secret}"}},
        "history": [{"created_by": f"curl -H 'token: {secret}'"}],
    }
    found = await search(make([ROOT], more=more), golden)
    assert {(leak.layer, leak.path) for leak in found.leaks} == {
        (CONFIG, "config.Env"),
        (CONFIG, "config.Labels.note"),
        (CONFIG, "history.created_by"),
    }


@given(size=st.integers(1, 20_000), names=st.permutations(list(FORMATS)))
async def test_size_of_the_pieces_does_not_matter(size: int, names: list[str], golden: GoldenTraces) -> None:
    found = await search(FORMATS[names[0]]([ROOT, LEAK]), golden, size=max(size, 200))
    assert len(found.leaks) == 1


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
async def test_incomplete_archive_is_an_error(
    golden: GoldenTraces, make: Callable[[Sequence[Files]], bytes]
) -> None:
    archive = make([ROOT, LEAK])
    for cut in (100, len(archive) // 2, len(archive) - 10240):
        with pytest.raises(SandboxError, match="image"):
            await search(archive[:cut], golden)
    with pytest.raises(SandboxError, match="has no layer sha256:"):
        await search(docker_archive([LEAK]).replace(layer_id(LEAK).encode(), layer_id(ROOT).encode()), golden)


async def test_archive_of_something_else_is_an_error(golden: GoldenTraces) -> None:
    with pytest.raises(SandboxError, match="has no config"):
        await search(as_tar({"readme": b"text"}), golden)
    with pytest.raises(SandboxError, match="cannot be read"):
        await search(b"not a tar archive" * 100, golden)
    with pytest.raises(SandboxError, match="zstd"):
        await search(as_tar({"blobs/sha256/x": b"\x28\xb5\x2f\xfd" + bytes(2000)}), golden)
    with pytest.raises(SandboxError, match="damaged"):
        await search(as_tar({"blobs/sha256/x": gzip.compress(as_tar(LEAK))[:40] + b"!" * 2000}), golden)


async def test_search_that_takes_too_long_ends(golden: GoldenTraces) -> None:
    archive = docker_archive([ROOT])
    with pytest.raises(SandboxError, match=r"took more than 0 s"):
        await search_archive(pieces(archive, 10**6), LeakTerms(golden), within_s=0)


def test_folder_of_a_layer_is_searched_without_following_links(golden: GoldenTraces, tmp_path: Path) -> None:
    outside = write_tree(tmp_path / "outside", LEAK)
    layer = write_tree(tmp_path / "layer", {"a/b/copy.py": GOLDEN[NEW_FILE], "empty": b""})
    (layer / "link.py").symlink_to(outside / "usr/lib/python3/new.py")
    (layer / "folder").symlink_to(outside)
    search = LeakSearch(golden)
    search.begin_layer()
    search_folder(search, layer)
    search.end_layer("sha256:1")
    assert [leak.path for leak in search.report().leaks] == ["a/b/copy.py"]
    assert search.report().files == 1
