"""The result of a test run: the last line that is not blank of ``run_tests``' own standard output.

It is the JSON object ``{"passed": int, "failed": int, "skipped": int, "total": int}``. No other line counts:
tests may print to the same stream, also what looks like a result. What else looks like one is reported.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from codetaste.core.text import plural, printable
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.recorded import parse_test_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.evaluation.metrics import TestCounts

MAX_HEAD_BYTES = 4 * 1024**2
MAX_TAIL_BYTES = 4 * 1024**2
"""How much of the beginning and of the end of the output is searched."""
_MAX_RESULT_BYTES = 4096
"""A longer line is no result."""
_MAX_CONTRADICTIONS = 20
_MAX_DEPTH = 8
_SHOWN_CHARS = 120
_CUT = "…".encode()
_OBJECT = re.compile(rb"\{[^{}]*[\"'](?:passed|failed|total)[\"'][^{}]*\}")
_MARK = re.compile(rb"[\"'](?:passed|failed|total)[\"']")
_COUNT_KEYS = frozenset({"passed", "failed", "total"})


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The standard output of ``run_tests``: its beginning, its end, and how many bytes are missing between.

    If ``omitted_bytes`` is 0, ``head + tail`` is the whole output.
    """

    head: bytes
    tail: bytes = b""
    omitted_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RunResult:
    """What the output says.

    Attributes:
        counts: the result; None if there is a problem.
        problem: why there is no result: ``no_result`` or ``bad_counts``.
        message: one line on the problem for the user, "" without one.
        contradictions: other text that looks like a result, one line each.
        other_results: how many other lines are results.
    """

    counts: TestCounts | None
    problem: RunProblem | None = None
    message: str = ""
    contradictions: tuple[str, ...] = ()
    other_results: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is not blank, and where it is: its number from 1, or from the end if bytes are missing."""

    text: bytes
    place: str


def parse_run_output(output: RunOutput) -> RunResult:
    """Return the result at the end of ``output``; never raises for any content."""
    lines = _lines_of(output)
    if not lines:
        return RunResult(None, RunProblem.NO_RESULT, "run_tests printed nothing to its standard output")
    *earlier, last = lines
    found = [(line, _parse_line(line.text)) for line in earlier if _MARK.search(line.text)]
    results = [line for line, data in found if parse_test_counts(data) is not None]
    glued = [line for line, data in found if data is None and _glued_result(line.text)]
    data = _parse_line(last.text)
    problem, message, counts = _judge_last(data, last, lines, results)
    contradictions = [
        *(f"{line.place} of stdout is a result too: {_shown(line.text)}" for line in results),
        *(f"{line.place} of stdout has a result inside other text: {_shown(line.text)}" for line in glued),
    ]
    if counts is not None and counts.error is not None:
        contradictions.insert(
            0, f"the result has counts and an error: {printable(counts.error, _SHOWN_CHARS)}"
        )
    if len(contradictions) > _MAX_CONTRADICTIONS:
        more = len(contradictions) - _MAX_CONTRADICTIONS
        contradictions[_MAX_CONTRADICTIONS:] = [f"… and {plural(more, 'further line')} like these"]
    return RunResult(counts, problem, message, tuple(contradictions), len(results))


def _judge_last(
    data: object, last: _Line, lines: Sequence[_Line], results: Sequence[_Line]
) -> tuple[RunProblem | None, str, TestCounts | None]:
    shown = _shown(last.text)
    if not (isinstance(data, dict) and _COUNT_KEYS & data.keys()):
        if results:
            follow = len(lines) - 1 - max(at for at, line in enumerate(lines) if line is results[-1])
            verb = "follows" if follow == 1 else "follow"
            message = (
                f"{results[-1].place} of stdout is a result, but {plural(follow, 'line')} {verb}; "
                f"the last one must be the result, not: {shown}"
            )
        elif _glued_result(last.text):
            message = f"the last line of stdout has other text around the result: {shown}"
        elif _is_spread(lines):
            message = "the result at the end of stdout is spread over several lines; it must be one line"
        else:
            message = f"the last line of stdout is no JSON object with passed, failed and total: {shown}"
        return RunProblem.NO_RESULT, message, None
    counts = parse_test_counts(data)
    if counts is None:
        wanted = "passed, failed, skipped and total must be integers from 0 to 1,000,000,000"
        return RunProblem.BAD_COUNTS, f"{wanted}: {shown}", None
    if counts.is_crash:
        reason = printable(counts.error or "", _SHOWN_CHARS)
        return RunProblem.NO_RESULT, f"run_tests reports an error instead of counts: {reason}", None
    if counts.passed + counts.failed > counts.total:
        return RunProblem.BAD_COUNTS, f"passed and failed are more than total: {shown}", None
    return None, "", counts


def _lines_of(output: RunOutput) -> list[_Line]:
    """Return the lines that are not blank; where bytes are missing, an ellipsis begins the cut line."""
    head, tail = output.head, output.tail
    if not output.omitted_bytes:
        head += tail
        if len(head) <= MAX_HEAD_BYTES + MAX_TAIL_BYTES:
            return _numbered(head)
        tail = head[-MAX_TAIL_BYTES:]
    beginning = _numbered(head[:MAX_HEAD_BYTES].rpartition(b"\n")[0])
    parts = (_CUT + tail[-MAX_TAIL_BYTES:]).split(b"\n")
    end = [_Line(text, f"line {len(parts) - at} from the end") for at, text in enumerate(parts)]
    return [*beginning, *(line for line in end if line.text.strip() not in {b"", _CUT})]


def _numbered(text: bytes) -> list[_Line]:
    lines = [_Line(line, f"line {at}") for at, line in enumerate(text.split(b"\n"), 1)]
    return [line for line in lines if line.text.strip()]


def _parse_line(line: bytes) -> object:
    """Return the JSON value that is the whole line, None if it is not one; duplicate keys make it invalid."""
    line = line.strip()
    if not line.startswith(b"{") or len(line) > _MAX_RESULT_BYTES or line.count(b"{") > _MAX_DEPTH:
        return None
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _Invalid() if line.endswith(b"}") and _OBJECT.fullmatch(line) else None


class _Invalid(dict[str, Any]):
    """An object with the keys of a result that is not valid JSON, such as NaN or a key that occurs twice."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(_COUNT_KEYS))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _glued_result(line: bytes) -> bool:
    """Whether a part of ``line``, but not all of it, is a result."""
    part = _OBJECT.search(line[:_MAX_RESULT_BYTES]) or _OBJECT.search(line[-_MAX_RESULT_BYTES:])
    return (
        part is not None and part[0] != line.strip() and parse_test_counts(_parse_line(part[0])) is not None
    )


def _is_spread(lines: Sequence[_Line]) -> bool:
    text = b"\n".join(line.text for line in lines[-20:])[-_MAX_RESULT_BYTES:]
    start = text.rfind(b"{")
    return start >= 0 and parse_test_counts(_parse_line(text[start:])) is not None


def _shown(line: bytes) -> str:
    return printable(line.strip()[: 4 * _SHOWN_CHARS].decode("utf-8", "backslashreplace"), _SHOWN_CHARS)
