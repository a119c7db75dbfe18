"""What the rule agent reads about its candidates (CodeTaste A.3), and the lines of R that it may see."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.rules.verdict import Direction, times

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.rules.verdict import Verdict, Witness

MAX_WITNESS_LINES = 12
MAX_WITNESS_CHARS = 1_200


def show_witnesses(direction: Direction, verdicts: Iterable[Verdict], base_tree: Path) -> tuple[Verdict, ...]:
    """Add the text of additive witnesses, which lie in R; reductive ones lie in R∘X* and stay without.

    Blocking: call it in a thread.
    """
    if direction is not Direction.ADDITIVE:
        return tuple(verdicts)
    return tuple(
        replace(v, witness=replace(v.witness, text=_text(base_tree, v.witness))) if v.witness else v
        for v in verdicts
    )


def _text(tree: Path, witness: Witness) -> str:
    """The first lines of a witness; "" when the file cannot be read or a link leads out of the tree."""
    path = tree / witness.path
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(tree)):
        return ""
    try:
        lines = path.read_bytes().split(b"\n")[witness.start_line - 1 : witness.end_line]
    except OSError:
        return ""
    shown = b"\n".join(lines[:MAX_WITNESS_LINES]).decode("utf-8", "replace")[:MAX_WITNESS_CHARS]
    return shown if len(lines) <= MAX_WITNESS_LINES and len(shown) < MAX_WITNESS_CHARS else shown + "\n…"


def render(verdict: Verdict) -> str:
    """Return a short text about one verdict, for a model to act on."""
    base, refactored = _count(verdict.base_count), _count(verdict.golden_count)
    counts = f"{base} in the base code, {refactored} in the refactored code"
    if verdict.accepted:
        return f"{verdict.rule_id}: registered ({counts})"
    text = f"{verdict.rule_id}: rejected ({counts}): {verdict.reason}"
    if verdict.error:
        text += f": {verdict.error}"
    if verdict.witness:
        witness = verdict.witness
        path = witness.path.encode("utf-8", "replace").decode()
        text += f"\n  exempt for example {path}, lines {witness.start_line} to {witness.end_line}"
        text += "".join(f"\n    | {line}" for line in witness.text.split("\n") if witness.text)
    return text


def _count(count: int | None) -> str:
    return "not counted" if count is None else times(count)
