"""Rows of the rules of each scored trial: whether its patch satisfies them, and where they match."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    NEGATIVE_SARIF_FILE,
    POSITIVE_SARIF_FILE,
    RULES_FILES,
    SCORES_FILE,
    Track,
    description_path,
    rules_path,
)
from codetaste.core.text import printable
from codetaste.errors import RuleError
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem, TrialStatus
from codetaste.evaluation.trials.untrusted_files import FileProblem, parse_text, read_file, read_json_object
from codetaste.results.roots import root_of
from codetaste.results.rows.rule import RuleVerdict
from codetaste.results.rows.sarif_counts import MatchCounts, read_rule_matches
from codetaste.results.rows.trial_files import WITH_RULES
from codetaste.rules.names.guessed import guessed_names, names_in
from codetaste.rules.registration import Direction
from codetaste.rules.rule import read_rules
from codetaste.rules.yaml.reader import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.results.benchmarks import RunBenchmarks
    from codetaste.results.read import RunResults
    from codetaste.rules.rule import Rule

_SARIF_FILES = {Direction.ADDITIVE: POSITIVE_SARIF_FILE, Direction.REDUCTIVE: NEGATIVE_SARIF_FILE}
_UNMET = {Direction.ADDITIVE: "unmet_additive", Direction.REDUCTIVE: "unmet_reductive"}
_MAX_DESCRIPTION_BYTES = 1024**2


def rule_rows(results: RunResults, *, counted: bool = True) -> tuple[list[RuleVerdict], list[ReadProblem]]:
    """Return a row for each rule of each scored trial, and what could not be read. Blocking.

    The rules are those with which the trial was scored, or else those of the benchmark.

    Args:
        results: what was read.
        counted: whether matches are counted; without, their files are read only where the scores do not say
            which rules match, which takes a fraction of the time.
    """
    roots = {root: os.path.realpath(root) for root in results.roots}
    reader = _RuleReader(results.benchmarks, roots, counted)
    rows = [
        row
        for record in (*results.trials.agents, *results.trials.pseudo)
        if record.scores.status in WITH_RULES
        for row in reader.rows(record)
    ]
    return rows, reader.problems


@dataclass(frozen=True, slots=True)
class _TrialRules:
    """The rules of a trial by direction, and the names that each additive one requires unknown to its agent.

    ``guessed`` is None if the description is unknown.
    """

    rules: Mapping[Direction, Sequence[Rule]]
    guessed: Mapping[str, tuple[str, ...]] | None


@dataclass(slots=True)
class _RuleReader:
    """Reads rules once for each content of a rule file, because the trials of an instance have the same."""

    benchmarks: RunBenchmarks
    roots: Mapping[Path, str]
    """The real path of each folder that was read."""
    counted: bool
    problems: list[ReadProblem] = field(default_factory=list)
    _parsed: dict[bytes, tuple[Rule, ...]] = field(default_factory=dict)
    _rules: dict[tuple[str, str, bytes], _TrialRules] = field(default_factory=dict)

    def rows(self, record: TrialRecord) -> Iterator[RuleVerdict]:
        """Yield the rows of one trial, the additive rules first, each direction in the order of its file."""
        root = self.roots[root_of(record, self.roots)]
        found = self._trial_rules(record, root)
        scores = self._scores(record, root)
        for direction in Direction:
            additive = direction is Direction.ADDITIVE
            scored = record.scores.status is TrialStatus.SCORED
            unmet = _ids(scores.get(_UNMET[direction])) if scored else None
            verdicts = _Verdicts(
                record,
                direction,
                unmet,
                self._matches(record, root, direction) if self.counted or unmet is None else None,
                _flags(scores) if additive and scores else None,
                found.guessed if additive else None,
            )
            for rule in found.rules[direction]:
                yield verdicts.row(rule.id)

    def _trial_rules(self, record: TrialRecord, root: str) -> _TrialRules:
        contents = {each: self._rule_file(record, root, each) for each in Direction}
        digest = hashlib.sha256(b"\0".join(contents.values())).digest()
        key = record.instance, record.track, digest
        if key not in self._rules:
            rules = {each: self._parse(record, each, content) for each, content in contents.items()}
            self._rules[key] = _TrialRules(rules, self._guessed(record, rules))
        return self._rules[key]

    def _guessed(
        self, record: TrialRecord, rules: Mapping[Direction, Sequence[Rule]]
    ) -> dict[str, tuple[str, ...]] | None:
        found = self.benchmarks.find(record.instance)
        if found is None or record.track not in set(Track):
            return None
        benchmark, instance = found
        path = description_path(benchmark.root, instance, Track(record.track))
        try:
            text = read_file(path, os.path.realpath(benchmark.root), _MAX_DESCRIPTION_BYTES)
        except FileProblem:
            return None
        known = names_in(each.body for each in rules[Direction.REDUCTIVE])
        description = text.decode("utf-8", "replace")
        return {each.id: guessed_names(each.body, description, known) for each in rules[Direction.ADDITIVE]}

    def _rule_file(self, record: TrialRecord, root: str, direction: Direction) -> bytes:
        """Return the content of a rule file, b"" if there is none."""
        places = [(record.folder / EVALUATION_FOLDER / RULES_FILES[direction], root)]
        if found := self.benchmarks.find(record.instance):
            benchmark, instance = found
            path = rules_path(benchmark.root, instance, direction)
            places.append((path, os.path.realpath(benchmark.root)))
        for path, real in places:
            try:
                return read_file(path, real, MAX_BYTES)
            except FileProblem as fault:
                if fault.kind is not ProblemKind.MISSING:
                    self._add(record, RULES_FILES[direction], fault)
        return b""

    def _parse(self, record: TrialRecord, direction: Direction, content: bytes) -> tuple[Rule, ...]:
        if content not in self._parsed:
            try:
                self._parsed[content] = read_rules(content, source=RULES_FILES[direction])
            except RuleError as error:
                self._add(record, RULES_FILES[direction], FileProblem(ProblemKind.RULES, str(error)))
                self._parsed[content] = ()
        return self._parsed[content]

    def _scores(self, record: TrialRecord, root: str) -> dict[str, Any]:
        try:
            return read_json_object(record.folder / EVALUATION_FOLDER / SCORES_FILE, root)
        except FileProblem:  # listed where the record was read
            return {}

    def _matches(self, record: TrialRecord, root: str, direction: Direction) -> dict[str, MatchCounts] | None:
        """Return the matches of one direction; None if they are unknown."""
        name = _SARIF_FILES[direction]
        try:
            return read_rule_matches(record.folder / EVALUATION_FOLDER / name, root)
        except FileProblem as fault:
            if fault.kind is not ProblemKind.MISSING:
                self._add(record, name, fault)
            return None

    def _add(self, record: TrialRecord, name: str, fault: FileProblem) -> None:
        where = printable(f"{record.identity.name}: {name}")
        self.problems.append(ReadProblem(fault.kind, where, printable(str(fault))))


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """What is known of the rules of one direction in a trial, by their ids; None is unknown.

    Attributes:
        record: the trial.
        direction: the direction.
        unmet: the rules that are not satisfied, as they were scored.
        matches: the rules that match; without ``unmet`` these decide.
        flags: the rules that are flagged, and why; additive ones alone.
        guessed: the names that the agent must guess; of additive rules alone.
    """

    record: TrialRecord
    direction: Direction
    unmet: frozenset[str] | None
    matches: Mapping[str, MatchCounts] | None
    flags: Mapping[str, str] | None
    guessed: Mapping[str, tuple[str, ...]] | None

    def matched(self, rule: str) -> bool | None:
        """Return whether a rule matches."""
        if self.unmet is not None:
            return (rule in self.unmet) is (self.direction is Direction.REDUCTIVE)
        if self.matches is None:
            return None
        if rule in self.matches:
            return True
        return None if self.record.scores.status is TrialStatus.PARTIAL else False

    def row(self, rule: str) -> RuleVerdict:
        """Return the row of a rule."""
        record, matched = self.record, self.matched(rule)
        counts = None
        if self.matches is not None and matched is not None:
            counts = self.matches.get(rule) or MatchCounts()
        names = (self.guessed or {}).get(rule, ())
        return RuleVerdict(
            run=record.run,
            agent=record.agent,
            track=record.track or None,
            mode=record.mode or None,
            instance=record.instance,
            attempt=record.attempt,
            pseudo=record.pseudo,
            direction=self.direction.value,
            rule=rule,
            satisfied=None if matched is None else matched is (self.direction is Direction.ADDITIVE),
            matched=matched,
            matches=None if counts is None else counts.matches,
            lines=None if counts is None else sum(map(len, counts.lines.values())),
            files=None if counts is None else len(counts.lines),
            flagged=None if self.flags is None else rule in self.flags,
            flag=(self.flags or {}).get(rule) or None,
            guessed_names=names,
            names_are_guessed=None if self.guessed is None else bool(names),
        )


def _ids(value: object) -> frozenset[str] | None:
    return frozenset(map(str, value)) if isinstance(value, list) else None


def _flags(scores: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons of flagged rules by rule id."""
    flagged = scores.get("flagged")
    return {
        str(each.get("rule")): parse_text(each.get("reason"))
        for each in (flagged if isinstance(flagged, list) else ())
        if isinstance(each, dict)
    }
