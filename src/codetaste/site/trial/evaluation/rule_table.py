"""Rows of the table of rules as HTML.

They are made here and not in a template because a site has some hundred thousand of them: so it takes a third
of the time.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from markupsafe import Markup

from codetaste.site.html.visible import visible
from codetaste.site.trial.evaluation.rule_results import RuleOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.site.trial.evaluation.rule_results import MatchPlace, RuleResult

_LOOKS = {
    RuleOutcome.SATISFIED: ("good-text", "✓"),
    RuleOutcome.FLAGGED: ("warn-text", "⚠"),
    RuleOutcome.NOT_SATISFIED: ("bad-text", "✗"),
    RuleOutcome.UNKNOWN: ("", "○"),
}
"""Class and sign of each outcome."""


def rule_rows(rules: Iterable[RuleResult]) -> Markup:
    """Return a row for each rule, with its anchor as id; every text is escaped."""
    return Markup("\n".join(map(_row, rules)))  # noqa: S704 - all parts are escaped or our own


def _row(rule: RuleResult) -> str:
    name, anchor = _text(rule.id), _text(rule.anchor)
    look, sign = _LOOKS[rule.outcome]
    why = f": {_text(rule.why)}" if rule.why else ""
    shown = rule.shown_places
    places = "<br>".join(map(_place, shown))
    more = f"<br>and {rule.matches - len(shown)} more" if rule.matches > len(shown) else ""
    return (
        f'<tr id="{anchor}"><th scope="row" class="mono"><a href="#{anchor}">{name}</a></th>'
        f'<td>{rule.direction.value}</td><td data-group="{rule.outcome.value}">'
        f'<span class="{look}">{sign} {rule.outcome.value}</span>{why}</td>'
        f'<td class="num">{rule.matches}</td><td class="mono small">{places}{more}</td>'
        f"<td>{_text(rule.line)}</td></tr>"
    )


def _place(place: MatchPlace) -> str:
    text = _text(f"{place.path}:{place.line}")
    return f'<a href="#{place.anchor}">{text}</a>' if place.file else text


def _text(text: str) -> str:
    return escape(visible(text))
