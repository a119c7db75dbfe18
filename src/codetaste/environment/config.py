"""``[environment]``: how execution environments are built."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field

from codetaste.core.section import Section
from codetaste.core.units import Seconds, Usd
from codetaste.sandbox.config import ImageName

PAPER_BUDGET_USD = Decimal(5)
"""The budget of a setup agent (CodeTaste §3.3)."""
PAPER_TIME_LIMIT_S = 90 * 60.0
"""The time limit of a setup agent."""
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9.-]+(:[0-9]{1,5})?(=\S+)?|\[[0-9a-fA-F:]+\](:[0-9]{1,5})?(=\S+)?")


def _check_host(host: str) -> str:
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host!r} is no host; write it as in packages.example.org or *.example.org:8443")
    return host


class EnvironmentConfig(Section):
    """``[environment]``: a container image for each instance in which its tests run on R and on R∘X*.

    Scripts that the benchmark has, and the environments of the same repository at other commits, are tried
    first; only then is the agent called.
    """

    agent: str | None = None
    """The id of the one of [[agents]] that sets up environments; without it only existing scripts and
    neighbours are tried."""
    budget_usd: Usd = PAPER_BUDGET_USD
    """US dollars for one instance, all rounds of the agent together."""
    time_limit: Seconds = PAPER_TIME_LIMIT_S
    """Working time of the agent at one instance, all rounds together; the gates' test runs do not count."""
    rounds: int = Field(default=3, ge=1, le=20)
    """How often the agent is called; from the second time on with what the gates found."""
    image: ImageName = ""
    """The image that environments are made from; "" is that of `codetaste image build --polyglot`."""
    registries: bool = True
    """Whether the agent reaches the package registries that this host's pip, npm, go, cargo, Maven and apt
    use."""
    hosts: tuple[Annotated[str, AfterValidator(_check_host)], ...] = ()
    """Further hosts that the agent and the setup scripts reach."""
    neighbours: bool = True
    """Whether environments of the same repository at other commits are tried before the agent is called."""
    setup_time_limit: Seconds = 30 * 60.0
    """Time limit of one run of the setup scripts."""
    test_time_limit: Seconds = 15 * 60.0
    """Time limit of one run of the tests; the paper's is 15 minutes."""
