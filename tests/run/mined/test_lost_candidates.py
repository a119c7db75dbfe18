"""Only what an instance itself is to blame for takes it out of a run that mines."""

from __future__ import annotations

import pytest

from codetaste.benchmark.instance import Instance
from codetaste.errors import Cause
from codetaste.flows.mine.candidates import MinedCandidate
from codetaste.mining.commit import CommitRecord
from codetaste.orchestration.job import Outcome, Status
from codetaste.orchestration.shortfall import Shortfall
from codetaste.report.summary import SummaryLine
from codetaste.run.mined.assembly import _lost

INSTANCE = Instance("acme", "anvil", "0123456789" * 4, "9876543210" * 4)
CANDIDATE = MinedCandidate(INSTANCE, CommitRecord("acme/anvil", INSTANCE.golden_commit_hash), 0.5, None)
ID = INSTANCE.id


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        (Outcome(f"describe/{ID}/open", Status.FAILED, cause=Cause.MALFORMED, error="no sentence"), True),
        (Outcome(f"describe/{ID}/open", Status.FAILED, cause=Cause.UNAVAILABLE, error="503"), False),
        (Outcome(f"describe/{ID}/open", Status.FAILED, cause=Cause.REFUSED, error="401"), False),
        (Outcome(f"describe/{ID}/open", Status.BUDGET_EXCEEDED, cause=Cause.BUDGET), False),
        (Outcome(f"sources/{ID}", Status.FAILED, cause=Cause.SOURCE, error="no network"), False),
        (Outcome(f"infer/a/open/direct/{ID}/execute", Status.FAILED, cause=Cause.MALFORMED), False),
        (Outcome(f"environment/{ID}", Status.DONE, shortfall=Shortfall("no_environment", "gates")), True),
        (
            Outcome(f"environment/{ID}", Status.DONE, shortfall=Shortfall("x", "no disk", transient=True)),
            False,
        ),
        (Outcome("describe/other/open", Status.FAILED, cause=Cause.MALFORMED), False),
    ],
)
def test_candidate_leaves_only_for_its_own_faults(outcome: Outcome, lost: bool) -> None:
    found = dict(_lost([SummaryLine(outcome, "title", "")], [CANDIDATE]))
    assert set(found) == ({ID} if lost else set())
