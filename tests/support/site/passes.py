"""Made-up passes of rule discovery, and the transcript of one."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from codetaste.agent.rejected_rule import RejectedMatch, RejectedRule
from codetaste.orchestration.job import Status
from codetaste.report.discovery.passes import PassRecord
from codetaste.report.ending import ending_of
from codetaste.rules.registration import Direction, RegisteredRule

KEY = "discover/m/o__r-12345678/additive"
PAGE = "discovery/m/o__r-12345678/additive/index.html"
REJECTED = RejectedRule(
    "too-wide",
    "matches_wrong_tree",
    "it must not match in the base code, where it has 2 matches",
    yaml="rules:\n- id: too-wide\n",
    base_count=2,
    golden_count=30,
    matches=(RejectedMatch("base", "pack/a.py", 7, 8, "old(1)\nold(2)"),),
    detailed=True,
)


def rule(name: str, *lines: tuple[str, int], message: str = "says why") -> RegisteredRule:
    body = {"id": name, "message": message, "severity": "INFO", "languages": ["python"], "pattern": "f(...)"}
    return RegisteredRule(name, body, 0, len(lines), frozenset(lines))


def record(direction: Direction = Direction.ADDITIVE, **changes: Any) -> PassRecord:
    known = {
        "system": "m",
        "instance": "o__r-12345678",
        "direction": direction,
        "ending": ending_of(Status.DONE, None, ""),
        "turns": 3,
        "tool_calls": 4,
        "usd": Decimal("0.25"),
        "rules": (rule("new-names", ("pack/a.py", 2), ("pack/a.py", 3), ("pack/b.py", 9)),),
        "rejected": (RejectedRule("a", "overlaps"), RejectedRule("b", "overlaps")),
    }
    return PassRecord(**{**known, **changes})


def write_conversation(run: Path, *texts: str) -> None:
    """Write the transcript of the pass ``KEY``: instructions, a task, and a reply for each further text."""
    system, task, *replies = texts
    lines: list[dict[str, Any]] = [{"model": "m", "system": system}, _message("user", task)]
    for reply in replies:
        lines += [_message("assistant", reply), _message("user", "go on")]
    path = run / "transcripts" / f"{KEY}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}
