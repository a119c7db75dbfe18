"""The rules of an instance, Γ⁺ and Γ⁻, read from its two rule files.

Ids are unique only within one file, so scans of both files together use numbered rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import RULES_FILES
from codetaste.core.files import read_regular_file
from codetaste.errors import ConfigError
from codetaste.rules.registration import Direction
from codetaste.rules.rule import Rule, read_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.rules.scan.model import Match, ScanProblem

_MAX_FILE_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Γ⁺ and Γ⁻ with each file's bytes and their sha256 (hex); b"" and "" for a missing file."""

    positive: tuple[Rule, ...] = ()
    negative: tuple[Rule, ...] = ()
    positive_sha256: str = ""
    negative_sha256: str = ""
    positive_file: bytes = field(default=b"", repr=False)
    negative_file: bytes = field(default=b"", repr=False)

    def numbered_rules(self) -> list[Rule]:
        """Return all rules with ids that are unique across both files, Γ⁺ first."""
        rules = (*self.positive, *self.negative)
        return [Rule(f"rule-{number}", rule.languages, rule.body) for number, rule in enumerate(rules)]

    def split_matches(self, matches: Iterable[Match]) -> tuple[tuple[Match, ...], tuple[Match, ...]]:
        """Split matches of numbered rules into those of Γ⁺ and of Γ⁻, with original rule ids, in order."""
        parts: tuple[list[Match], list[Match]] = ([], [])
        rules = (*self.positive, *self.negative)
        for match in matches:
            number = _number(match.rule_id)
            parts[number >= len(self.positive)].append(replace(match, rule_id=rules[number].id))
        return tuple(parts[0]), tuple(parts[1])

    def with_original_id(self, problem: ScanProblem) -> ScanProblem:
        """Return ``problem`` with the original id of its rule."""
        if not problem.rule_id:
            return problem
        rules = (*self.positive, *self.negative)
        return replace(problem, rule_id=rules[_number(problem.rule_id)].id)


def parse_rule_set(
    positive: bytes, negative: bytes, sources: Sequence[str] = tuple(RULES_FILES.values())
) -> RuleSet:
    """Parse the content of both files; b"" stands for a missing file, and a rule list may be empty.

    ``sources`` are the files' names for messages.

    Raises:
        RuleError: a file is malformed; one line per fault.
    """
    return RuleSet(
        read_rules(positive, source=sources[0]),
        read_rules(negative, source=sources[1]),
        _digest(positive),
        _digest(negative),
        positive,
        negative,
    )


def read_rule_set(benchmark: Benchmark, instance: Instance) -> RuleSet:
    """Read the rules of ``instance``.

    Raises:
        ConfigError: a file cannot be read.
        RuleError: a file is malformed.
    """
    positive, negative = (benchmark.rules_path(instance, each) for each in Direction)
    return parse_rule_set(_content(positive), _content(negative), (str(positive), str(negative)))


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest() if content else ""


def _content(path: Path) -> bytes:
    try:
        return read_regular_file(path, _MAX_FILE_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def _number(name: str) -> int:
    return int(name.removeprefix("rule-"))
