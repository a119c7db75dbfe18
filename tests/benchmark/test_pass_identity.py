"""A pass of rule discovery is read from the key of its job, and from no other key."""

from __future__ import annotations

import pytest

from codetaste.benchmark.pass_identity import PassIdentity, pass_of_job
from codetaste.rules.registration import Direction


@pytest.mark.parametrize("direction", Direction)
def test_key_of_job_has_identity_of_its_pass(direction: Direction) -> None:
    identity = PassIdentity("m.1", "x__y-01234567", direction)
    assert identity.key == f"discover/m.1/x__y-01234567/{direction.value}"
    assert pass_of_job(identity.key) == identity


@pytest.mark.parametrize(
    "key",
    [
        *("", "discover", "discover/m/x", "discover/m/x/both", "discover/m/x/additive/plan"),
        *("infer/m/x/additive", "sources/x", "discover/additive"),
    ],
)
def test_other_keys_belong_to_no_pass(key: str) -> None:
    assert pass_of_job(key) is None
