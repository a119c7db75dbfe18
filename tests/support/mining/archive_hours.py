"""Made-up hours of GH Archive: of realistic size, shape and dirt, and what a reader must find in them."""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.mining.archive_events import (
    MergedChange,
    event_of_2013,
    event_of_2023,
    event_of_2026,
    other_event,
)

_ERAS = {2013: event_of_2013, 2023: event_of_2023, 2026: event_of_2026}
_SUBJECTS = (
    "Refactor the parser into modules",
    "Fix a crash in the reader",
    "Reorganize packages",
    "Bump dependency",
    "Deduplicate the retry code, rename helpers",
    "Add a feature",
    "Update README",
)
_TEXT = "the module of a widget is moved because two callers need it and tests cover each case in detail"


@dataclass(frozen=True, slots=True)
class HourShape:
    """How many events an hour has, and the shares among them.

    Attributes:
        events: lines of the hour.
        pull_requests: share of events of pull requests; two fifths of them are merges.
        era: 2013, 2023 or 2026.
        dirt: share of lines that are broken, foreign or of wrong types.
    """

    events: int = 60_000
    pull_requests: float = 0.1
    era: int = 2023
    dirt: float = 0.0005


@dataclass(frozen=True, slots=True)
class MadeHour:
    """A written hour: its file, its merged pull requests, and how many lines are unusable."""

    path: Path
    changes: tuple[MergedChange, ...]
    broken: int


def made_change(random_: random.Random, number: int) -> MergedChange:
    """Return a pull request with a text of realistic length."""
    body = " ".join(random_.choices(_TEXT.split(), k=random_.choice((5, 20, 60, 200))))
    return MergedChange(
        repository=f"owner{random_.randrange(3000)}/project{random_.randrange(5)}",
        number=number,
        title=random_.choice(_SUBJECTS),
        body=body,
        merged=random_.random() < 0.8,
        golden=f"{random_.getrandbits(160):040x}",
        files=int(random_.paretovariate(0.7)),
        additions=int(random_.paretovariate(0.5)) % 10**6,
        deletions=int(random_.paretovariate(0.5)) % 10**6,
        stars=int(random_.paretovariate(0.4)) % 10**5,
    )


def dirty_lines() -> tuple[bytes, ...]:
    """Return lines that no reader can use: torn, foreign, of wrong types."""
    event = event_of_2023(MergedChange())
    wrong_type = json.loads(json.dumps(event))
    wrong_type["payload"]["pull_request"]["changed_files"] = "many"
    no_payload = {**event, "payload": [1, 2]}
    return (
        _line(event)[:900],
        b'{"type":"PullRequestEvent","payload":',
        b'["PullRequestEvent"]',
        b"<html>502 Bad Gateway</html>",
        _line(wrong_type),
        _line(no_payload),
    )


def write_made_hour(path: Path, shape: HourShape = HourShape(), seed: int = 0) -> MadeHour:
    """Write an hour, gzipped as the archive's are; the same ``seed`` makes the same hour."""
    random_ = random.Random(seed)
    dirt, make = dirty_lines(), _ERAS[shape.era]
    changes, broken = [], 0
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        for number in range(shape.events):
            kind = random_.random()
            if kind < shape.dirt:
                line = random_.choice(dirt)
                broken += 1
            elif kind < shape.dirt + shape.pull_requests:
                change = made_change(random_, number)
                if random_.random() < 0.5:
                    line = _line(_opened(change, make(replace(change, merged=False))))
                else:
                    line = _line(make(change))
                    changes += [change] if change.merged else []
            else:
                owner = f"owner{random_.randrange(30_000)}/project{random_.randrange(5)}"
                line = _line(other_event(random_.randrange(10**9), owner))
            file.write(compressor.compress(line + b"\n"))
        file.write(compressor.flush())
    return MadeHour(path, tuple(changes), broken)


def _opened(change: MergedChange, event: dict[str, Any]) -> dict[str, Any]:
    event["payload"]["action"] = "opened"
    return event


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
