"""Prompt templates: one Markdown file each under ``prompts/``, rendered with jinja2.

The name of a prompt in a sub-folder has a slash. A template that uses an undefined name is an error, so that
no model receives an incomplete prompt. ``[run] prompts`` names a folder whose files replace those of the same
name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from codetaste.core.files import read_text_file
from codetaste.core.paths import resource_dir
from codetaste.core.text import did_you_mean, one_line
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jinja2 import Environment, Template

_MAX_PROMPT_BYTES = 4 * 1024**2
_README = "README.md"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The template in one prompt file."""

    name: str
    text: str
    path: Path

    def render(self, **values: Any) -> str:  # noqa: ANN401 - template values
        """Return the text with ``values`` filled in, without leading and trailing white space.

        Raises:
            ConfigError: the template uses a name that is not in ``values``, or is not valid.
        """
        try:
            return _template(self.text).render(values).strip()
        except Exception as error:  # a template can fail with any
            given = ", ".join(sorted(values)) or "nothing"
            raise ConfigError(f"{self._fault(error)} (given: {given})") from error

    def names(self) -> frozenset[str]:
        """Return the names of values that the template uses.

        Raises:
            ConfigError: it is not a valid template.
        """
        try:
            return _names_in(self.text)
        except Exception as error:
            raise ConfigError(self._fault(error)) from error

    def _fault(self, error: Exception) -> str:
        line = getattr(error, "lineno", None)
        place = f"{self.path}:{line}" if line else str(self.path)
        return f"{place}: {one_line(error) or type(error).__name__}"


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a run: a file in ``folder``, if there is any, replaces the installed one of its name."""

    folder: Path | None = None

    def load(self, name: str) -> Prompt:
        """Return the prompt ``name``.

        Raises:
            ConfigError: it is not UTF-8, or cannot be read.
        """
        own = self.folder is not None and (self.folder / f"{name}.md").exists()
        return load_prompt(name, folder=self.folder if own else None)


def open_prompts(folder: Path) -> Prompts:
    """Return the prompts with those that the files of ``folder`` replace.

    Raises:
        ConfigError: it is not a folder, or one of its Markdown files replaces no prompt, cannot be read, or
            is no template for the values that the prompt is given.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    prompts, problems = Prompts(folder), list[str]()
    known, replaced = _names(resource_dir("prompts")), _names(folder)
    for name in replaced:
        if name not in known:
            problems.append(f"{folder / name}.md replaces no prompt{did_you_mean(name, known)}")
            continue
        try:
            problems.extend(_problems_of_own(load_prompt(name, folder=folder)))
        except ConfigError as error:
            problems.extend(error.problems)
    if not replaced:
        problems.append(f"{folder} has no prompt; the names are {', '.join(sorted(known))}, each with .md")
    if problems:
        raise ConfigError(*problems)
    return prompts


def _names(folder: Path) -> list[str]:
    """Return the sorted names of the prompts in a folder and those below it."""
    paths = (path for path in folder.rglob("*.md") if path.name != _README)
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in paths)


def _problems_of_own(prompt: Prompt) -> Iterator[str]:
    """Compare a prompt with the installed one, which uses all values that it is given."""
    if not prompt.text.strip():
        yield f"{prompt.path}: it is empty"
    given = load_prompt(prompt.name).names()
    for name in sorted(prompt.names() - given):
        hint = did_you_mean(name, sorted(given)) or " (this prompt is given none)"
        yield f"{prompt.path}: there is no value {name!r}{hint}"


@cache
def load_prompt(name: str, *, folder: Path | None = None) -> Prompt:
    """Read ``<name>.md`` once from ``folder``, by default from ``prompts/`` of this installation.

    Raises:
        ConfigError: the prompt does not exist, or is not UTF-8.
    """
    place = folder or resource_dir("prompts")
    path = place / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.exists():
        known = ", ".join(_names(place))
        raise ConfigError(f"no prompt {name!r} in {place} (there are: {known or 'none'})")
    try:
        return Prompt(name, read_text_file(path, _MAX_PROMPT_BYTES), path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from error


@lru_cache(maxsize=256)
def _template(text: str) -> Template:
    return _environment().from_string(text)


@lru_cache(maxsize=256)
def _names_in(text: str) -> frozenset[str]:
    from jinja2 import meta  # noqa: PLC0415 - heavy

    environment = _environment()
    return frozenset(meta.find_undeclared_variables(environment.parse(text)) - environment.globals.keys())


def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - heavy

    # No loader: a prompt is one file, so that its text decides all of it.
    return Environment(
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - text for a model, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
    )
