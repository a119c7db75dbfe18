"""The conversations of a job or trial of a run, and of outputs in the published layout."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    EVENTS_FOLDER,
    EXECUTION_LOG_FILE,
    JUDGE_OUTPUT_FILE,
    PLAN_LOG_FILES,
    TRAJECTORY_FILE,
    TRANSCRIPTS_FOLDER,
)
from codetaste.transcripts.event import RecordedConversation, SourceKind
from codetaste.transcripts.journal import effect_part
from codetaste.transcripts.record_lines import parse_object, record_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.transcripts.timeline.journal_reader import JournalReader

_SUFFIX = ".jsonl"
_ATTEMPT = re.compile(r"\.attempt-([1-9][0-9]{0,8})$")
_STEPS = {"plan": 0, "judge": 1, "execute": 2, "additive": 0, "reductive": 1}
"""The order of the steps of a trial, and of the directions of a pass."""
_NUMBER = re.compile(r"\d+")


def conversations_of(
    run: Path, prefix: str, journal: JournalReader | None = None
) -> tuple[RecordedConversation, ...]:
    """Return the conversations of a job, or of all jobs of a trial, in the order of its steps. Blocking.

    The output of a command-line agent is a conversation only where the gateway has none. A job without any
    file has what the journal has of it.

    Args:
        run: the run's folder.
        prefix: a job's key, or the beginning of the keys of a trial's jobs:
            ``infer/<agent>/<track>/<mode>/<instance>[/attempt-n]``.
        journal: the run's journal, polled; None leaves out conversations that only it has.
    """
    if ".." in prefix.split("/") or "\0" in prefix:
        return ()
    found = {each.name: each for each in _files(run, TRANSCRIPTS_FOLDER, prefix)}
    with_request = {name for name, each in found.items() if _has_request(each)}
    for each in _files(run, EVENTS_FOLDER, prefix):
        if each.name not in with_request:
            found[each.name] = each
    if journal is not None:
        for each in _journal_conversations(run, prefix, journal, {(c.job, c.part) for c in found.values()}):
            found[each.name] = each
    return tuple(sorted(found.values(), key=_order))


def conversations_of_logs(folder: Path) -> tuple[RecordedConversation, ...]:
    """Return the conversations in the logs of one trial's folder in the published layout. Blocking.

    A trial of another harness may have a trajectory in place of the agent's log.
    """
    steps = {**dict.fromkeys(PLAN_LOG_FILES.values(), "plan"), JUDGE_OUTPUT_FILE: "judge"}
    steps[EXECUTION_LOG_FILE] = "execute"
    found = []
    for name, step in steps.items():
        path = folder / name
        if path.is_file():
            found.append(RecordedConversation(name, _source_of_log(path), "", step, "", 0, path, folder))
    trajectory = folder / TRAJECTORY_FILE
    if trajectory.is_file() and not (folder / EXECUTION_LOG_FILE).is_file():
        found.append(
            RecordedConversation(TRAJECTORY_FILE, SourceKind.ATIF, "", "execute", "", 0, trajectory, folder)
        )
    return tuple(found)


def _files(run: Path, root: str, prefix: str) -> Iterator[RecordedConversation]:
    """Yield what is in the folder ``prefix``, and the files whose name begins with it."""
    folder = run / root / prefix
    for path in _record_files(folder, ""):
        stem, attempt = _without_attempt(path.name.removesuffix(_SUFFIX))
        step, _, part = stem.partition(".")
        yield _conversation(run, root, path, f"{prefix}/{step}", step, part, attempt)
    key = folder.name
    for path in _record_files(folder.parent, key):
        stem, attempt = _without_attempt(path.name.removesuffix(_SUFFIX))
        if stem == key or stem.startswith(f"{key}."):
            part = stem.removeprefix(key).removeprefix(".")
            if not part or not part[0].isdigit():  # the key of another job may have a dot
                yield _conversation(run, root, path, prefix, _step_of(prefix), part, attempt)


def _step_of(key: str) -> str:
    last = key.rpartition("/")[2]
    return last if last in _STEPS else key.partition("/")[0]


def _record_files(folder: Path, prefix: str) -> list[Path]:
    """Return the files whose name begins with ``prefix``; there may be thousands of others."""
    try:
        with os.scandir(folder) as entries:
            names = [
                each.name
                for each in entries
                if each.name.startswith(prefix) and each.name.endswith(_SUFFIX) and each.is_file()
            ]
    except (OSError, ValueError):
        return []
    return [folder / name for name in sorted(names)]


def _without_attempt(stem: str) -> tuple[str, int]:
    found = _ATTEMPT.search(stem)
    return (stem[: found.start()], int(found[1])) if found else (stem, 0)


def _conversation(
    run: Path, root: str, path: Path, job: str, step: str, part: str, attempt: int
) -> RecordedConversation:
    name = str(path.relative_to(run / root)).removesuffix(_SUFFIX)
    if root == EVENTS_FOLDER:
        source = SourceKind.OUTPUT
    else:
        source = SourceKind.GATEWAY if attempt else SourceKind.LOOP
    return RecordedConversation(name, source, job, step, part, attempt, path, run)


def _has_request(conversation: RecordedConversation) -> bool:
    if conversation.source is not SourceKind.GATEWAY:
        return True
    return any(b'"request":' in line.data for line in record_lines(conversation.path))


def _source_of_log(path: Path) -> SourceKind:
    for line in record_lines(path):
        first, _ = parse_object(line)
        if first is not None and "transcript" in first:
            return SourceKind.GATEWAY
        return SourceKind.LOOP if first is not None and "system" in first else SourceKind.OUTPUT
    return SourceKind.OUTPUT


def _journal_conversations(
    run: Path, prefix: str, journal: JournalReader, known: set[tuple[str, str]]
) -> Iterator[RecordedConversation]:
    for key in journal.keys_of(prefix):
        folder, _, last = key.rpartition("/")
        parts = {effect_part(place.effect): None for place in journal.effects(key) if place.of_call}
        step = last if folder == prefix else _step_of(key)
        for part in parts:
            if part is not None and (key, part) not in known:
                name = f"{key}.{part}" if part else key
                yield RecordedConversation(name, SourceKind.JOURNAL, key, step, part, 0, journal.path, run)


def _order(conversation: RecordedConversation) -> tuple[object, ...]:
    numbers = [int(found) for found in _NUMBER.findall(conversation.part)]
    return (
        _STEPS.get(conversation.step, len(_STEPS)),
        conversation.step,
        numbers[-1:] or [0],
        conversation.part,
        conversation.attempt,
    )
