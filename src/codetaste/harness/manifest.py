"""``agent.toml``: all that is said of a command-line agent, beside the scripts that install and run it.

What its standard output tells is said by patterns, so that no agent needs code here. A *place* in an event is
a dotted path of keys; ``*`` stands for every member of a table or list there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from codetaste.section import Section

if TYPE_CHECKING:
    from typing import Self

Protocol = Literal["anthropic", "openai", "openai-chat", "none"]
Outcome = Literal["success", "budget", "error"]
Scalar = bool | int | str
Wanted = Scalar | tuple[Scalar, ...]
"""What must stand at a place: this, or one of these."""
VERSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,39}$"
NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,39}$"
_RESERVED = ("CODETASTE_", "LD_")
_MOST_EXIT_CODE = 255


def _place(text: str) -> str:
    if not re.fullmatch(r"[^.\s]+(\.[^.\s]+)*", text):
        raise ValueError("a place is keys with dots between them, such as message.usage.input_tokens")
    return text


Place = Annotated[str, AfterValidator(_place)]


class Option(Section):
    """``[options.NAME]``: a setting of the program that a config may change."""

    default: Scalar
    """What holds where the config says nothing; a config's value is of the same kind."""
    choices: tuple[Scalar, ...] = ()
    """What it may be; nothing means anything of its kind."""
    about: str = ""
    """What it is, for people."""

    @model_validator(mode="after")
    def _default_is_a_choice(self) -> Self:
        if self.choices and self.default not in self.choices:
            raise ValueError("default is none of choices")
        return self


class Ending(Section):
    """``[[ends]]``: an event that ends a run.

    Of an event the first entry that fits decides; of a run, the last such event.
    """

    when: dict[Place, Wanted]
    """Places and what must stand there."""
    outcome: Outcome
    """What the program says by it."""
    message: Place | None = None
    """Where its last words are; otherwise those that [message] finds."""
    failures: tuple[str, ...] = ()
    """How last words begin that tell of a failure, whatever else the event says."""
    words: bool = False
    """Whether a success always has last words: without any it is not believed."""


class Pick(Section):
    """Which parts of which events are meant."""

    when: dict[Place, Wanted] = Field(default_factory=dict)
    """Of an event: places and what must stand there."""
    each: Place | None = None
    """A list in the event whose members are looked at, one by one; otherwise the event itself is."""
    where: dict[Place, Wanted] = Field(default_factory=dict)
    """Of such a member: places and what must stand there."""


class Counted(Pick):
    """``[turns]``, ``[tool_calls]``: how many parts there are, where no last event tells."""

    distinct: Place | None = None
    """Parts with the same value there count as one."""


class Said(Pick):
    """``[message]``: where the program's words are."""

    text: Place


class Figures(Section):
    """``[figures]``: where ending events have their numbers.

    What a program says of its own cost is kept beside what the gateway measured, and never taken for it.
    """

    cost_usd: Place | None = None
    turns: Place | None = None
    input: Place | None = None
    cache_read: Place | None = None
    cache_write: Place | None = None
    output: Place | None = None
    reasoning: Place | None = None
    input_has_cached: bool = False
    """Whether ``input`` counts the tokens of ``cache_read`` and ``cache_write`` too."""


class Manifest(Section):
    """The whole of an ``agent.toml``."""

    protocol: Protocol
    """What it speaks to its model; "none" for a program without one."""
    versions: tuple[str, ...] = Field(min_length=1)
    """The releases that it was tried with."""
    default: str
    """The release that is taken where a config says nothing."""
    about: str = ""
    """What it is, for people."""
    install: str = "install.sh"
    """The script that installs it; see docs/adding-an-agent.md. "" if there is nothing to install."""
    run: str = "run.sh"
    """The script that runs it, and that says its version when it is called with --version."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables that the run script starts with."""
    options: dict[str, Option] = Field(default_factory=dict)
    ends: tuple[Ending, ...] = ()
    """Without any, the exit code alone tells how a run ended."""
    message: Said | None = None
    turns: Counted | None = None
    tool_calls: Counted | None = None
    figures: Figures = Figures()
    exit_codes: dict[str, str] = Field(default_factory=dict)
    """What some exit codes mean, for people."""

    @field_validator("versions")
    @classmethod
    def _versions_are_names(cls, versions: tuple[str, ...]) -> tuple[str, ...]:
        for version in versions:
            if not re.fullmatch(VERSION_PATTERN, version):
                raise ValueError(f"{version!r} cannot be part of a folder's name")
        return versions

    @field_validator("install", "run")
    @classmethod
    def _a_file_beside(cls, name: str) -> str:
        if "/" in name or name.startswith("."):
            raise ValueError("the name of a file beside agent.toml")
        return name

    @field_validator("env")
    @classmethod
    def _env_is_its_own(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith(_RESERVED):
                raise ValueError(f"{name!r} is no variable that can be set here")
        return env

    @field_validator("options")
    @classmethod
    def _options_become_variables(cls, options: dict[str, Option]) -> dict[str, Option]:
        for name in options:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ValueError(f"{name!r}: an option's name has small letters, digits and _")
        return options

    @field_validator("exit_codes")
    @classmethod
    def _codes_are_codes(cls, codes: dict[str, str]) -> dict[str, str]:
        for code in codes:
            if not code.isascii() or not code.isdigit() or int(code) > _MOST_EXIT_CODE:
                raise ValueError(f"{code!r} is no exit code")
        return codes

    @model_validator(mode="after")
    def _default_is_a_version(self) -> Self:
        if self.default not in self.versions:
            raise ValueError(f"default: {self.default!r} is none of versions")
        if not self.run:
            raise ValueError("run: the name of a file beside agent.toml")
        return self

    def settled(self, given: dict[str, Any]) -> dict[str, Scalar]:
        """Return all options with their values: what is ``given``, and the defaults.

        Raises:
            ValueError: the arguments are one line for each mistake.
        """
        from codetaste.mistakes import suggestion  # noqa: PLC0415 - only for what is wrong

        wrong = [
            f"{name}: unknown option{suggestion(name, list(self.options))}"
            for name in given
            if name not in self.options
        ]
        for name, option in self.options.items():
            value = given.get(name, option.default)
            if type(value) is not type(option.default):
                wrong.append(f"{name}: {value!r} is not of the kind of {option.default!r}")
            elif option.choices and value not in option.choices:
                wrong.append(f"{name}: {value!r} is none of {', '.join(map(str, option.choices))}")
        if wrong:
            raise ValueError(*wrong)
        return {name: given.get(name, option.default) for name, option in self.options.items()}
