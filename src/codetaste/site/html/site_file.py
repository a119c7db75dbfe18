"""``SiteFile``: a page, or data beside it, which is made when it is written or asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.site.html.compact_json import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class SiteFile:
    """One file of the site.

    Attributes:
        address: its path below the site's folder.
        make: returns its content. It reads files of runs when it is called, not before, and never raises for
            what is in them: a page says what could not be read.
        parts: yields further files in the folder of ``address``, as many as what is read needs, such as
            pieces of a long transcript; None if there are none. Each is made before the next is asked for.
    """

    address: str
    make: Callable[[], bytes]
    parts: Callable[[], Iterator[SiteFile]] | None = None

    def with_parts(self) -> Iterator[SiteFile]:
        """Yield the file and its parts."""
        yield self
        if self.parts is not None:
            yield from self.parts()


def data_script(name: str, value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return a script that hands ``value`` to the page's own script as ``codetaste.data[name]``.

    A page that was opened from a file may load scripts, but no JSON.
    """
    # "<" is spelt out so that the text has no meaning as HTML, wherever it ends up.
    texts = (compact_json(each).replace(b"<", b"\\u003c") for each in (name, value))
    return b"codetaste.receive(%b,%b);\n" % tuple(texts)
