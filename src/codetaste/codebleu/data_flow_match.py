"""The data flow match: how much of the reference's data flow the candidate has (CodeBLEU §3.3)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.codebleu.data_flow import Flow

    NumberedFlow = tuple[int, str, tuple[int, ...]]


def data_flow_match(candidate: Sequence[Flow], references: Iterable[Sequence[Flow]]) -> float | None:
    """Return the share of the references' flows that the candidate has, 0 to 1; None if they have none.

    Each flow of the candidate matches one of a reference.
    """
    there = Counter(_numbered(candidate))
    matched = total = 0
    for reference in references:
        wanted = Counter(_numbered(reference))
        matched += (wanted & there).total()
        total += wanted.total()
    return matched / total if total else None


def _numbered(flows: Iterable[Flow]) -> Iterable[NumberedFlow]:
    """Return the flows with variables numbered by their first place, so that names do not count."""
    numbers: dict[str, int] = {}
    for flow in flows:
        sources = tuple(numbers.setdefault(name, len(numbers)) for name in flow.sources)
        yield numbers.setdefault(flow.variable, len(numbers)), flow.relation, sources
