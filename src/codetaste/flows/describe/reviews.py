"""What people have decided about the descriptions of a benchmark, in ``reviews.jsonl`` in its folder.

One line a decision, oldest first; the last one about a description holds, as long as the description is the
text that was decided on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import REVIEWS_FILE, Track
from codetaste.core.jsonl import JsonlFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.benchmark.instance import Instance


class Verdict(StrEnum):
    """A decision about a description."""

    ACCEPTED = "accepted"
    EDITED = "edited"
    """The description is a person's own text. No run replaces it."""
    REJECTED = "rejected"
    """No run uses it, and the next one describes the instance anew."""


@dataclass(frozen=True, slots=True)
class Review:
    """One decision.

    Attributes:
        instance: id of the instance.
        track: the description.
        verdict: the decision.
        digest: SHA-256 of the text that was decided on; of an edited one the new text.
        by: who decided.
        at: when, UTC, ISO 8601.
        comment: why, "" for no reason; a model that describes the instance anew reads it.
    """

    instance: str
    track: Track
    verdict: Verdict
    digest: str
    by: str
    at: str
    comment: str = ""


class Reviews:
    """The decisions about the descriptions of one benchmark."""

    def __init__(self, reviews: Iterable[Review] = ()) -> None:
        self._last: dict[tuple[str, Track], Review] = {}
        self._rejected: dict[tuple[str, Track], dict[str, Review]] = {}
        for review in reviews:
            key = (review.instance, review.track)
            self._last[key] = review
            rejected = self._rejected.setdefault(key, {})
            rejected.pop(review.digest, None)
            if review.verdict is Verdict.REJECTED:
                rejected[review.digest] = review

    def of(self, instance: Instance, track: Track, text: str) -> Review | None:
        """Return the decision about the description ``text``; None if there is none about this text."""
        last = self._last.get((instance.id, track))
        return last if last is not None and last.digest == text_digest(text) else None

    def last_verdict(self, instance: Instance, track: Track) -> Verdict | None:
        """Return the last decision about a description of ``instance``, whatever text it was about."""
        last = self._last.get((instance.id, track))
        return None if last is None else last.verdict

    def rejections(self, instance: Instance, track: Track) -> tuple[Review, ...]:
        """Return all rejections of descriptions of ``instance``, oldest first, earlier texts included."""
        return tuple(self._rejected.get((instance.id, track), {}).values())


def text_digest(text: str) -> str:
    """Return the SHA-256 of a description; white space around it does not count."""
    return sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()


def reviews_path(root: Path) -> Path:
    """Return the path of the decisions about the benchmark in the folder ``root``."""
    return root / REVIEWS_FILE


def read_reviews(*roots: Path) -> Reviews:
    """Read the decisions about the benchmarks in the folders ``roots``. Blocking.

    Raises:
        JournalError: a file cannot be read, or a line has wrong values; it names file and line.
    """
    found: list[Review] = []
    for root in roots:
        JsonlFile(reviews_path(root)).read_into(lambda line: found.append(_review_from_json(line)))
    return Reviews(sorted(found, key=lambda review: review.at))


async def write_review(root: Path, review: Review) -> None:
    """Add a decision; it is on disk on return.

    Raises:
        StorageFull: no space is left.
        JournalError: the file cannot be written.
    """
    await JsonlFile(reviews_path(root)).append([asdict(review)])


def new_review(instance: Instance, track: Track, verdict: Verdict, text: str, by: str) -> Review:
    """Return a decision of now about the description ``text``."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Review(instance.id, track, verdict, text_digest(text), by, at)


def _review_from_json(line: dict[str, Any]) -> Review:
    texts = {name: line[name] for name in ("instance", "digest", "by", "at")}
    texts["comment"] = line.get("comment", "")
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("a text is expected")
    return Review(track=Track(line["track"]), verdict=Verdict(line["verdict"]), **texts)
