"""Batches of lookups through GraphQL: partial replies are outcomes, batches that are too heavy are split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from codetaste.core.text import printable
from codetaste.mining.github.answer import Answer, ApiOutcome, LookupKind
from codetaste.mining.github.connection import ReplyTooLarge, TransientFailure
from codetaste.mining.github.pacer import RequestStopped
from codetaste.mining.github.queries import build_query
from codetaste.mining.github.replies import Text, describe_wrong_reply, read_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.mining.github.answer import Lookup
    from codetaste.mining.github.connection import ApiConnection, ApiReply

_TRIES_ALONE = 2
"""Attempts for a lookup that is alone in its batch."""
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


async def ask_batch(connection: ApiConnection, lookups: Sequence[Lookup], tries: int = 0) -> Answers:
    """Return the answer to each of ``lookups``, which are of one kind, valid and distinct.

    Raises:
        ConfigError: GitHub does not accept the token.
    """
    try:
        reply = await connection.post(build_query(lookups))
        answers, failed = read_answers(lookups, reply)
    except RequestStopped as stop:
        return dict.fromkeys(lookups, Answer(stop.outcome, detail=str(stop)))
    except ReplyTooLarge as error:
        answers, failed = {}, dict.fromkeys(lookups, str(error))
        tries = _TRIES_ALONE
    except TransientFailure as error:
        answers, failed = {}, dict.fromkeys(lookups, str(error))
    else:
        if answers:
            connection.pacer.note_success()
        else:
            connection.pacer.note_failure(next(iter(failed.values())))
    for part in _parts(list(failed), len(lookups)):
        if len(part) == 1 == len(lookups) and tries + 1 >= _TRIES_ALONE:
            answers[part[0]] = Answer(ApiOutcome.UNAVAILABLE, detail=failed[part[0]])
        else:
            answers |= await ask_batch(connection, part, tries + 1 if len(lookups) == 1 else 0)
    return answers


def _parts(failed: list[Lookup], size: int) -> list[list[Lookup]]:
    """Divide the failed lookups of a batch of ``size`` into smaller batches."""
    if len(failed) < size or size == 1:
        return [failed] if failed else []
    return [failed[: size // 2], failed[size // 2 :]]


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
