"""Read the reports that a test run has written in its sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.sandbox.base import CommandLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.test_runs.cases import CaseStatus
    from codetaste.sandbox.base import Sandbox


async def collect_cases(
    sandbox: Sandbox, counts: TestCounts | None
) -> tuple[Mapping[str, CaseStatus], tuple[str, ...]]:
    """Return the tests of the reports by name, and what in them contradicts ``counts``."""
    raise NotImplementedError
