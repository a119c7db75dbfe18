"""The recipe of an image as data: the steps that are run in a sandbox, and the variables of the image.

``recipe.toml`` has that of the polyglot image of CodeTaste (appendix A.2), ``steps/`` its scripts; ``java/``
has the same of the image in which Java projects of SWE-Refactor are built (§3.3, step 4).
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
_JAVA_FOLDER = _FOLDER / "java"
JAVA_STEPS_FOLDER = _JAVA_FOLDER / "steps"
JAVA_IMAGE = "codetaste/java:sid"
"""The default name of the Java image."""
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
        apt_options: of apt, while the root file system is made and in the image.
    """

    base: str
    suite: str
    components: str
    steps: tuple[RecipeStep, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    apt_options: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON data, for a key of the image's content."""
        data = asdict(self)
        if not self.apt_options:
            del data["apt_options"]  # keys of recipes without them are older than the field
        return data


def polyglot_image(base: str) -> str:
    """Return the default name of the polyglot image that is made of one of ``BASES``."""
    return f"codetaste/polyglot:{base}"


def polyglot_recipe(base: str) -> Recipe:
    """Return the recipe of the polyglot image, made of one of ``BASES``."""
    return _read_recipe(_FOLDER, base, {"NVM_SH": (STEPS_FOLDER / "nvm.sh").read_text("utf-8")})


def java_recipe() -> Recipe:
    """Return the recipe of the Java image."""
    return _read_recipe(_JAVA_FOLDER, "debian", {})


def _read_recipe(folder: Path, base: str, more_variables: Mapping[str, str]) -> Recipe:
    content = tomli.loads((folder / "recipe.toml").read_text("utf-8"))
    of_base = content["bases"][base]
    steps = tuple(
        RecipeStep(
            name=step["name"],
            script=(folder / "steps" / f"{step['name']}.sh").read_text("utf-8"),
            limit_s=parse_duration(step["limit"]),
            network=step.get("network", False),
            optional=step.get("optional", False),
        )
        for step in content["steps"]
    )
    environment: dict[str, str] = content["environment"]
    variables = {
        **{name: " ".join(value.split()) for name, value in content["variables"].items()},
        **of_base.get("variables", {}),
        "IMAGE_PATH": environment["PATH"],
        **more_variables,
    }
    return Recipe(
        base,
        of_base["suite"],
        of_base.get("components", ""),
        steps,
        variables,
        environment,
        tuple(of_base.get("apt_options", ())),
    )
