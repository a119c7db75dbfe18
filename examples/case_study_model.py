"""The scripted model of the case studies: a program that examines trials by a fixed list of commands.

It looks at which files a patch changes, which rules hold and which tests its agent ran, and quotes that.
"""

from __future__ import annotations

import json
import re
from typing import Any

from codetaste.llm.messages import Message, Request, TextBlock, ToolCall, ToolResult

FILES = "grep -h '^diff --git' {study}/golden.diff | sort | head -3"
CHANGED = "grep '^diff --git' {folder}/prediction.diff | head -3"
RULES = "cut -d, -f1 {folder}/rules.txt | grep -E ': (NOT )?satisfied' | sed 's/.*: //' | sort | uniq -c"
VERDICT = "grep -E '\"(outcome|detail|codebleu)\"' {folder}/trial.json"
COMPILES = "grep -E '\"(compiles|passed|failed|outcome)\"' {folder}/score.json"
TESTS = r"grep -cE '\b(pytest|tox|unittest)\b' {folder}/commands.txt"


def examiner(request: Request) -> Message:
    """Decide the next step: one command after the other, then the report."""
    task = request.messages[0].text
    report = re.findall(r"Write `([^`]+)`, one JSON object", task)[0]
    study = re.findall(r"`([^`]+)/golden.diff`", task)[0]
    names = re.findall(r"^  - `([^`]+)`$", task, re.MULTILINE) or re.findall(
        r"/trials/([^`/]+)/`: what", task
    )
    of_trial = (VERDICT, COMPILES) if "developers.java" in task else (CHANGED, RULES, TESTS)
    commands = [FILES.format(study=study)]
    for name in names:
        commands += [each.format(folder=f"{study}/trials/{name}") for each in of_trial]
    outputs = [
        block.content
        for message in request.messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    turn = len(outputs)
    if turn < len(commands):
        return _say(turn, "I look.", "bash", {"command": commands[turn]})
    if turn == len(commands):
        seen = dict(zip(commands, outputs, strict=True))
        data = _label(names[0], study, seen) if '"label"' in task else _comparison(names, study, seen)
        arguments = {"path": report, "old": "", "new": json.dumps(data, indent=1), "create": True}
        return _say(turn, "I write what I saw.", "edit", arguments)
    return _say(turn, "The report is written.", "finish", {})


def _comparison(names: list[str], study: str, seen: dict[str, str]) -> dict[str, Any]:
    return {
        "summary": f"The developers change these files, among others: {seen[FILES.format(study=study)]}",
        "trials": {name: _assess(f"{study}/trials/{name}", seen) for name in names},
    }


def _assess(folder: str, seen: dict[str, str]) -> dict[str, Any]:
    if (verdict := VERDICT.format(folder=folder)) in seen:
        measured = COMPILES.format(folder=folder)
        claims = [
            ("It ended like this.", verdict, seen[verdict]),
            ("This is what was measured.", measured, seen[measured]),
        ]
        return _assessment("What the trial's files say of its answer.", claims)
    changed, rules, tests = (each.format(folder=folder) for each in (CHANGED, RULES, TESTS))
    good, named = _count(seen[rules], "satisfied"), seen[tests].splitlines()[0]
    claims = [
        ("It changes these files, among others.", changed, seen[changed]),
        (f"It satisfies {good} rules.", rules, seen[rules]),
        (f"Lines of its commands that name a test runner: {named}.", tests, named),
    ]
    return _assessment(f"The patch satisfies {good} of the rules.", claims)


def _assessment(text: str, claims: list[tuple[str, str, str]]) -> dict[str, Any]:
    return {
        "assessment": text,
        "claims": [
            {"claim": text, "evidence": [{"command": command, "excerpt": output}]}
            for text, command, output in claims
            if output.strip()
        ],
    }


def _label(name: str, study: str, seen: dict[str, str]) -> dict[str, Any]:
    folder = f"{study}/trials/{name}"
    if (verdict := VERDICT.format(folder=folder)) in seen:
        evidence = [{"command": verdict, "excerpt": seen[verdict]}]
        return {"label": "none", "reason": "A program cannot tell more.", "evidence": evidence}
    rules, changed = RULES.format(folder=folder), CHANGED.format(folder=folder)
    few = not _count(seen[rules], "satisfied")
    return {
        "label": "salient_edit" if few else "none",
        "reason": "It edits single lines, and no rule holds." if few else "It does a part of the task.",
        "evidence": [{"command": each, "excerpt": seen[each]} for each in (rules, changed)],
    }


def _count(output: str, state: str) -> int:
    found = re.search(rf"^ *(\d+) {state}$", output, re.MULTILINE)
    return int(found[1]) if found else 0


def _say(turn: int, words: str, name: str, arguments: dict[str, Any]) -> Message:
    return Message("assistant", (TextBlock(words), ToolCall(f"call-{turn + 1}", name, arguments)))
