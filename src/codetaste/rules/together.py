"""Run a few coroutines concurrently; an error is raised as itself, not as an exception group."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from codetaste.errors import CodetasteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_Result = TypeVar("_Result")


async def gather(calls: Sequence[Callable[[], Awaitable[_Result]]]) -> list[_Result]:
    """Return the results of ``calls`` in order; the first CodetasteError cancels the others and is raised."""
    results: dict[int, _Result] = {}
    errors: list[CodetasteError] = []

    async def one(number: int) -> None:
        try:
            results[number] = await calls[number]()
        except CodetasteError as error:
            errors.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number in range(len(calls)):
            group.start_soon(one, number)
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(calls))]
