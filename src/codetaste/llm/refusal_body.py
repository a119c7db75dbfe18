"""Limit how much of an error response is read; the official SDKs read bodies to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAX_ERROR_BYTES = 1024 * 1024
"""Larger than any provider's error message."""


async def limit_error_body(response: httpx2.Response) -> None:
    """Truncate the body of an error response to ``MAX_ERROR_BYTES``; an httpx response hook."""
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _TruncatedStream(response.stream)


class _TruncatedStream(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ERROR_BYTES
        async for chunk in self._whole:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()
