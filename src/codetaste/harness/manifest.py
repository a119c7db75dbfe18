"""``agent.toml``: the description of a CLI agent, beside the scripts that install and run it.

Patterns describe its standard output, so that no agent needs code in codetaste. A *path* in an event is a
dotted path of keys; ``*`` matches every member of a table or list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, field_validator, model_validator

from codetaste.core.section import Section
from codetaste.core.text import did_you_mean
from codetaste.llm.wire.protocols import ProtocolName

if TYPE_CHECKING:
    from typing import Self

AgentProtocol = Literal[ProtocolName, "none"]
ReportedOutcome = Literal[
    "success",
    "budget",
    "error",
    "timeout",
    "execution_error",
    "unknown",
    "error_planmode",
    "error_multiplan",
    "error_judge",
]
Scalar = bool | int | str
ExpectedValue = Scalar | tuple[Scalar, ...]
"""The value required at a path: this one, or one of these."""
VERSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,39}$"
NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,39}$"
_RESERVED_PREFIXES = ("CODETASTE_", "LD_")
_MAX_EXIT_CODE = 255


def _check_path(text: str) -> str:
    if not re.fullmatch(r"[^.\s]+(\.[^.\s]+)*", text):
        raise ValueError("expected keys separated by dots, such as message.usage.input_tokens")
    return text


def check_env(env: dict[str, str]) -> dict[str, str]:
    """Return ``env`` if an agent's program may have these environment variables.

    Raises:
        ValueError: one of them is not a variable, or reserved.
    """
    for name in env:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith(_RESERVED_PREFIXES):
            raise ValueError(f"{name!r} is not a variable that can be set here")
    return env


EventPath = Annotated[str, AfterValidator(_check_path)]


class AgentOption(Section):
    """``[options.NAME]``: a setting of the agent that a config may change."""

    default: Scalar
    """The value if the config has none; a config's value must have the same type."""
    choices: tuple[Scalar, ...] = ()
    """The allowed values; empty allows any value of the type."""
    about: str = ""
    """Description for users."""

    @model_validator(mode="after")
    def _check_default(self) -> Self:
        if self.choices and self.default not in self.choices:
            raise ValueError("default is not one of choices")
        return self


class EndEvent(Section):
    """``[[end_events]]``: an event that ends a run.

    The first matching entry decides what an event means; the last such event decides the run's outcome.
    """

    when: dict[EventPath, ExpectedValue]
    """Paths and the values required there."""
    outcome: ReportedOutcome
    """The outcome that the event reports."""
    message: EventPath | None = None
    """Path of the last message; by default the message that [message] finds."""
    failure_prefixes: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("failure_prefixes", "failures")
    )
    """Beginnings of a last message that mean a failure, even if the event reports a success."""
    failure_pattern: re.Pattern[str] | None = None
    """Regular expression that finds a failure in a last message."""
    requires_message: bool = Field(default=False, validation_alias=AliasChoices("requires_message", "words"))
    """Whether every success has a last message; a reported success without one counts as an error."""


class EventPattern(Section):
    """Selects parts of events."""

    when: dict[EventPath, ExpectedValue] = Field(default_factory=dict)
    """Paths in the event and the values required there."""
    each: EventPath | None = None
    """Path of a list in the event whose members are the parts; by default the event is the only part."""
    where: dict[EventPath, ExpectedValue] = Field(default_factory=dict)
    """Paths in a part and the values required there."""


class CountPattern(EventPattern):
    """``[turns]``, ``[tool_calls]``: the number of matching parts, used if no end event has the number."""

    distinct: EventPath | None = None
    """Parts with the same value at this path count as one."""


class TextPattern(EventPattern):
    """``[message]``: the text of the agent's messages."""

    text: EventPath


class NumberFields(Section):
    """``[numbers]``: the paths of numbers in end events.

    The cost that an agent reports is stored beside the cost that the gateway measured, and never replaces it.
    """

    cost_usd: EventPath | None = None
    turns: EventPath | None = None
    input: EventPath | None = None
    cache_read: EventPath | None = None
    cache_write: EventPath | None = None
    output: EventPath | None = None
    reasoning: EventPath | None = None
    input_includes_cached: bool = Field(
        default=False, validation_alias=AliasChoices("input_includes_cached", "input_has_cached")
    )
    """Whether ``input`` includes the tokens of ``cache_read`` and ``cache_write``."""


class AgentManifest(Section):
    """The schema of ``agent.toml``."""

    protocol: AgentProtocol
    """The protocol in which the agent calls its model; "none" for an agent without a model."""
    versions: tuple[str, ...] = Field(min_length=1)
    """The tested releases."""
    default: str
    """The release that is installed if the config names none."""
    about: str = ""
    """Description for users."""
    install: str = "install.sh"
    """The script that installs it; see docs/guide/adding-an-agent.md. "" if there is nothing to install."""
    run: str = "run.sh"
    """The script that runs it; it prints its version if called with --version."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the run script."""
    options: dict[str, AgentOption] = Field(default_factory=dict)
    end_events: tuple[EndEvent, ...] = Field(default=(), validation_alias=AliasChoices("end_events", "ends"))
    """Without any, the exit code alone decides how a run ended."""
    message: TextPattern | None = None
    turns: CountPattern | None = None
    tool_calls: CountPattern | None = None
    numbers: NumberFields = Field(default=NumberFields(), validation_alias=AliasChoices("numbers", "figures"))
    side_calls: bool = True
    """Whether requests without tools are side calls, such as for a title; otherwise all are turns."""
    exit_codes: dict[str, str] = Field(default_factory=dict)
    """Descriptions of exit codes, for users."""

    @field_validator("versions")
    @classmethod
    def _check_versions(cls, versions: tuple[str, ...]) -> tuple[str, ...]:
        for version in versions:
            if not re.fullmatch(VERSION_PATTERN, version):
                raise ValueError(f"{version!r} cannot be part of a folder's name")
        return versions

    @field_validator("install", "run")
    @classmethod
    def _check_file_name(cls, name: str) -> str:
        if "/" in name or name.startswith("."):
            raise ValueError("expected the name of a file beside agent.toml")
        return name

    @field_validator("env")
    @classmethod
    def _check_env(cls, env: dict[str, str]) -> dict[str, str]:
        return check_env(env)

    @field_validator("options")
    @classmethod
    def _check_option_names(cls, options: dict[str, AgentOption]) -> dict[str, AgentOption]:
        for name in options:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ValueError(f"{name!r}: an option's name may have only lower-case letters, digits and _")
        return options

    @field_validator("exit_codes")
    @classmethod
    def _check_exit_codes(cls, codes: dict[str, str]) -> dict[str, str]:
        for code in codes:
            if not code.isascii() or not code.isdigit() or int(code) > _MAX_EXIT_CODE:
                raise ValueError(f"{code!r} is not an exit code")
        return codes

    @model_validator(mode="after")
    def _check_default_and_run(self) -> Self:
        if self.default not in self.versions:
            raise ValueError(f"default: {self.default!r} is not one of versions")
        if not self.run:
            raise ValueError("run: expected the name of a file beside agent.toml")
        return self

    def resolve_options(self, given: dict[str, Any]) -> dict[str, Scalar]:
        """Return all options with their values: those in ``given``, and defaults for the others.

        Raises:
            ValueError: its arguments are one line for each mistake.
        """
        wrong = [
            f"{name}: unknown option{did_you_mean(name, list(self.options))}"
            for name in given
            if name not in self.options
        ]
        for name, option in self.options.items():
            value = given.get(name, option.default)
            if type(value) is not type(option.default):
                wrong.append(f"{name}: {value!r} does not have the type of {option.default!r}")
            elif option.choices and value not in option.choices:
                wrong.append(f"{name}: {value!r} is not one of {', '.join(map(str, option.choices))}")
        if wrong:
            raise ValueError(*wrong)
        return {name: given.get(name, option.default) for name, option in self.options.items()}
