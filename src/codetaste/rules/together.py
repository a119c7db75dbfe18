"""Running a few coroutines at once, whose error comes out as itself and not as a group of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from codetaste.errors import CodetasteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")


async def together(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return the results of ``calls`` in order; the first CodetasteError cancels the others and is raised."""
    results: dict[int, T] = {}
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
