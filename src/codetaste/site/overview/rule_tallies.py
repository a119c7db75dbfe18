"""How many trials satisfy each rule: the difficulty of rules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.site.html.address import rule_anchors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.results.rows.rule import RuleVerdict


@dataclass(frozen=True, slots=True)
class RuleTally:
    """A rule of an instance, and how many scored trials of agents satisfy it.

    Attributes:
        instance: id of the instance.
        direction: additive or reductive.
        rule: its id.
        trials: trials in which it is known whether the rule is satisfied.
        satisfied: trials that satisfy it.
        flagged: trials in which only code without effect satisfies it.
        golden: whether the golden patch satisfies it; None if that is unknown.
        guessed: names that agents of some track must guess.
        anchor: the fragment that names it in the instance's page.
    """

    instance: str
    direction: str
    rule: str
    trials: int
    satisfied: int
    flagged: int
    golden: bool | None
    guessed: tuple[str, ...]
    anchor: str

    @property
    def share(self) -> float | None:
        """The share of trials that satisfy it."""
        return self.satisfied / self.trials if self.trials else None


def tally_rules(rows: Iterable[RuleVerdict], golden: str) -> dict[str, list[RuleTally]]:
    """Return the tallies of each instance's rules, in the order of the rule files.

    Args:
        rows: the verdicts of all trials.
        golden: the name of the golden agent; other pseudo agents are left out.
    """
    found: defaultdict[str, defaultdict[tuple[str, str], list[RuleVerdict]]]
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.instance][row.direction, row.rule].append(row)
    return {
        instance: [
            _tally(verdicts, golden, anchor)
            for verdicts, anchor in zip(rules.values(), rule_anchors(rules).values(), strict=True)
        ]
        for instance, rules in found.items()
    }


def _tally(verdicts: list[RuleVerdict], golden: str, anchor: str) -> RuleTally:
    known = [each for each in verdicts if not each.pseudo and each.satisfied is not None]
    of_golden = [each.satisfied for each in verdicts if each.agent == golden]
    return RuleTally(
        verdicts[0].instance,
        verdicts[0].direction,
        verdicts[0].rule,
        len(known),
        sum(each.satisfied is True for each in known),
        sum(each.flagged is True for each in known),
        of_golden[0] if of_golden else None,
        tuple(dict.fromkeys(name for each in verdicts for name in each.guessed_names)),
        anchor,
    )
