"""A program in a sandbox that writes its own requests never makes a provider bill more than the budget.

The provider bills by the documented rules of its protocol, and the program sends 300 requests a way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.sandbox.local.sandbox import bubblewrap_provider
from support.attacks.run import BUDGET_USD, REQUESTS, run_attack
from support.attacks.ways import chat, messages, responses
from support.attacks.ways.way import Outcome, Way

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

LISTED = (*messages.LISTED, *responses.LISTED, *chat.LISTED)
OTHERS = (*messages.OTHERS, *responses.OTHERS, *chat.OTHERS)


@pytest.mark.parametrize("way", [pytest.param(way, id=way.name) for way in (*LISTED, *OTHERS)])
async def test_program_in_sandbox_never_makes_the_bill_exceed_the_budget(
    way: Way, tmp_path: Path, bubblewrap: Path
) -> None:
    attack = await run_attack(way, tmp_path, bubblewrap_provider(tmp_path / "sandboxes"))
    provider, outcome = attack.provider, way.outcome
    print(f"{way.protocol}: {way.name}: {attack}")  # noqa: T201
    assert attack.sent == REQUESTS
    in_excess = way.connections * provider.highest_usd if outcome is Outcome.DISPUTED else 0
    assert provider.usd <= BUDGET_USD + in_excess
    assert provider.usd <= attack.settled_usd + attack.unknown_usd
    assert bool(attack.disputes) == (outcome is Outcome.DISPUTED)
    if outcome in (Outcome.BOUNDED, Outcome.PARTLY_REFUSED):
        assert len(provider.charges) > 1
    if outcome in (Outcome.BOUNDED, Outcome.DISPUTED) and way.feature:
        assert provider.features[way.feature] > 0
    if outcome is Outcome.REFUSED:
        assert provider.charges == []
    if outcome in (Outcome.REFUSED, Outcome.PARTLY_REFUSED):
        assert provider.features[way.feature] == 0
        assert any((way.named or way.feature) in message for message in attack.messages), attack.messages
