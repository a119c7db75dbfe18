"""Batches of lookups through GraphQL: partial replies are outcomes, batches that are too heavy are split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from codetaste.core.text import printable
from codetaste.mining.github.answer import Answer, ApiOutcome, LookupKind
from codetaste.mining.github.connection import TransientFailure
from codetaste.mining.github.pacer import RequestStopped
from codetaste.mining.github.queries import build_query
from codetaste.mining.github.replies import Text, describe_wrong_reply, read_facts

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from codetaste.mining.github.answer import Lookup
    from codetaste.mining.github.connection import ApiConnection, ApiReply
    from codetaste.mining.github.queries import BatchSize

_REFUSING = frozenset({"FORBIDDEN", "INSUFFICIENT_SCOPES", "UNPROCESSABLE"})
_COMMIT = "Commit"
_MAX_DETAIL = 200


class _GraphQLError(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Text | None = None
    path: list[Text | int] | None = None
    message: Text = ""
    extensions: dict[str, Any] | None = None

    @property
    def detail(self) -> str:
        return printable(self.message, _MAX_DETAIL) or self.type or "an error without a message"


Answers = dict["Lookup", Answer]


async def ask_next(connection: ApiConnection, size: BatchSize, waiting: deque[list[Lookup]]) -> Answers:
    """Return answers to the first of the ``waiting`` lookups, which are of one kind, valid and distinct.

    They are as many as ``size`` allows. What may pass in a smaller batch is put back.

    Raises:
        ConfigError: GitHub does not accept the token.
    """
    async with size.slots:
        if not waiting:
            return {}
        lookups = waiting.popleft()
        if len(lookups) > size.size:
            waiting.appendleft(lookups[size.size :])
            lookups = lookups[: size.size]
        try:
            answers, failed = await _ask(connection, lookups)
            if failed and len(lookups) == 1:
                answers, failed = await _ask(connection, lookups)
        except RequestStopped as stop:
            return dict.fromkeys(lookups, Answer(stop.outcome, detail=str(stop)))
        size.note(len(lookups), passed=len(answers) >= len(failed))
        if len(lookups) == 1:
            answers |= {each: Answer(ApiOutcome.UNAVAILABLE, detail=text) for each, text in failed.items()}
        else:
            parts = list(failed)[::2], list(failed)[1::2]
            waiting.extend(part for part in parts if part)
    return answers


async def _ask(connection: ApiConnection, lookups: Sequence[Lookup]) -> tuple[Answers, dict[Lookup, str]]:
    """Return what one request answers, and the failures that may pass in another one."""
    answers: Answers = {}
    try:
        answers, failed = read_answers(lookups, await connection.post(build_query(lookups)))
        if not answers:
            connection.pacer.note_failure(next(iter(failed.values())))
    except TransientFailure as error:
        failed = dict.fromkeys(lookups, str(error))
    if answers or len(lookups) > 1:
        # A batch may be too heavy: only a lookup that fails alone shows that the server fails.
        connection.pacer.note_success()
    return answers, failed


def read_answers(lookups: Sequence[Lookup], reply: ApiReply) -> tuple[Answers, dict[Lookup, str]]:
    """Return the answers in ``reply``, and the failures that may pass in a smaller batch.

    Raises:
        TransientFailure: the reply is no GraphQL reply.
    """
    errors, outside = _read_errors(reply, len(lookups))
    data = reply.data.get("data") if isinstance(reply.data, dict) else None
    if not isinstance(data, dict):
        return _read_refusal(lookups, reply, outside)
    answers: Answers = {}
    failed: dict[Lookup, str] = {}
    for number, lookup in enumerate(lookups):
        answer = _read_answer(lookup, data.get(f"x{number}"), errors.get(number, []))
        if isinstance(answer, Answer):
            answers[lookup] = answer
        else:
            failed[lookup] = answer or (outside[0].detail if outside else "no answer in the reply")
    return answers, failed


def _read_errors(reply: ApiReply, count: int) -> tuple[dict[int, list[_GraphQLError]], list[_GraphQLError]]:
    """Return the errors of each lookup by number, and those of the whole reply."""
    listed = reply.data.get("errors") if isinstance(reply.data, dict) else None
    numbers = {f"x{number}": number for number in range(count)}
    of_lookups: dict[int, list[_GraphQLError]] = {}
    outside: list[_GraphQLError] = []
    for each in listed if isinstance(listed, list) else []:
        try:
            error = _GraphQLError.model_validate(each)
        except ValidationError:
            error = _GraphQLError(message="an error that cannot be read")
        number = numbers.get(str(error.path[0])) if error.path else None
        if number is None:
            outside.append(error)
        else:
            of_lookups.setdefault(number, []).append(error)
    return of_lookups, outside


def _read_refusal(
    lookups: Sequence[Lookup], reply: ApiReply, errors: list[_GraphQLError]
) -> tuple[Answers, dict[Lookup, str]]:
    """Return what a reply without data says: the query itself is refused, or failed as a whole."""
    detail = errors[0].detail if errors else reply.message or f"GitHub answered {reply.status} without data"
    invalid = any(error.extensions and error.extensions.get("code") for error in errors)
    if invalid or reply.status != 200:  # noqa: PLR2004 - OK
        return {lookup: Answer(ApiOutcome.REFUSED, detail=detail) for lookup in lookups}, {}
    return {}, dict.fromkeys(lookups, detail)


def _read_answer(lookup: Lookup, node: object, errors: list[_GraphQLError]) -> Answer | str:
    """Return the answer, or the reason of a failure that may pass."""
    passing = [error for error in errors if error.type not in {"NOT_FOUND", *_REFUSING}]
    if passing:
        return passing[0].detail
    if node is None or (lookup.kind is not LookupKind.REPOSITORY and not _has_item(node)):
        return _read_absence(lookup, node, errors)
    try:
        return Answer(ApiOutcome.FOUND, read_facts(lookup, node))
    except ValueError as error:
        return Answer(ApiOutcome.MALFORMED, detail=describe_wrong_reply(error))


def _has_item(node: object) -> bool:
    item = node.get("item") if isinstance(node, dict) else node
    # A hash may be that of a tag or a tree.
    return item is not None and not (isinstance(item, dict) and item.get("__typename", _COMMIT) != _COMMIT)


def _read_absence(lookup: Lookup, node: object, errors: list[_GraphQLError]) -> Answer | str:
    for error in errors:
        if error.type in _REFUSING:
            return Answer(ApiOutcome.REFUSED, detail=error.detail)
    if node is None:
        return Answer(ApiOutcome.DELETED, detail=errors[0].detail) if errors else ""
    detail = errors[0].detail if errors else f"the repository has no {lookup.kind} {lookup.key}"
    return Answer(ApiOutcome.NOT_FOUND, detail=detail)
