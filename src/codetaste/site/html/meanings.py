"""What the numbers and words of tables mean, a sentence each; docs/scoring.md has the exact definitions."""

from __future__ import annotations

from typing import Final, NamedTuple

from codetaste.report.statistics import measures


class Meaning(NamedTuple):
    """A measure, or words of its kind, and what it means."""

    title: str
    text: str


MEANINGS: Final = {
    measures.ALIGNMENT.name: Meaning("A", "alignment: IFR if the tests pass, otherwise 0 (PASS × IFR)"),
    measures.PASS.name: Meaning(
        "PASS", "the tests pass as the recorded baseline requires; without test results it is unknown"
    ),
    measures.IFR.name: Meaning(
        "IFR",
        "instruction following rate: the share of the instance's rules that the patch follows;"
        " additive rules must match the new code, reductive ones must not",
    ),
    measures.PREC.name: Meaning("PREC", "change precision: the share of the changed lines that rules cover"),
    "signed": Meaning("⁺ and ⁻", "the same of additive rules and added lines, of reductive ones and removed"),
    measures.EDITED.name: Meaning("|L|", "lines that the patch adds and removes"),
    measures.COST.name: Meaning("Cost", "dollars for the model's calls of all steps of a trial"),
    measures.TIME.name: Meaning("Time", "minutes of all steps of a trial"),
    "track": Meaning(
        "Instructed, Open", "tracks: the task says what to do, or it names only the area (open)"
    ),
    "mode": Meaning(
        "Direct, Plan, Multiplan",
        "modes: the patch at once, after a plan, or after one of five plans that a judge chooses",
    ),
}
"""By the name of the column."""
