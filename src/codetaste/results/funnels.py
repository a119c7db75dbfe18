"""Read the funnels that mining runs wrote, and the steps from their candidates to instances."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import MINING_FOLDER, STEPS_FILE
from codetaste.core.files import read_regular_file
from codetaste.flows.mine.context import funnel_file
from codetaste.mining.funnel import StepYield, funnel_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.mining.funnel import FunnelRow

_DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, InvalidOperation, RecursionError)


def read_funnels(root: Path) -> dict[str, tuple[FunnelRow, ...]]:
    """Return the funnels of a run's mining runs, by name, without files that cannot be read. Blocking."""
    found = {}
    for folder in _folders(root / MINING_FOLDER):
        try:
            rows = funnel_from_json(json.loads(read_regular_file(funnel_file(folder))))
            if all(map(_is_valid, rows)):
                found[folder.name] = rows
        except _DAMAGED:
            continue
    return found


def read_steps(root: Path) -> list[StepYield]:
    """Return the yield of each step of a run that mines, none if its file cannot be read. Blocking."""
    try:
        data = json.loads(read_regular_file(root / MINING_FOLDER / STEPS_FILE))
        steps = [_step(each) for each in data["steps"]]
    except _DAMAGED:
        return []
    return [each for each in steps if _is_count(each.entered, each.removed, each.pending)]


def _step(data: dict[str, Any]) -> StepYield:
    cost = Decimal(data["cost_usd"])
    return StepYield(str(data["step"]), data["entered"], data["removed"], data["pending"], cost)


def _is_valid(row: FunnelRow) -> bool:
    reasons, numbers = [reason for reason, _ in row.reasons], [number for _, number in row.reasons]
    texts = all(isinstance(each, str) for each in (row.filter, *reasons, *row.examples))
    return texts and _is_count(row.entered, row.removed, row.unknown, *numbers)


def _is_count(*values: object) -> bool:
    return all(type(value) is int and 0 <= value < 2**53 for value in values)


def _folders(parent: Path) -> Iterable[Path]:
    try:
        return sorted(each for each in parent.iterdir() if each.is_dir())
    except OSError:
        return ()
