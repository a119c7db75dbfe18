"""Count an agent's activity from the transcripts of a run or the logs of published outputs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import EVENTS_FOLDER, PUBLISHED_LOG_FILE, TRANSCRIPTS_FOLDER
from codetaste.errors import JournalError
from codetaste.evaluation.activity.bulk_edits import BulkEditKind, bulk_edit_kind
from codetaste.evaluation.activity.cli_logs import calls_in_output
from codetaste.evaluation.activity.counts import Activity
from codetaste.evaluation.activity.shell_programs import programs_in
from codetaste.evaluation.activity.test_commands import runs_tests
from codetaste.evaluation.activity.tool_calls import tool_calls
from codetaste.gateway.transcript import read_transcript
from codetaste.llm.codec import value_from_json
from codetaste.orchestration.journal.blobs import Blobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from codetaste.evaluation.activity.tool_calls import CountedToolCall
    from codetaste.gateway.transcript import TranscriptEntry


_STEP = "execute"

_MAX_LINE_BYTES = 16 * 1024**2
"""A longer line is skipped."""

_MAX_SHELL_CHARS = 16 * 1024**2
"""Shell text parsed per trial; further commands count as unparsed."""

_ATTEMPT = re.compile(r"\.attempt-(\d+)\.jsonl")


def activity_of_trial(run: Path, trial_key: str) -> Activity | None:
    """Count what an agent did in the execution step of a trial of a run.

    The source is the transcript of our own agent loop, or the last transcript of a CLI agent with a model
    reply, or the CLI agent's output if it has no transcript. Unreadable parts are skipped.

    Args:
        run: the run's folder.
        trial_key: prefix of its jobs' keys: ``infer/<agent>/<track>/<mode>/<instance>[/attempt-n]``.

    Returns:
        None if there is no transcript and no output, so that the activity is unknown.
    """
    own = run / TRANSCRIPTS_FOLDER / trial_key / f"{_STEP}.jsonl"
    if own.is_file():
        return count_calls(_own_calls(own))
    transcripts, blobs = _attempts(run / TRANSCRIPTS_FOLDER / trial_key), Blobs(run / "blobs")
    for path in transcripts:
        if replies := _replies(path, blobs):
            return count_calls(
                call for reply in replies for each in reply.reply_messages for call in tool_calls(each)
            )
    if transcripts:
        return Activity()
    outputs = _attempts(run / EVENTS_FOLDER / trial_key)
    return count_calls(calls_in_output(_lines(outputs[0]))) if outputs else None


def activity_of_log(folder: Path) -> Activity | None:
    """Count what an agent did from the log that the published harness stored beside its patch.

    Returns:
        None if there is no log or it contains no call: an agent that does not log its calls cannot be
        distinguished from one that makes none.
    """
    log = folder / PUBLISHED_LOG_FILE
    if not log.is_file():
        return None
    found = count_calls(calls_in_output(_lines(log)))
    return found if found.commands or found.edits else None


def count_calls(calls: Iterable[CountedToolCall]) -> Activity:
    """Count calls by their traits."""
    edits = replace_all = 0
    traits_by_text: dict[str, CommandTraits] = {}
    commands: list[CommandTraits] = []
    left = _MAX_SHELL_CHARS
    for call in calls:
        if call.shell_text is None:
            edits += 1
            replace_all += call.replaces_all
            continue
        if call.shell_text not in traits_by_text:
            left -= len(call.shell_text)
            traits_by_text[call.shell_text] = (
                command_traits(call.shell_text) if left >= 0 else CommandTraits(complete=False)
            )
        commands.append(traits_by_text[call.shell_text])
    return Activity(
        commands=len(commands),
        test_runs=sum(each.runs_tests for each in commands),
        bulk_edits=sum(each.bulk_edit for each in commands),
        wide_edits=sum(each.wide_edit for each in commands),
        scripted_edits=sum(each.scripted_edit for each in commands),
        edits=edits + sum(each.applies_patch for each in commands),
        replace_all=replace_all,
        unparsed=sum(not each.complete for each in commands),
    )


def _attempts(folder: Path) -> list[Path]:
    """Return the files of a CLI agent's attempts at the step, the last one first."""
    found = [
        (int(each[1]), path)
        for path in folder.glob(f"{_STEP}.attempt-*.jsonl")
        if (each := _ATTEMPT.search(path.name))
    ]
    return [path for _, path in sorted(found, reverse=True)]


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file except for overlong ones; an unreadable file has none."""
    try:
        with path.open("rb") as file:
            at_line_start = True
            while line := file.readline(_MAX_LINE_BYTES):
                ended = line.endswith(b"\n")
                if at_line_start and (ended or len(line) < _MAX_LINE_BYTES):
                    yield line
                at_line_start = ended
    except OSError:
        return


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _own_calls(path: Path) -> Iterator[CountedToolCall]:
    for line in _lines(path):
        if b'"call"' in line:
            yield from tool_calls(_unpacked(_parsed(line)))


def _replies(path: Path, blobs: Blobs) -> list[TranscriptEntry]:
    """Return the answered requests of a CLI agent's transcript; an unreadable file has none."""
    try:
        return [entry for entry in read_transcript(path, blobs) if entry.answered]
    except JournalError:
        return []


def _unpacked(value: Any) -> Any:  # noqa: ANN401 - JSON
    try:
        return value_from_json(value)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class CommandTraits:
    """What a command does at least once.

    Attributes:
        runs_tests: it runs tests.
        bulk_edit: it replaces text in place.
        wide_edit: it replaces text in place in several files.
        scripted_edit: it rewrites files by a codemod tool or a script.
        applies_patch: it applies a patch.
        complete: it was parsed completely.
    """

    runs_tests: bool = False
    bulk_edit: bool = False
    wide_edit: bool = False
    scripted_edit: bool = False
    applies_patch: bool = False
    complete: bool = True


def command_traits(text: str) -> CommandTraits:
    """Return what the shell text ``text`` does."""
    found, whole = programs_in(text)
    kinds = {bulk_edit_kind(program) for program in found}
    return CommandTraits(
        runs_tests=any(map(runs_tests, found)),
        bulk_edit=not kinds.isdisjoint({BulkEditKind.ONE_FILE, BulkEditKind.SEVERAL_FILES}),
        wide_edit=BulkEditKind.SEVERAL_FILES in kinds,
        scripted_edit=BulkEditKind.SCRIPT in kinds,
        applies_patch=any(_applies_patch(program.name, program.arguments) for program in found),
        complete=whole,
    )


def _applies_patch(name: str, arguments: tuple[str, ...]) -> bool:
    read_only = {"--check", "--stat", "--numstat", "--summary", "--dry-run", "--help"}
    applies = name in {"apply_patch", "applypatch", "patch"} or (name == "git" and "apply" in arguments[:3])
    return applies and read_only.isdisjoint(arguments)
