"""``RuleVerdict``: one row for each rule of a scored trial."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.results.rows.schema import SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """One rule of the instance of a trial, beside the patch of that trial.

    Attributes:
        schema_version: version of the schema of rows.
        run: name of the run, as in the rows of trials.
        agent: the agent, as in the rows of trials.
        track: "instructed" or "open"; None of a pseudo agent.
        mode: "direct", "plan" or "multiplan".
        instance: id of the instance.
        attempt: number of the attempt, from 1.
        pseudo: whether it is the golden or the null agent.
        direction: "additive" or "reductive".
        rule: id of the rule, unique in its direction.
        satisfied: whether it is satisfied: an additive rule if it matches, a reductive one if not.
        matched: whether it matches at least once.
        matches: number of its matches.
        lines: number of different lines that they cover.
        files: number of different files that they are in.
        flagged: whether its matches are only in code without effect; None of a reductive rule.
        flag: why it is flagged.
        guessed_names: names that it requires and that neither the description nor a reductive rule has: the
            agent must guess them; only of additive rules, and only if the description is known.
        names_are_guessed: whether there is such a name; None if that is unknown.
    """

    schema_version: int = SCHEMA_VERSION
    run: str
    agent: str
    track: str | None
    mode: str | None
    instance: str
    attempt: int
    pseudo: bool
    direction: str
    rule: str
    satisfied: bool | None
    matched: bool | None
    matches: int | None
    lines: int | None
    files: int | None
    flagged: bool | None
    flag: str | None
    guessed_names: tuple[str, ...]
    names_are_guessed: bool | None
