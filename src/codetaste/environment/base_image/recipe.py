"""The recipe of an image as data: the steps that are run in a sandbox, and the variables of the image.

``recipe.toml`` has that of the polyglot image of CodeTaste (appendix A.2), ``steps/`` its scripts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli

from codetaste.core.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).parent
STEPS_FOLDER = _FOLDER / "steps"
BASES = ("ubuntu", "debian")
"""The distributions that the polyglot image can be made of; the paper has the first."""


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One step of a recipe.

    Attributes:
        name: of its log file.
        script: for bash, run by root with ``-euo pipefail``.
        limit_s: its time limit.
        network: it gets the proxy to the allowed hosts.
        optional: its failure is reported, and the next step follows.
    """

    name: str
    script: str
    limit_s: float
    network: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is made of.

    Attributes:
        base: the distribution, as in ``BASES``.
        suite: its release.
        components: of its archive.
        steps: in their order.
        variables: of every step.
        environment: variables of the image.
    """

    base: str
    suite: str
    components: str
    steps: tuple[RecipeStep, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON data, for a key of the image's content."""
        return asdict(self)


def polyglot_image(base: str) -> str:
    """Return the default name of the polyglot image that is made of one of ``BASES``."""
    return f"codetaste/polyglot:{base}"


def polyglot_recipe(base: str) -> Recipe:
    """Return the recipe of the polyglot image, made of one of ``BASES``."""
    content = tomli.loads((_FOLDER / "recipe.toml").read_text("utf-8"))
    of_base = content["bases"][base]
    steps = tuple(
        RecipeStep(
            name=step["name"],
            script=(STEPS_FOLDER / f"{step['name']}.sh").read_text("utf-8"),
            limit_s=parse_duration(step["limit"]),
            network=step.get("network", False),
            optional=step.get("optional", False),
        )
        for step in content["steps"]
    )
    environment: dict[str, str] = content["environment"]
    variables = {
        **{name: " ".join(value.split()) for name, value in content["variables"].items()},
        **of_base["variables"],
        "IMAGE_PATH": environment["PATH"],
        "NVM_SH": (STEPS_FOLDER / "nvm.sh").read_text("utf-8"),
    }
    return Recipe(base, of_base["suite"], of_base.get("components", ""), steps, variables, environment)
