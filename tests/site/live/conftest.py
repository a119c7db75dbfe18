"""Fixtures of the live view's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from codetaste.site.live import followed_run
from codetaste.site.live.access import Access
from codetaste.site.live.serve import serve_runs


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], str]]:
    """Return a function that serves a run until the test ends, and returns the server's address.

    Pages ask for changes often. What a test has set before stays.
    """
    if followed_run._MIN_INTERVAL_S:
        monkeypatch.setattr(followed_run, "_MIN_INTERVAL_S", 0.05)
        monkeypatch.setattr(followed_run, "_MAX_INTERVAL_S", 0.05)
    with ExitStack() as stack:

        def start(root: Path) -> str:
            portal = stack.enter_context(start_blocking_portal())
            served = portal.wrap_async_context_manager(serve_runs([root], None, Access("127.0.0.1"), 0))
            return stack.enter_context(served).rpartition("/live")[0]

        yield start
