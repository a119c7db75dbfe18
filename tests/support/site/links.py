"""Links of a written site, for tests that follow all of them."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"} and value is not None:
                self.targets.append(value)
            if name == "id" and value:
                self.ids.append(value)
            if name.startswith("on") or name == "style":
                self.scripts.append(f"{tag} {name}")


def broken_links(folder: Path) -> Iterator[str]:
    """Yield every link of a page to a file that does not exist, or out of the site, and every repeated id."""
    for path in sorted(folder.rglob("*.html")):
        page = read_page(path)
        name = path.relative_to(folder).as_posix()
        yield from (f"{name}: {each}" for each in page.scripts)
        yield from (f"{name}: id {each} twice" for each in set(page.ids) if page.ids.count(each) > 1)
        for target in page.targets:
            address = urlsplit(target)
            if address.scheme or address.netloc:
                yield f"{name}: leads to {target}"
            elif address.path and not (path.parent / unquote(address.path)).is_file():
                yield f"{name}: no file {target}"
            elif name.startswith("trials/"):
                continue  # lines of patches are places that a script makes
            elif not address.path and address.fragment and unquote(address.fragment) not in page.ids:
                yield f"{name}: no place {target}"


def read_page(path: Path) -> _Page:
    """Parse a page."""
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page
