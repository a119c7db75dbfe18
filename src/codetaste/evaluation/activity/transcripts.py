"""Count an agent's activity from the transcripts of a run or the logs of published outputs."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import EVENTS_FOLDER, EXECUTION_LOG_FILE, TRANSCRIPTS_FOLDER
from codetaste.core.files import open_regular_file
from codetaste.core.jsonl import JsonlFile
from codetaste.errors import JournalError
from codetaste.evaluation.activity.bulk_edits import BulkEditKind, bulk_edit_kind
from codetaste.evaluation.activity.cli_logs import calls_in_output
from codetaste.evaluation.activity.counts import Activity
from codetaste.evaluation.activity.shell_programs import programs_in
from codetaste.evaluation.activity.test_commands import runs_tests
from codetaste.evaluation.activity.tool_calls import tool_calls
from codetaste.gateway.transcript import read_transcript
from codetaste.llm.codec import value_from_json
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs

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
        return count_calls(call for message in _own_messages(own) for call in tool_calls(message))
    transcripts, blobs = _attempts(run / TRANSCRIPTS_FOLDER / trial_key), Blobs(run / BLOBS_FOLDER)
    for path in transcripts:
        if replies := _replies(path, blobs):
            messages = [message for reply in replies for message in reply.reply_messages]
            return count_calls(call for message in messages for call in tool_calls(message))
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
    log = folder / EXECUTION_LOG_FILE
    if not log.is_file():
        return None
    found = count_calls(calls_in_output(_lines(log)))
    return found if found.commands or found.edits else None


def count_calls(calls: Iterable[CountedToolCall]) -> Activity:
    """Add up what the calls do."""
    total = Activity()
    known: dict[str, Activity] = {}
    left = _MAX_SHELL_CHARS
    for call in calls:
        text = call.shell_text
        if text is None:
            total += Activity(edits=1, replace_all=int(call.replaces_all))
            continue
        if text not in known:
            left -= len(text)
            known[text] = command_activity(text) if left >= 0 else Activity(commands=1, unparsed=1)
        total += known[text]
    return total


def command_activity(text: str) -> Activity:
    """Return what the shell text ``text`` does as one command; each count is at most one."""
    programs, whole = programs_in(text)
    kinds = {bulk_edit_kind(program) for program in programs}
    in_place = not kinds.isdisjoint({BulkEditKind.ONE_FILE, BulkEditKind.SEVERAL_FILES})
    return Activity(
        commands=1,
        test_runs=int(any(map(runs_tests, programs))),
        bulk_edits=int(in_place),
        wide_edits=int(BulkEditKind.SEVERAL_FILES in kinds),
        scripted_edits=int(BulkEditKind.SCRIPT in kinds),
        edits=int(any(_applies_patch(program.name, program.arguments) for program in programs)),
        unparsed=int(not whole),
    )


def _applies_patch(name: str, arguments: tuple[str, ...]) -> bool:
    read_only = {"--check", "--stat", "--numstat", "--summary", "--dry-run", "--help"}
    applies = name in {"apply_patch", "applypatch", "patch"} or (name == "git" and "apply" in arguments[:3])
    return applies and read_only.isdisjoint(arguments)


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
        with open_regular_file(path) as file:
            at_line_start = True
            while line := file.readline(_MAX_LINE_BYTES):
                ended = line.endswith(b"\n")
                if at_line_start and (ended or len(line) < _MAX_LINE_BYTES):
                    yield line
                at_line_start = ended
    except OSError:
        return


def _own_messages(path: Path) -> Iterator[Any]:
    """Yield the messages in the transcript of our own agent loop; an unreadable file has none."""
    with suppress(JournalError):
        for line in JsonlFile(path).read():
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                yield value_from_json(line)


def _replies(path: Path, blobs: Blobs) -> list[TranscriptEntry]:
    """Return the answered requests of a CLI agent's transcript; an unreadable file has none."""
    try:
        return [entry for entry in read_transcript(path, blobs) if entry.answered]
    except JournalError:
        return []
