"""Files of a live site: made when they are asked for, parts too, each once."""

from __future__ import annotations

from collections.abc import Iterator

from codetaste.site.html.site_file import SiteFile
from codetaste.site.live.site_parts import SiteFiles


def make_files(made: list[str]) -> SiteFiles:
    """Return files that note when they are made."""

    def file(address: str) -> SiteFile:
        def make() -> bytes:
            made.append(address)
            return address.encode()

        return SiteFile(address, make)

    def parts() -> Iterator[SiteFile]:
        yield from (file(f"a/part-{number}.js") for number in range(3))

    return SiteFiles([file("index.html"), SiteFile("a/index.html", file("a/index.html").make, parts)])


def test_files_are_made_when_they_are_needed() -> None:
    made: list[str] = []
    files = make_files(made)
    assert made == []
    assert files.content("index.html") == b"index.html"
    assert made == ["index.html"]


def test_parts_are_made_once_and_only_as_far_as_needed() -> None:
    made: list[str] = []
    files = make_files(made)
    assert files.content("a/part-1.js") == b"a/part-1.js"
    assert made == ["a/part-0.js", "a/part-1.js"]
    assert files.content("a/part-0.js") == b"a/part-0.js"
    assert files.content("a/part-2.js") == b"a/part-2.js"
    assert made == ["a/part-0.js", "a/part-1.js", "a/part-2.js"]


def test_other_addresses_have_no_file() -> None:
    files = make_files([])
    for address in ("a/part-9.js", "b/part-0.js", "part-0.js", "", "a", "a/../index.html"):
        assert files.content(address) is None
