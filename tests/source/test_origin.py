"""Parsing the ``origin`` column of instances.csv."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.source.origin import GitOrigin, Origin, SdistOrigin, parse_origin

BASE, GOLDEN = "a" * 64, "b" * 64


def parse(text: str, repos: Path | None = None, folder: Path | None = None) -> Origin:
    return parse_origin(text, owner="Own", repo="re.po", base=BASE, golden=GOLDEN, repos=repos, folder=folder)


def test_empty_origin_is_a_local_clone_or_github(tmp_path: Path) -> None:
    assert parse("") == GitOrigin("https://github.com/Own/re.po", BASE, GOLDEN)
    assert parse("", tmp_path) == GitOrigin("https://github.com/Own/re.po", BASE, GOLDEN)
    (tmp_path / "Own/re.po.git").mkdir(parents=True)
    assert parse("", tmp_path) == GitOrigin(f"{tmp_path}/Own/re.po.git", BASE, GOLDEN)
    (tmp_path / "Own/re.po").symlink_to("re.po.git")
    assert parse("", tmp_path) == GitOrigin(f"{tmp_path}/Own/re.po", BASE, GOLDEN)


def test_origin_may_be_an_address_or_a_path_relative_to_the_benchmark(tmp_path: Path) -> None:
    for address in (
        "https://example.org/x.git",
        "ssh://git@example.org/x",
        "git@example.org:x/y.git",
        "file:///x",
    ):
        assert parse(address, folder=tmp_path) == GitOrigin(address, BASE, GOLDEN)
    assert parse("clones/x", folder=tmp_path) == GitOrigin(f"{tmp_path}/clones/x", BASE, GOLDEN)
    assert parse("/abs/x", folder=tmp_path) == GitOrigin("/abs/x", BASE, GOLDEN)


def test_origin_may_be_two_releases_of_a_package() -> None:
    assert parse("sdist:pluggy/0.13.1/1.0.0") == SdistOrigin("pluggy", "0.13.1", "1.0.0", BASE, GOLDEN)


@pytest.mark.parametrize(
    "text",
    [
        "sdist:",
        "sdist:pluggy/1.0",
        "sdist:../x/1/2",
        "sdist:a/1/2/3",
        "sdist:a/ 1/2",
        "-x",
        "ext::sh -c x",
        "a\0b",
    ],
)
def test_invalid_origin_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="expected"):
        parse(text)


def test_releases_need_sha256_hashes() -> None:
    with pytest.raises(SourceError, match="64 lower-case hex digits"):
        parse_origin("sdist:a/1/2", owner="o", repo="r", base="a" * 40, golden=GOLDEN)
