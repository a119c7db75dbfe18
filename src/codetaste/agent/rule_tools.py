"""The rule agent's three tools (CodeTaste A.3): explore R, register rules, finish.

They are also the example for new tools: each is an async function with a ``RuleContext``, has no state except
facts, and returns short text that a model can act on.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.agent.rejected_rule import (
    BASE,
    MAX_RECORDED,
    REFACTORED,
    ScannedTree,
    rejected_candidates,
    unreadable_candidate,
)
from codetaste.agent.tool import ToolAnswer, tool
from codetaste.core.concurrency import gather
from codetaste.errors import EngineError, ToolError
from codetaste.rules.feedback import (
    add_witness_text,
    describe_candidate,
    render_candidate_result,
    render_progress,
)
from codetaste.rules.names.described import described_names, names_without_rule
from codetaste.rules.registration import Direction, RegisteredRule, register_candidates
from codetaste.rules.rule import read_candidates
from codetaste.sandbox.base import CommandLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from codetaste.agent.facts import Facts
    from codetaste.agent.rejected_rule import RejectedRule
    from codetaste.benchmark.instance import Instance
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Scanner, ScanResult
    from codetaste.sandbox.base import Shell

MAX_CANDIDATES = 50
"""Limit of rules in one ``register`` call: each rule is matched in two trees."""
MAX_COMMAND_S = 300.0
MAX_COMMAND_BYTES = 100_000
"""Below the 128 KiB limit of Linux for one argument."""
_NAMES_IN_BASE = "names_in_base"
_SEARCH_S = 60.0
_SEARCH_BYTES = 1024**2
_MAX_FILES = 500
_NAMING = ("id", "message", "severity", "metadata")
_REPETITION = "this is a repetition: the same rule was submitted before"
_SUBMITTED = "submitted"
REGISTERED_RULE, REJECTED_RULE = "registered", "rejected"
"""Kinds of the facts that hold registered rules, and rejected ones (``rejected_rule.py``)."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What the rule agent's tools work on.

    Attributes:
        instance: the benchmark instance.
        direction: kind of rules that this pass looks for.
        description: the text of the task.
        base: R as a folder. Read it only through ``shell``: a repository may contain links out of it.
        golden: R∘X* as a folder. Only counts and locations of it may reach the model.
        scanner: scans R and R∘X* with rules.
        shell: runs commands that can read only R and system programs.
        facts: journalled state of the tools.
        note: shows a line of progress text to the user.
        command_memory_bytes: memory limit of one shell command, bytes.
    """

    instance: Instance
    direction: Direction
    description: str
    base: Path
    golden: Path
    scanner: Scanner
    shell: Shell
    facts: Facts
    note: Callable[[str], None]
    command_memory_bytes: int

    async def scan_both(self, rules: tuple[Rule, ...]) -> tuple[ScanResult, ScanResult]:
        """Scan R and R∘X* with ``rules``, whose ids are unique."""
        base, golden = await gather(
            [partial(self.scanner.scan, rules, tree) for tree in (self.base, self.golden)]
        )
        return base, golden


def registered_rules(facts: Facts) -> list[RegisteredRule]:
    """Return the rules that this pass has registered, oldest first."""
    return [RegisteredRule.from_json(fact) for fact in facts.of_kind(REGISTERED_RULE)]


@tool
async def bash_explore(context: RuleContext, command: str, timeout_s: float = 30.0) -> str:
    """Run a shell command in the base codebase and return what it prints.

    The codebase is read-only, there is no network, and nothing but the codebase and system programs is
    visible. Commands start at its root. rg, grep, find, sed, awk, head and the like are there. Each command
    has a temporary folder of its own, $TMPDIR, which is empty at the start and gone at the end.

    Args:
        context: What the tools of a pass work on.
        command: Any command for bash, pipes included.
        timeout_s: Seconds after which it is killed; 300 at most.
    """
    _check_command(command)
    limits = CommandLimits(
        wall_s=min(max(timeout_s, 1.0), MAX_COMMAND_S),
        output_bytes=32 * 1024,
        memory_bytes=context.command_memory_bytes,
    )
    context.note(f"$ {command}")
    done = await context.shell.run(["bash", "-c", command], limits=limits)
    output = (done.stdout + (b"\n" if done.stdout and done.stderr else b"") + done.stderr).decode(
        "utf-8", "replace"
    )
    if done.timed_out:
        return f"{output}\n[killed after {limits.wall_s:g} s]".lstrip()
    if done.exit_code != 0:
        return f"{output}\n[exit code {done.exit_code}]".lstrip()
    return output or "[no output]"


def _check_command(command: str) -> None:
    """Reject a command that cannot be an argument: that is a mistake of the model, not of the sandbox."""
    try:
        raw = os.fsencode(command)
    except UnicodeEncodeError:
        raise ToolError("the command contains half of a surrogate pair, which is not a character") from None
    if b"\0" in raw or len(raw) > MAX_COMMAND_BYTES:
        raise ToolError(f"a command has at most {MAX_COMMAND_BYTES:,} bytes, and none of them is NUL")


@tool
async def register(context: RuleContext, rules: str) -> ToolAnswer:
    """Submit candidate rules. Each one that is valid and distinct is registered for good.

    For every candidate you are told how often it matches in the base and in the refactored code, whether it
    was registered, and if not, why. A rule that is broken does not affect the others. The answer ends with
    the ids of all registered rules, and with names of the description and files of the base code that no rule
    touches yet.

    Args:
        context: What the tools of a pass work on.
        rules: YAML: a list of OpenGrep rules under the key "rules".
    """
    candidates = read_candidates(rules)
    if len(candidates.rules) > MAX_CANDIDATES:
        raise ToolError(
            f"{len(candidates.rules)} rules in one call; submit at most {MAX_CANDIDATES} at a time"
        )
    lines = [
        f"{error.rule_id or 'a rule'}: not read{f' (line {error.line})' if error.line else ''}: {error}"
        for error in candidates.errors
    ]
    _record(context, [unreadable_candidate(error, rules) for error in candidates.errors])
    already = registered_rules(context.facts)
    # Names and texts make no other rule. What cannot be read is compared as a whole.
    known = set(context.facts.of_kind(_SUBMITTED))
    digests = {rule.id: _digest({**rule.body, **dict.fromkeys(_NAMING)}) for rule in candidates.rules}
    submitted = {*digests.values(), *([_digest(rules)] if candidates.errors else [])}
    for digest in submitted - known:
        context.facts.add(_SUBMITTED, digest)
    if candidates.rules:
        try:
            base, golden = await context.scan_both(candidates.rules)
        except EngineError as error:
            # Its text may name files of R∘X*, so it is shown to the user but not to the model.
            context.note(f"the rule engine failed: {error}")
            raise ToolError("the rule engine failed and nothing was registered; try again later") from error
        registration = register_candidates(context.direction, candidates.rules, base, golden, already)
        for accepted in registration.registered_rules[len(already) :]:
            context.facts.add(REGISTERED_RULE, accepted.to_json())
        results = await to_thread.run_sync(
            add_witness_text, context.direction, registration.candidates, context.base
        )
        lines.extend(
            render_candidate_result(result)
            + ("" if result.accepted or digests[result.rule_id] not in known else f"\n  {_REPETITION}")
            for result in results
        )
        for result in results:
            context.note(describe_candidate(result))
        trees = ScannedTree(BASE, context.base, base), ScannedTree(REFACTORED, context.golden, golden)
        rejected = rejected_candidates(context.direction, results, candidates.rules, *trees)
        _record(context, await to_thread.run_sync(list, rejected))
    if not lines:
        raise ToolError('there is no rule in this text; write a list under the key "rules"')
    total = len(registered_rules(context.facts))
    context.note(f"registered {total - len(already)} of {len(lines)} candidates, {total} in all")
    repeats = submitted <= known and total == len(already)
    if repeats:
        lines.append("Nothing in this call is new: submit other rules, or finish.")
    return ToolAnswer("\n".join([*lines, await _progress(context)]), repeats=repeats)


def _digest(submitted: object) -> str:
    return sha256(json.dumps(submitted, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()[
        :16
    ]


def _record(context: RuleContext, rejected: Sequence[RejectedRule]) -> None:
    """Record rejections as facts, the first ones of a pass with details."""
    left = MAX_RECORDED - len(context.facts.of_kind(REJECTED_RULE))
    for number, each in enumerate(rejected):
        context.facts.add(REJECTED_RULE, (each if number < left else each.without_details()).to_json())


async def _progress(context: RuleContext) -> str:
    """Return what is registered, and which names of the description and which files of R no rule touches."""
    rules, names = registered_rules(context.facts), described_names(context.description)
    files: Sequence[str] = ()
    if context.direction is Direction.REDUCTIVE and names:
        names, files = await _find_names(names, context)
    covered = {path for rule in rules for path, _line in rule.coverage}
    return render_progress(
        [rule.id for rule in rules],
        context.direction,
        names_without_rule(names, (rule.body for rule in rules)),
        [path for path in files if path not in covered],
    )


async def _find_names(names: Sequence[str], context: RuleContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those of ``names`` that R has, and the files that have one; R is searched once in a pass."""
    recorded = context.facts.of_kind(_NAMES_IN_BASE)
    if not recorded:
        patterns = " ".join(f"-e '{name}'" for name in names)
        command = f"grep -roIFw --exclude-dir=.git {patterns} . | LC_ALL=C sort -u"
        limits = CommandLimits(
            wall_s=_SEARCH_S, output_bytes=_SEARCH_BYTES, memory_bytes=context.command_memory_bytes
        )
        done = await context.shell.run(["bash", "-c", command], limits=limits)
        lines = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
        pairs = [line.removeprefix("./").rpartition(":") for line in lines]
        found = {name for _path, _colon, name in pairs}
        files = list(dict.fromkeys(path for path, _colon, _name in pairs))[:_MAX_FILES]
        recorded = [{"names": [name for name in names if name in found], "files": files}]
        context.facts.add(_NAMES_IN_BASE, recorded[0])
    return tuple(recorded[0]["names"]), tuple(recorded[0]["files"])


@tool
async def finish(context: RuleContext) -> ToolAnswer:
    """End the session. The rules registered so far are the result."""
    return ToolAnswer(f"{len(registered_rules(context.facts))} rules registered.", finish=True)
