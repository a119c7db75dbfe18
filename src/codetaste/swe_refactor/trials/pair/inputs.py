"""What decides the answers of a pair beside models and settings: prompts, tools, and what tools say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.hashing import canonical_json
from codetaste.flows.inputs import CODETASTE
from codetaste.java.checkstyle.service import checkstyle_digests
from codetaste.java.jdt.service import jdt_digests
from codetaste.swe_refactor.trials.pair.review import REVIEWER_TOOLS
from codetaste.swe_refactor.trials.pair.tools import DEVELOPER_TOOLS

if TYPE_CHECKING:
    from codetaste.flows.inputs import Inputs, InputSource

DEVELOPER, FEEDBACK = "swe_refactor/pair/developer", "swe_refactor/pair/feedback"
REVIEWER, REVIEW = "swe_refactor/pair/reviewer", "swe_refactor/pair/review"
"""The prompts."""


def pair_inputs(source: InputSource) -> Inputs:
    """Return the inputs that the strategy adds. Blocking."""
    tools = [f"{tool.spec.name} {tool.digest}" for tool in (*DEVELOPER_TOOLS, *REVIEWER_TOOLS)]
    return {
        f"{CODETASTE}.tools": canonical_json(tools),
        f"{CODETASTE}.checkstyle": canonical_json(checkstyle_digests()),
        f"{CODETASTE}.jdt": canonical_json(jdt_digests()),
        **source.of_prompts([DEVELOPER, FEEDBACK, REVIEWER, REVIEW]),
    }
