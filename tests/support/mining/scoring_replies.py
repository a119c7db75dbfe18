"""Replies of a model that scores messages and diffs, as text."""

from __future__ import annotations

from typing import Any

MESSAGE = {
    "large_scale_refactor_score": "0.88",
    "true_refactor_score": "0.82",
    "message_cohesion_score": "0.72",
    "length_penalty": "0.12",
    "trivial_score": "0.08",
    "uncertainty": "0.12",
}
"""The scores in the answer of Figure 9."""
DIFF = {
    "refactor_likelihood": "0.92",
    "mixed_change_penalty": "0.05",
    "risky_change_score": "0.25",
    "automated_pattern_score": "0.75",
    "uncertainty": "0.08",
    "complexity": "0.85",
    "trivial_score": "0.12",
}
"""The scores in the answer of Figure 10."""


def answer(fields: dict[str, Any], reasoning: str = "It only moves code.", **changed: Any) -> str:
    """An answer with ``fields`` and a reasoning; ``changed`` replaces values, None leaves a field out."""
    values = {**fields, "reasoning": reasoning, **changed}
    lines = [f"  <{name}>{value}</{name}>" for name, value in values.items() if value is not None]
    return "\n".join(["<classification>", *lines, "</classification>"])
