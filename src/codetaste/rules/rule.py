"""OpenGrep rules as data, parsed from YAML with line-accurate errors.

A rule is plain data with any keys; the engine decides which of them are valid. ``yaml_writer.py`` writes
rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.errors import RuleError
from codetaste.rules.yaml import reader as yaml_reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.rules.yaml.reader import Node

MAX_RULES = 2_000
MAX_CANDIDATE_BYTES = 256 * 1024
TEXT_LANGUAGES = frozenset({"generic", "regex", "none"})
"""Languages of rules that match plain text."""

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_TEXT_KEYS = ("id", "message", "severity", "pattern", "pattern-regex", "mode")
_REQUIRED = ("id", "message", "severity", "languages")
_NAMED = re.compile(r"^[ ]*(?:-[ ]+)?id:[ ]*['\"]?([A-Za-z0-9_][A-Za-z0-9_-]{0,127})\b", re.MULTILINE)
_ITEM = re.compile(r"^([ ]*)-(?:[ ]|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule γ: ``body`` is the whole rule as plain data, ``line`` the line where it starts in its text."""

    id: str
    languages: tuple[str, ...]
    body: Mapping[str, Any]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Result of parsing candidates: the well-formed rules in order, and the errors of the others."""

    rules: tuple[Rule, ...]
    errors: tuple[RuleError, ...]


def make_rule(body: Mapping[str, Any], *, line: int = 0) -> Rule:
    """Return ``body`` as a rule after checking the required keys.

    Raises:
        RuleError: an id with characters other than letters, digits, ``_``, ``-``; a missing or mistyped key.
    """
    rule_id = body.get("id")
    known = rule_id[:128] if isinstance(rule_id, str) else ""
    for name in _REQUIRED:
        if body.get(name) is None:
            raise RuleError(f"{name} is missing", line=line, rule_id=known)
    for name in _TEXT_KEYS:
        value = body.get(name, "")
        if not isinstance(value, str):
            raise RuleError(f"{name} must be text, not {_kind(value)}; quote it", line=line, rule_id=known)
    if not _ID.fullmatch(known) or known != rule_id:
        raise RuleError(
            f"the id {known!r} must be 1 to 128 letters, digits, '_' and '-'", line=line, rule_id=known
        )
    languages = body["languages"]
    if not isinstance(languages, list) or not languages:
        raise RuleError("languages must be a list with at least one name", line=line, rule_id=known)
    if not all(isinstance(language, str) for language in languages):
        raise RuleError("every language must be text; quote it", line=line, rule_id=known)
    for name in ("metadata", "options", "paths"):
        if not isinstance(body.get(name, {}), dict):
            raise RuleError(f"{name} must be a mapping", line=line, rule_id=known)
    return Rule(known, tuple(languages), body, line)


def parse_rules(text: str | bytes, *, source: str) -> tuple[Rule, ...]:
    """Read a rule file: a mapping whose key ``rules`` lists rules with distinct ids.

    Args:
        text: the file, at most 2 MiB.
        source: name of the file in messages.

    Raises:
        RuleError: the file is invalid; the message has one line per fault, ``line`` is that of the first.
    """
    return _parse_file(text, source, may_be_empty=False)


def read_rules(content: bytes, *, source: str) -> tuple[Rule, ...]:
    """Read a rule file like ``parse_rules``, but accept a blank file and an empty list.

    A discovery pass that found no rules writes such a file.

    Raises:
        RuleError: as ``parse_rules``.
    """
    return _parse_file(content, source, may_be_empty=True) if content.strip() else ()


def _parse_file(text: str | bytes, source: str, *, may_be_empty: bool) -> tuple[Rule, ...]:
    if rules := _read_fast(text):
        return rules
    try:
        listed = _listed_in_file(yaml_reader.compose(yaml_reader.decode(text)))
    except RuleError as error:
        raise RuleError(f"{source}:{error.line}: {error}", line=error.line, rule_id=error.rule_id) from None
    if may_be_empty and not listed.value:
        return ()
    found = _read_items(listed)
    if found.errors:
        lines = (f"{source}:{e.line}: {f'rule {e.rule_id}: ' if e.rule_id else ''}{e}" for e in found.errors)
        raise RuleError("\n".join(lines), line=found.errors[0].line, rule_id=found.errors[0].rule_id)
    return found.rules


def _read_fast(text: str | bytes) -> tuple[Rule, ...]:
    """Return the rules of a file without faults, or nothing: then ``yaml_reader.compose`` has to read it."""
    try:
        root = yaml_reader.compose_fast(yaml_reader.decode(text))
        found = _read_items(_listed_in_file(root)) if root is not None else Candidates((), ())
    except RuleError:
        return ()
    return () if found.errors else found.rules


def read_candidates(text: str | bytes, *, max_bytes: int = MAX_CANDIDATE_BYTES) -> Candidates:
    """Parse rules that an agent submits, with or without the key ``rules``.

    A bad rule does not affect the others. No text raises; faults are in ``errors``.
    """
    try:
        decoded = yaml_reader.decode(text, max_bytes=max_bytes)
    except RuleError as error:
        return Candidates((), (error,))
    try:
        return _read_items(_listed(yaml_reader.compose(decoded)))
    except RuleError as error:
        return _read_items_separately(decoded) or Candidates((), (error,))


def _listed_in_file(root: Node) -> Node:
    if not yaml_reader.is_mapping(root):
        raise RuleError("a rule file is a mapping with the key 'rules'", line=1)
    listed = dict(yaml_reader.pairs(root)).get("rules")
    if listed is None:
        raise RuleError("the key 'rules' is missing", line=1)
    if not yaml_reader.is_sequence(listed):
        raise RuleError("'rules' must be a list", line=yaml_reader.line_of(listed))
    return listed


def _listed(root: Node) -> Node:
    """Return the node (or list of nodes) of the rules, for any of the three accepted shapes of the text."""
    if root is None:
        raise RuleError("there are no rules in this text")
    if yaml_reader.is_mapping(root):
        keys = dict(yaml_reader.pairs(root))
        if "rules" in keys:
            root = keys["rules"]
        elif "id" in keys:
            return [root]
        else:
            raise RuleError("expected a list of rules, or a mapping with the key 'rules'", line=1)
    if not yaml_reader.is_sequence(root):
        raise RuleError("expected a list of rules", line=yaml_reader.line_of(root))
    return root


def _read_items(listed: Node) -> Candidates:
    nodes = listed if isinstance(listed, list) else listed.value
    if not nodes:
        return Candidates((), (RuleError("the list of rules is empty", line=0),))
    if len(nodes) > MAX_RULES:
        return Candidates((), (RuleError(f"{len(nodes):,} rules; at most {MAX_RULES:,} are read"),))
    reader = yaml_reader.NodeReader()
    rules: dict[str, Rule] = {}
    errors: list[RuleError] = []
    for node in nodes:
        try:
            _add(_read_rule(node, reader), rules)
        except RuleError as error:
            errors.append(error)
    return Candidates(tuple(rules.values()), tuple(errors))


def _add(rule: Rule, rules: dict[str, Rule]) -> None:
    if rule.id in rules:
        message = f"the id {rule.id} is used twice; the first is at line {rules[rule.id].line}"
        raise RuleError(message, line=rule.line, rule_id=rule.id)
    rules[rule.id] = rule


def _read_rule(node: Node, reader: yaml_reader.NodeReader) -> Rule:
    line = yaml_reader.line_of(node)
    if not yaml_reader.is_mapping(node):
        raise RuleError("a rule must be a mapping", line=line)
    try:
        return make_rule(reader.to_plain(node), line=line)
    except RuleError as error:
        raise RuleError(str(error), line=error.line, rule_id=error.rule_id or _id_of(node)) from None


def _id_of(node: Node) -> str:
    texts = (value.value for key, value in node.value if key.value == "id" and value.id == "scalar")
    return str(next(texts, ""))[:128]


def _read_items_separately(text: str) -> Candidates | None:
    """Read a list with broken YAML item by item; None if it has fewer than two items."""
    pieces = list(_pieces(text))
    if len(pieces) < 2:  # noqa: PLR2004  (one piece is the text that failed)
        return None
    rules: dict[str, Rule] = {}
    errors: list[RuleError] = []
    for piece in pieces:
        try:
            found = _read_items(_listed(yaml_reader.compose(piece)))
        except RuleError as error:
            named = _NAMED.search(piece)
            errors.append(RuleError(str(error), line=error.line, rule_id=named[1] if named else ""))
            continue
        errors += found.errors
        for rule in found.rules:
            try:
                _add(rule, rules)
            except RuleError as error:
                errors.append(error)
    return Candidates(tuple(rules.values()), tuple(errors))


def _pieces(text: str) -> Iterator[str]:
    """Yield the items of the outermost list, padded with empty lines to keep their line numbers."""
    first = _ITEM.search(text)
    if first is None:
        return
    indent = first[1]
    starts = [match.start() for match in _ITEM.finditer(text) if match[1] == indent][: MAX_RULES + 1]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield "\n" * text.count("\n", 0, start) + text[start:end]


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
    return names.get(type(value), "nothing")
