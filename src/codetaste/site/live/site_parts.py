"""Files of the site by their addresses, also those that are known only when the page above them is read."""

from __future__ import annotations

import posixpath
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.site.html.site_file import SiteFile

_MAX_OPEN = 4
"""So many pages have their parts in memory, as far as these were asked for."""


class SiteFiles:
    """The files of one site. Its methods block and may be called from any thread."""

    def __init__(self, files: Iterable[SiteFile]) -> None:
        self._files: dict[str, SiteFile] = {}
        self._with_parts: defaultdict[str, list[SiteFile]] = defaultdict(list)
        for file in files:
            self._files[file.address] = file
            if file.parts is not None:
                self._with_parts[posixpath.dirname(file.address)].append(file)
        self._open: dict[str, _OpenParts] = {}
        self._lock = threading.Lock()

    def __contains__(self, address: str) -> bool:
        """Whether there is a file with this address, or one whose parts may have it."""
        return address in self._files or posixpath.dirname(address) in self._with_parts

    def content(self, address: str) -> bytes | None:
        """Return the content of the file at ``address``; None if there is none."""
        file = self._files.get(address)
        if file is not None:
            return file.make()
        for owner in self._with_parts.get(posixpath.dirname(address), ()):
            content = self._parts_of(owner).content(address)
            if content is not None:
                return content
        return None

    def _parts_of(self, owner: SiteFile) -> _OpenParts:
        with self._lock:
            found = self._open.pop(owner.address, None) or _OpenParts(owner)
            self._open[owner.address] = found  # the one that was used last is at the end
            while len(self._open) > _MAX_OPEN:
                self._open.pop(next(iter(self._open)))
        return found


class _OpenParts:
    """The parts of one file, made one after the other as far as they are asked for."""

    def __init__(self, owner: SiteFile) -> None:
        self._parts: Iterator[SiteFile] = owner.parts() if owner.parts is not None else iter(())
        self._made: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def content(self, address: str) -> bytes | None:
        with self._lock:
            if address in self._made:
                return self._made[address]
            for part in self._parts:
                self._made[part.address] = part.make()
                if part.address == address:
                    return self._made[address]
        return None
