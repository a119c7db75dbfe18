"""The layers of an image: from the archive that ``docker save`` writes, or from the engine's folders.

The archive has the format of Docker or of OCI; its layers are tar archives, compressed with gzip or not. It
is read as a stream, since an image has gigabytes. Docker's own format names a layer only after its content;
what is found in a layer that does not count is dropped at its end.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.core.tar import DamagedTar, MemberKind, TarMember, TarReader
from codetaste.environment.leak_search.content import HEAD_BYTES, Content, ContentWriter
from codetaste.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from codetaste.environment.leak_search.search import LeakSearch

MAX_FILE_BYTES = 4 * 1024**3
_MAX_JSON_BYTES = 32 * 1024**2
_INFLATE_BYTES = 1024**2
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BLOBS = b"blobs/sha256/"


class ImageArchive:
    """Searches an archive that is fed in pieces.

    Args:
        search: receives the files and the config.
        leave_out: ids (``sha256:…`` of the uncompressed archive) of layers that do not count.
    """

    def __init__(self, search: LeakSearch, leave_out: Collection[str] = ()) -> None:
        self._search, self._leave_out = search, frozenset(leave_out)
        self._reader = TarReader(self)
        self._open: _Json | _Layer | None = None
        self._head = b""
        self._left = 0
        self._name = b""
        self._found: set[str] = set()
        self._expected: set[str] = set()

    def feed(self, piece: bytes) -> None:
        """Search the next piece; blocking.

        Raises:
            SandboxError: it is not the archive of an image.
        """
        try:
            self._reader.feed(piece)
        except DamagedTar as error:
            raise SandboxError(f"the archive of an image cannot be read: {error}") from error

    def finish(self) -> None:
        """Check that all layers were there.

        Raises:
            SandboxError: one is missing.
        """
        if not self._reader.ended:
            raise SandboxError("the archive of an image ends too early")
        if not self._expected:
            raise SandboxError("the archive of an image has no config")
        missing = self._expected - self._found
        if missing:
            raise SandboxError(f"the archive of an image has no layer {min(missing)}")

    def member(self, member: TarMember) -> bool:
        """Begin a file of the archive."""
        known = f"sha256:{member.name.removeprefix(_BLOBS).decode('ascii', 'replace')}"
        if member.kind is not MemberKind.FILE or not member.size:
            return False
        if known in self._leave_out:  # an uncompressed layer of OCI is named by its id
            self._found.add(known)
            return False
        self._name, self._head, self._left, self._open = member.name, b"", member.size, None
        return True

    def content(self, chunk: bytes) -> None:
        """Receive a piece of it; the first ones decide what it is."""
        self._left -= len(chunk)
        if self._open is None:
            self._head += chunk
            if len(self._head) < HEAD_BYTES and self._left:
                return
            chunk, self._head = self._head, b""
            self._open = self._begin(chunk)
        self._open.write(chunk)

    def end(self) -> None:
        """End it."""
        match self._open:
            case _Layer() as layer:
                identity = layer.finish()
                self._found.add(identity)
                self._search.end_layer("" if identity in self._leave_out else identity)
            case _Json() as text:
                self._end_json(text)
        self._open = None

    def _begin(self, head: bytes) -> _Json | _Layer:
        if head.startswith(_ZSTD):
            raise SandboxError(
                "the archive of an image has a layer compressed with zstd, which cannot be read"
            )
        if head.lstrip()[:1] in {b"{", b"["}:
            return _Json()
        if head.startswith(_GZIP) or head[257:262] == b"ustar" or not head[:HEAD_BYTES].strip(b"\0"):
            self._search.begin_layer()
            return _Layer(self._search, compressed=head.startswith(_GZIP))
        return _Json()  # a small text, such as a version

    def _end_json(self, text: _Json) -> None:
        try:
            data = json.loads(text.content)
        except (ValueError, RecursionError):
            return
        if isinstance(data, dict) and isinstance(data.get("rootfs"), dict):
            self._expected.update(map(str, data["rootfs"].get("diff_ids") or ()))
        search_config(self._search, data)


def search_config(search: LeakSearch, config: object, key: str = "") -> None:
    """Search every text of an image's config; ``key`` is where it is."""
    match config:
        case str():
            search.search_text(key, config)
        case dict():
            for name, value in config.items():
                search.search_text(key, str(name))
                search_config(search, value, f"{key}.{name}" if key else str(name))
        case list():
            for value in config:
                search_config(search, value, key)


@dataclass(slots=True)
class _Json:
    content: bytearray = field(default_factory=bytearray)

    def write(self, piece: bytes) -> None:
        if len(self.content) <= _MAX_JSON_BYTES:
            self.content += piece


class _Layer:
    """Searches one layer; a ``TarHandler`` of its archive."""

    def __init__(self, search: LeakSearch, *, compressed: bool) -> None:
        self._search = search
        self._reader = TarReader(self)
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16) if compressed else None
        self._digest = hashlib.sha256()
        self._path = b""
        self._writer: ContentWriter | None = None

    def write(self, piece: bytes) -> None:
        if self._inflater is None:
            self._feed(piece)
            return
        try:
            while piece:
                self._feed(self._inflater.decompress(piece, _INFLATE_BYTES))
                piece = self._inflater.unconsumed_tail
                if self._inflater.eof and self._inflater.unused_data.strip(b"\0"):
                    piece = self._inflater.unused_data
                    self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        except zlib.error as error:
            raise SandboxError("a layer of an image is damaged") from error

    def finish(self) -> str:
        """Return the layer's id."""
        if not self._reader.ended:
            raise SandboxError("a layer of an image is incomplete")
        return f"sha256:{self._digest.hexdigest()}"

    def _feed(self, data: bytes) -> None:
        self._digest.update(data)
        if data:
            self._reader.feed(data)

    def member(self, member: TarMember) -> bool:
        if member.kind is not MemberKind.FILE or not member.size:
            return False
        self._path = member.name.removeprefix(b"./").lstrip(b"/")
        if member.size > MAX_FILE_BYTES:
            self._search.skip(self._path, f"has more than {MAX_FILE_BYTES:,} bytes")
            return False
        self._writer = ContentWriter(member.size)
        return True

    def content(self, chunk: bytes) -> None:
        assert self._writer is not None  # noqa: S101 - ``member`` has made it
        self._writer.write(chunk)

    def end(self) -> None:
        assert self._writer is not None  # noqa: S101 - ``member`` has made it
        content, self._writer = self._writer.finish(), None
        self._search.search_file(self._path, content)


def search_folder(search: LeakSearch, folder: Path) -> None:
    """Search all regular files below ``folder``, which holds an unpacked layer; blocking.

    Raises:
        SandboxError: a file cannot be read.
    """
    root = os.fsencode(folder)
    try:
        for path in _files(root):
            content = _open_content(b"%s/%s" % (root, path))
            if content is not None:
                search.search_file(path, content)
    except OSError as error:
        raise SandboxError(f"a layer of an image cannot be read: {error}") from error


def _open_content(path: bytes) -> Content | None:
    """Open a regular file that has content; None for others."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        file.close()
        return None
    return Content(status.st_size, file.read(HEAD_BYTES), file)


def _files(root: bytes) -> Iterator[bytes]:
    """Yield the path of each regular file below ``root``; links are not followed."""
    folders = [b""]
    while folders:
        folder = folders.pop()
        with os.scandir(b"%s/%s" % (root, folder)) as entries:
            for entry in entries:
                path = b"%s/%s" % (folder, entry.name) if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
