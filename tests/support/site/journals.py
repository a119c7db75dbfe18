"""Journals of runs, written line by line as a run would."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codetaste.site.live.followed_run import FollowedRun, RunView

HEADER = {"event": "journal", "format": 2}
SESSION = {"event": "session", "pid": 7, "host": "here", "limits": ["2.0", None, 60.0, None]}


def write_journal(folder: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """Write a journal from its beginning."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "journal.jsonl").write_text("")
    return append_journal(folder, [HEADER, *lines])


def append_journal(folder: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """Add lines to a journal."""
    with (folder / "journal.jsonl").open("a") as file:
        file.writelines(json.dumps({**line, "t": line.get("t", time.time())}) + "\n" for line in lines)
    return folder


def job(key: str, *needs: str, lane: str = "m") -> dict[str, Any]:
    return {"event": "job", "key": key, "title": key, "lane": lane, "needs": list(needs), "path": [key]}


def started(key: str) -> dict[str, Any]:
    return {"event": "started", "key": key, "attempt": 1}


def ended(key: str, status: str = "done", **more: Any) -> dict[str, Any]:
    return {"event": "ended", "key": key, "fingerprint": "f", "status": status, **more}


def reserved(key: str, call: str, usd: str) -> dict[str, Any]:
    line = {"event": "reserved", "call": call, "key": key, "fingerprint": "f", "effect": "turn 1"}
    return {**line, "path": [key], "usd": usd, "tokens": 900, "note": {"model": "m"}}


def settled(call: str, usd: str) -> dict[str, Any]:
    return {"event": "settled", "call": call, "usd": usd, "tokens": 90}


def look(run: FollowedRun, version: str = "") -> RunView:
    """Read the journal of a run on if it is time for that, and return what has changed since ``version``."""
    run.poll()
    return run.view(version)
