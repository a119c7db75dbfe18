"""Fixtures of the site's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium for the tests of one module; they are heavy."""
    from support.site.browser import chromium_path, open_browser

    if chromium_path() is None:
        pytest.skip("no chromium on PATH")
    with open_browser() as opened:
        yield opened
