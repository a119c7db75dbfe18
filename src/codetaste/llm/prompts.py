"""Prompt templates: one Markdown file each under ``prompts/``, rendered with jinja2.

A template that uses an undefined name is an error, so that no model receives an incomplete prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.core.files import read_text_file
from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

_MAX_PROMPT_BYTES = 4 * 1024**2
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*")


@dataclass(frozen=True)
class Prompt:
    """The template in one prompt file."""

    name: str
    text: str

    @cached_property
    def digest(self) -> str:
        """The sha256 of the text in hex, for fingerprints."""
        return sha256(self.text.encode()).hexdigest()

    def render(self, **values: Any) -> str:  # noqa: ANN401 - template values
        """Return the text with ``values`` filled in, without leading and trailing white space.

        Raises:
            ConfigError: the template uses a name that is not in ``values``, or is not valid.
        """
        from jinja2 import TemplateError  # noqa: PLC0415 - heavy

        try:
            return _environment().from_string(self.text).render(values).strip()
        except TemplateError as error:
            line = getattr(error, "lineno", None)
            place = f"prompts/{self.name}.md" + (f":{line}" if line else "")
            given = ", ".join(sorted(values)) or "nothing"
            raise ConfigError(f"{place}: {error.message or type(error).__name__} (given: {given})") from error


@cache
def load_prompt(name: str, *, folder: Path | None = None) -> Prompt:
    """Read ``<name>.md`` once from ``folder``, by default from ``prompts/`` of this installation.

    Raises:
        ConfigError: the prompt does not exist, or is not UTF-8.
    """
    place = folder or resource_dir("prompts")
    path = place / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.is_file():
        known = ", ".join(
            sorted(str(each.relative_to(place).with_suffix("")) for each in place.rglob("*.md"))
        )
        raise ConfigError(f"no prompt {name!r} in {place} (there are: {known or 'none'})")
    try:
        return Prompt(name, read_text_file(path, _MAX_PROMPT_BYTES))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from error


def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - heavy

    # No loader: a prompt is one file, so that its digest covers all of it.
    return Environment(
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - text for a model, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
    )
