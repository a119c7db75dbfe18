"""Write a site to a folder or to a zip archive; a reader never sees half of it."""

from __future__ import annotations

import gc
import json
import os
import secrets
import zipfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.core.files import remove_tree, storage_error
from codetaste.errors import ConfigError, JournalError
from codetaste.results.roots import check_outside
from codetaste.site.build import open_site, site_blocks
from codetaste.site.output.redact import Redactions, redact_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import BaseContext

    from codetaste.results.read import RunResults
    from codetaste.site.html.site_file import SiteFile
    from codetaste.site.site import Site

MARKER = "codetaste-site.json"
"""The file by which a folder is known to be a site, so that it may be replaced."""
_FORMAT = 1
_ZIP = ".zip"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files in an archive, so that equal sites are equal archives."""
_BLOCK = 32
"""So many files of trials in a row are written by one process: neighbours share what they read."""
_MIN_TRIALS_OF_SHARES = 150
"""A second process needs as long to start as the pages of this many trials take."""


@dataclass(frozen=True, slots=True)
class WrittenSite:
    """What was written.

    Attributes:
        index: the page to open, or the archive.
        files: the number of files.
        redactions: what was removed; empty without redaction.
    """

    index: Path
    files: int
    redactions: Redactions


class _Work:
    """What the processes that write a site have in common; set in each."""

    site: Site
    folder: Path
    next_block: Any
    """The number of the next block that no process has taken yet, a value of multiprocessing."""

    @classmethod
    def share(cls, site: Site, folder: Path, next_block: Any) -> None:  # noqa: ANN401
        """Set what this process works on."""
        cls.site, cls.folder, cls.next_block = site, folder, next_block

    @classmethod
    def take_block(cls) -> int:
        """Return the number of a block and take it."""
        with cls.next_block.get_lock():
            number: int = cls.next_block.value
            cls.next_block.value = number + 1
        return number


def write_site(results: RunResults, target: Path, title: str, *, redact: bool = False) -> WrittenSite:
    """Write every file of a site beside ``target``, then put it in its place. Blocking.

    If ``target`` is a link, the link stays and what it leads to is replaced.

    Args:
        results: what the site shows.
        target: a folder that does not exist, is empty or is a site; or the path of a zip archive.
        title: of the site.
        redact: whether what looks like a key is removed.

    Raises:
        ConfigError: the target exists and is no site, is in a run, or cannot be made.
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    check_target(target)
    place = Path(os.path.realpath(target))
    check_outside(target, results.roots, "-o")
    site = replace(open_site(results, title), redacted=redact)
    folder = place.parent / f".{place.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(f"-o: {target} cannot be created: {error.strerror}") from None
    try:
        written, redactions = _write_all(site, folder)
        _put_in_place(folder, place)
    except OSError as error:
        raise storage_error(error, target, JournalError) from None
    finally:
        remove_tree(folder)
    index = target if target.suffix == _ZIP else target / "index.html"
    return WrittenSite(index, written, redactions)


def check_target(target: Path) -> None:
    """Check that a site may be written to ``target``.

    Raises:
        ConfigError: there is something else than a site.
    """
    if not os.path.lexists(target):
        return
    if target.suffix == _ZIP:
        if not target.is_file() or not zipfile.is_zipfile(target):
            raise ConfigError(f"-o: {target} exists and is no archive: name another one, or remove it")
        with zipfile.ZipFile(target) as archive:
            if not any(name.endswith(f"/{MARKER}") for name in archive.namelist()):
                raise ConfigError(f"-o: {target} exists and is no site: name another one, or remove it")
    elif not target.is_dir():
        raise ConfigError(f"-o: {target} exists and is no folder: name another one, or remove it")
    elif any(target.iterdir()) and not (target / MARKER).is_file():
        raise ConfigError(f"-o: {target} has files and is no site: name another folder, or empty this one")


def _write_all(site: Site, folder: Path) -> tuple[int, Redactions]:
    context = _process_context()
    next_block = context.Value("q", 0)
    _Work.share(site, folder, next_block)
    if len(site.trials) < _MIN_TRIALS_OF_SHARES or len(os.sched_getaffinity(0)) == 1:
        number, redactions = _write_blocks()
    else:
        # Without what the site has computed: a measure that is sent to a process is another measure.
        shared = replace(site), folder, next_block
        with ProcessPoolExecutor(1, context, _Work.share, shared) as pool:
            other = pool.submit(_write_blocks)
            number, redactions = _write_blocks()
            others, of_others = other.result()
        number, redactions = number + others, redactions + of_others
    marker = {"format": _FORMAT, "title": site.title, "files": number, "redacted": site.redacted}
    (folder / MARKER).write_text(json.dumps(marker) + "\n")
    return number + 1, redactions


def _process_context() -> BaseContext:
    """Return how the second process starts: forked, unless another thread of this one could hold a lock."""
    try:
        threads = [*Path("/proc/self/task").iterdir()]  # also those of libraries that compute
    except OSError:
        threads = []
    return get_context("fork" if len(threads) == 1 else "spawn")


def _write_blocks() -> tuple[int, Redactions]:
    """Write the blocks that this process takes; returns the number of files and what was removed."""
    gc.freeze()
    gc.disable()  # what is made has no cycles, and looking for them takes a quarter of the time
    try:
        return _write_taken(_Work.site, _Work.folder)
    finally:
        gc.enable()
        gc.unfreeze()


def _write_taken(site: Site, folder: Path) -> tuple[int, Redactions]:
    number, redactions = 0, Redactions()
    made: set[str] = set()
    for file in _taken_files(site):
        content = file.make()
        if site.redacted:
            content, found = redact_file(file.address, content)
            redactions += found
        path = os.path.join(folder, file.address)  # noqa: PTH118 - thousands of files
        parent = os.path.dirname(path)  # noqa: PTH120
        if parent not in made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            made.add(parent)
        with open(path, "wb") as opened:  # noqa: PTH123
            opened.write(content)
        number += 1
    return number, redactions


def _taken_files(site: Site) -> Iterator[SiteFile]:
    mine = _Work.take_block()
    for number, block in enumerate(site_blocks(site, _BLOCK)):
        if number == mine:
            for file in block:
                yield from file.with_parts()
            mine = _Work.take_block()


def _put_in_place(folder: Path, target: Path) -> None:
    if target.suffix == _ZIP:
        packed = folder.with_name(f"{folder.name}{_ZIP}")
        try:
            _pack(folder, packed, target.stem)
            packed.replace(target)
        finally:
            packed.unlink(missing_ok=True)
    elif target.exists():
        old = folder.with_name(f"{folder.name}.old")
        target.rename(old)
        folder.rename(target)
        remove_tree(old)
    else:
        folder.rename(target)


def _pack(folder: Path, archive: Path, name: str) -> None:
    """Write all files of a folder into an archive, below one folder ``name``."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(f"{name}/{path.relative_to(folder).as_posix()}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with path.open("rb") as source, opened.open(entry, "w") as packed:
                while part := source.read(1 << 20):
                    packed.write(part)
