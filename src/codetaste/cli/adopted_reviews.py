"""Decisions about descriptions that are adopted into a benchmark: they are honoured, and copied."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.assembly.products import Part, with_note
from codetaste.benchmark.layout import Track, description_path
from codetaste.core.files import read_text_file
from codetaste.core.jsonl import JsonlFile
from codetaste.flows.describe.reviews import Verdict, read_reviews, reviews_path

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from codetaste.assembly.products import InstanceProducts, ProductFolder
    from codetaste.flows.describe.reviews import Review


def without_reviewed(into: Path, products: Sequence[InstanceProducts]) -> list[InstanceProducts]:
    """Return ``products`` without descriptions where the benchmark has accepted or edited ones; blocking.

    Raises:
        JournalError: the decisions about the benchmark cannot be read.
    """
    reviews, found = read_reviews(into), []
    for each in products:
        parts, decided = dict(each.parts), None
        for track in Track:
            path = description_path(into, each.instance, track)
            text, new = _read(path), _read(each.files.get(path.relative_to(into).as_posix()))
            review = None if text is None or text == new else reviews.of(each.instance, track, text)
            if review is not None and review.verdict is not Verdict.REJECTED:
                decided = review
        if decided is None or Part.DESCRIPTIONS not in parts:
            found.append(each)
            continue
        del parts[Part.DESCRIPTIONS]
        note = f"descriptions stay: {decided.by} {decided.verdict} the {decided.track} one"
        found.append(with_note(replace(each, parts=parts), note))
    return found


def find_rejected(
    into: Path, folders: Sequence[ProductFolder], products: Sequence[InstanceProducts]
) -> dict[str, tuple[str, ...]]:
    """Return why instances have a description that is rejected, by their ids; blocking.

    Raises:
        JournalError: decisions about the benchmark or a folder of the run cannot be read.
    """
    reviews = read_reviews(into, *(each.root for each in folders))
    found: dict[str, tuple[str, ...]] = {}
    for each in products:
        for track in Track:
            path = description_path(into, each.instance, track)
            text = _read(each.files.get(path.relative_to(into).as_posix(), path))
            review = None if text is None else reviews.of(each.instance, track, text)
            if review is not None and review.verdict is Verdict.REJECTED:
                found[each.instance.id] = (*found.get(each.instance.id, ()), _reason(review))
    return found


async def copy_reviews(into: Path, folders: Sequence[ProductFolder], instances: Collection[str]) -> None:
    """Add the decisions about ``instances`` in the run's folders to those about the benchmark.

    Raises:
        StorageFull: no space is left.
        JournalError: decisions cannot be read or written.
    """
    target = JsonlFile(reviews_path(into))

    def missing() -> list[dict[str, object]]:
        there = list(target.read())
        lines = (line for each in folders for line in JsonlFile(reviews_path(each.root)).read())
        return [line for line in lines if line.get("instance") in instances and line not in there]

    if lines := await to_thread.run_sync(missing):
        await target.append(lines)


def _reason(review: Review) -> str:
    comment = f": {review.comment}" if review.comment else ""
    return f"{review.by} rejected its {review.track} description{comment}"


def _read(path: Path | None) -> str | None:
    """Return the text of a description, None where there is none that can be read."""
    try:
        return None if path is None else read_text_file(path)
    except (OSError, UnicodeDecodeError):
        return None
