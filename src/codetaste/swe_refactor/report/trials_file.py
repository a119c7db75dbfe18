"""The file with the rows of a run: written when the trials have ended, read for reports.

A line is one JSON object: the fields of ``TrialRow``, ``counted``, ``success``, and ``score``, all metrics.
Amounts are exact decimals as text. Keys may be added.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from codetaste.core.files import lines_of, open_regular_file, write_atomically
from codetaste.core.hashing import canonical_json
from codetaste.core.text import one_line, printable, replace_surrogates
from codetaste.errors import ConfigError
from codetaste.swe_refactor.report.failures.category import FailureCategory
from codetaste.swe_refactor.report.outcome import OUTCOMES, TrialOutcome
from codetaste.swe_refactor.report.trial_row import TrialKey, TrialRow, verdicts_of
from codetaste.swe_refactor.score.answer_score import AnswerScore
from codetaste.swe_refactor.score.check import CheckOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

_MAX_USD: Final = Decimal(10) ** 9
_MAX_VALUE_CHARS: Final = 60


def write_trials(path: Path, rows: Iterable[TrialRow]) -> None:
    """Write a file with the rows. Blocking.

    Raises:
        StorageFull: no space left.
        JournalError: the file cannot be written.
    """
    write_atomically(path, "".join(f"{canonical_json(trial_to_json(row))}\n" for row in rows))


def update_trials(path: Path, rows: Iterable[TrialRow], unfinished: Collection[TrialKey]) -> None:
    """Write the rows of a session; lines of an earlier one stay for trials that it did not finish. Blocking.

    Args:
        path: the file; one that is damaged is replaced.
        rows: of all trials of the session.
        unfinished: those that were stopped before they ended.

    Raises:
        StorageFull: no space left.
        JournalError: the file cannot be written.
    """
    made = {row.key: canonical_json(trial_to_json(row)) for row in rows}
    earlier = {key: line for key, line in _lines_by_trial(path) if key not in made or key in unfinished}
    write_atomically(path, "".join(f"{line}\n" for line in (made | earlier).values()))


def _lines_by_trial(path: Path) -> Iterator[tuple[TrialKey, str]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        try:
            data = json.loads(line)
            yield TrialKey(*(data[name] for name in TrialKey._fields)), line
        except (ValueError, LookupError, TypeError):
            continue


def trial_to_json(row: TrialRow) -> dict[str, Any]:
    """Return a row as the JSON object of its line."""
    names = (name for name in TrialRow.__slots__ if name not in {"cost_usd", "score"})
    return {
        **{name: getattr(row, name) for name in names},
        "counted": row.counted,
        "success": row.success,
        "cost_usd": None if row.cost_usd is None else f"{row.cost_usd:f}",
        "score": None if row.score is None else row.score.to_json(),
    }


def read_trials(path: Path) -> list[TrialRow]:
    """Return the rows of a file. Blocking.

    Raises:
        ConfigError: it cannot be read; or a line is no such row, contradicts itself, or is the same trial as
            another one: the first such line is named.
    """
    rows: list[TrialRow] = []
    places: dict[TrialKey, int] = {}
    try:
        with open_regular_file(path) as file:
            for number, line in enumerate(lines_of(file, path), 1):
                place = f"{path}, line {number}"
                row = _parse_row(line, place)
                first = places.setdefault(row.key, number)
                if first != number:
                    raise ConfigError(f"{place}: the same trial as line {first} ({printable(str(row.key))})")
                rows.append(row)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    return rows


def _parse_row(line: bytes, place: str) -> TrialRow:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: not valid JSON: {one_line(error)}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{place}: must be a JSON object with the result of a trial")
    try:
        read = _Line.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{place}: {'; '.join(_messages(error))}") from None
    row = TrialRow(**{name: getattr(read, name) for name in _Line.model_fields if name != "score"})
    try:
        score = None if read.score is None else AnswerScore.from_json(read.score)
        problem = _contradiction(row, score)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"score: not the metrics of an answer ({one_line(repr(error), _MAX_VALUE_CHARS)})"
    if problem:
        raise ConfigError(f"{place}: {problem}")
    return replace(row, score=score)


def _contradiction(row: TrialRow, score: AnswerScore | None) -> str:
    """Return what in a line contradicts itself, "" if nothing does."""
    if row.success != (row.outcome is CheckOutcome.VERIFIED):
        return f"outcome: {row.outcome} contradicts compiles_and_passes and verified"
    verdicts = {} if score is None else verdicts_of(score)._asdict()
    return next(
        (f"{name}: contradicts score" for name, value in verdicts.items() if getattr(row, name) != value), ""
    )


def _usd(value: Any) -> Decimal | None:  # noqa: ANN401 - JSON data
    if value is None:
        return None
    if not isinstance(value, str) or not value.isascii():
        raise ValueError("must be an amount of US dollars as text")
    try:
        amount = Decimal(value)
    except ArithmeticError:
        raise ValueError("must be an amount of US dollars as text") from None
    if not amount.is_finite() or not 0 <= amount <= _MAX_USD:
        raise ValueError(f"must be an amount of 0 to {_MAX_USD:,} US dollars")
    return amount


def _outcome(value: Any) -> TrialOutcome:  # noqa: ANN401 - JSON data
    if not isinstance(value, str) or value not in OUTCOMES:
        raise ValueError("no outcome of a trial")
    return OUTCOMES[value]


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


_Text = Annotated[str, BeforeValidator(replace_surrogates)]
_Name = Annotated[_Text, Field(max_length=1_000), AfterValidator(_not_empty)]
_Failure = Annotated[
    FailureCategory | None,
    BeforeValidator(lambda value: FailureCategory(value) if isinstance(value, str) else value),
]


class _Line(BaseModel):
    """A line, with the fields of ``TrialRow``."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    run: _Text
    strategy: _Name
    model: _Name
    model_label: _Text
    scripted: bool
    instance: _Name
    project: _Text
    type: _Name
    attempt: int = Field(ge=1, le=10**6)
    outcome: Annotated[TrialOutcome, BeforeValidator(_outcome)]
    compiles_and_passes: bool
    verified: bool
    published_check: bool
    codebleu: float | None = Field(ge=0, le=1)
    cost_usd: Annotated[Decimal | None, BeforeValidator(_usd)]
    turns: int | None = Field(ge=0, le=10**9)
    wall_s: float | None = Field(ge=0, le=10**12)
    failure: _Failure
    detail: _Text
    score: dict[str, Any] | None


def _messages(error: ValidationError) -> Iterator[str]:
    """Yield what is wrong with each key."""
    for fault in error.errors(include_url=False):
        key = printable(".".join(map(str, fault["loc"][:1])), _MAX_VALUE_CHARS)
        if fault["type"] == "missing":
            yield f"{key}: missing"
        else:
            value = one_line(repr(fault["input"]), _MAX_VALUE_CHARS)
            yield f"{key}: {fault['msg'].removeprefix('Value error, ')} (it is {printable(value)})"
