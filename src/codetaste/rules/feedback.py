"""Feedback to the rule agent about its candidates (CodeTaste A.3), with the lines of R that it may see."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.rules.registration import Direction, format_match_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.rules.registration import CandidateResult

MAX_IDS = 60
"""Ids of registered rules in one answer; the latest are shown."""
MAX_NAMES = 30
MAX_FILES = 15
MAX_WITNESS_LINES = 12
MAX_WITNESS_CHARS = 1_200


def add_witness_text(
    direction: Direction, results: Iterable[CandidateResult], base_tree: Path
) -> tuple[CandidateResult, ...]:
    """Add the text of additive witnesses, which are in R; reductive ones are in R∘X* and get no text."""
    if direction is not Direction.ADDITIVE:
        return tuple(results)
    return tuple(
        replace(
            result,
            witnesses=tuple(
                replace(each, text=read_excerpt(base_tree, each.path, each.start_line, each.end_line))
                for each in result.witnesses
            ),
        )
        for result in results
    )


def read_excerpt(tree: Path, name: str, start_line: int, end_line: int) -> str:
    """Return the first of these lines; "" if the file is unreadable or a link leads out of the tree."""
    path = tree / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(tree)):
        return ""
    try:
        lines = path.read_bytes().split(b"\n")[start_line - 1 : end_line]
    except OSError:
        return ""
    shown = b"\n".join(lines[:MAX_WITNESS_LINES]).decode("utf-8", "replace")[:MAX_WITNESS_CHARS]
    return shown if len(lines) <= MAX_WITNESS_LINES and len(shown) < MAX_WITNESS_CHARS else shown + "\n…"


def render_candidate_result(result: CandidateResult) -> str:
    """Return a short text for the model about one candidate."""
    base, refactored = (
        "not counted" if count is None else format_match_count(count)
        for count in (result.base_count, result.golden_count)
    )
    counts = f"{base} in the base code, {refactored} in the refactored code"
    if result.accepted:
        return f"{result.rule_id}: registered ({counts})"
    text = f"{result.rule_id}: rejected ({counts}): {result.reason}"
    if result.error:
        text += f": {result.error}"
    for witness in result.witnesses:
        path = witness.path.encode("utf-8", "replace").decode()
        text += f"\n  exempt for example {path}, lines {witness.start_line} to {witness.end_line}"
        text += "".join(f"\n    | {line}" for line in witness.text.split("\n") if witness.text)
    return text


def describe_candidate(result: CandidateResult) -> str:
    """Return one line for the user about one candidate, with the first place to exempt."""
    line = render_candidate_result(replace(result, witnesses=())).replace("\n", " ")
    if not result.witnesses:
        return line
    first = result.witnesses[0]
    code = first.text.split("\n")[0].strip()
    where = f"{first.path}:{first.start_line}" + (f": {code}" if code else "")
    more = len(result.witnesses) - 1
    return f"{line}; exempt for example {where}" + (f", and {more} more" if more else "")


def render_progress(
    ids: Sequence[str], direction: Direction, open_names: Sequence[str], open_files: Sequence[str]
) -> str:
    """Return a text for the model about the state of its pass.

    Args:
        ids: of all registered rules, oldest first.
        direction: of the pass.
        open_names: names in the description that no rule mentions.
        open_files: files of R with names of the description in which no rule matches.
    """
    earlier = len(ids) - MAX_IDS
    shown = f"{earlier} more, then {', '.join(ids[-MAX_IDS:])}" if earlier > 0 else ", ".join(ids)
    text = f"{plural(len(ids), f'{direction.value} rule')} registered" + (f": {shown}." if ids else ".")
    if open_names:
        text += f"\nNo rule mentions these names of the description: {_some(open_names, MAX_NAMES)}."
    if open_files:
        text += (
            f"\nNo rule matches in these files with names of the description: {_some(open_files, MAX_FILES)}."
        )
    return text


def _some(texts: Sequence[str], most: int) -> str:
    more = len(texts) - most
    shown = ", ".join(texts[:most]).encode("utf-8", "replace").decode()
    return f"{shown} and {more} more" if more > 0 else shown
