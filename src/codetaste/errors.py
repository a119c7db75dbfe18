"""The exception tree, and the causes that decide what is retried.

::

    CodetasteError
    ├── ConfigError          bad config, command line or benchmark data; lists every problem found
    ├── ToolMissing          a program that is needed is not on this machine
    ├── SourceError          a repository, commit or archive cannot be had
    │   ├── UnsafeArchive    … because it tries to leave the place it is unpacked into
    │   ├── PatchError       a patch is no unified diff; carries the line
    │   │   └── PatchTooLarge … or is larger than what is read
    │   └── PatchDoesNotApply … to the tree it is said to be made for
    ├── RuleError            a rule is malformed; carries file and line
    ├── EngineError          the rule engine itself failed
    ├── SandboxError         a command could not be started or contained
    │   └── SandboxMissing   … because the engine or the image for it is not on this machine
    ├── ToolError            an agent's tool refuses; the text is meant for the model
    ├── BudgetExceeded       a call does not fit into what is left
    ├── DeadlineExceeded     a job outlived its time limit
    ├── ModelError           a language model gave no usable reply
    │   ├── RateLimited      the provider asks to wait
    │   ├── ModelUnavailable connection lost, server error, overloaded
    │   ├── ModelRefused     the provider will not serve this request, now or later
    │   ├── MalformedReply   the reply makes no sense
    │   └── CassetteMiss     a replayed conversation left its recording
    ├── MalformedRequest     a program asks the gateway for what makes no sense
    └── JournalError         the run directory cannot be read or written
        ├── RunBusy          another process owns it
        └── StorageFull      no space left

An error is raised where the fault is known and says what a person can do about it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Cause(StrEnum):
    """Why something failed: the key of the retry table (``orchestration/retry.py``)."""

    CONFIG = "config"
    TOOL_MISSING = "tool_missing"
    SOURCE = "source"
    RULE = "rule"
    ENGINE = "engine"
    SANDBOX = "sandbox"
    TOOL = "tool"
    BUDGET = "budget"
    DEADLINE = "deadline"
    RATE_LIMIT = "rate_limit"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    MALFORMED = "malformed"
    CASSETTE = "cassette"
    STORAGE = "storage"
    NEED = "need"
    CANCELLED = "cancelled"
    FAULT = "fault"


class CodetasteError(Exception):
    """Every error that codetaste raises on purpose; anything else is a fault of the program."""

    cause: ClassVar[Cause] = Cause.FAULT


class ConfigError(CodetasteError):
    """What a person wrote is wrong. ``problems`` has one line for each fault, all found at once."""

    cause = Cause.CONFIG

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ToolMissing(CodetasteError):
    """A program that is needed is not here; the message says how to get it."""

    cause = Cause.TOOL_MISSING


class SourceError(CodetasteError):
    """A repository, a commit or an archive cannot be had."""

    cause = Cause.SOURCE


class UnsafeArchive(SourceError):
    """An archive holds a member that must not be unpacked."""


class PatchError(SourceError):
    """A patch is no unified diff. ``line`` counts from 1 in the patch, 0 when unknown."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class PatchTooLarge(PatchError):
    """A patch has more bytes or files than are read."""


class PatchDoesNotApply(SourceError):
    """A patch does not apply to a tree; ``other_base`` says that it was made against another one."""

    def __init__(self, message: str, *, other_base: bool = False) -> None:
        super().__init__(message)
        self.other_base = other_base


class RuleError(CodetasteError):
    """A rule is malformed. ``line`` counts from 1 in the text it came from, 0 when unknown."""

    cause = Cause.RULE

    def __init__(self, message: str, *, line: int = 0, rule_id: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.rule_id = rule_id


class EngineError(CodetasteError):
    """The rule engine crashed, was killed, or said something that cannot be read."""

    cause = Cause.ENGINE


class SandboxError(CodetasteError):
    """A command could not be started or contained."""

    cause = Cause.SANDBOX


class SandboxMissing(SandboxError):
    """The engine or the image that is needed is not on this machine: trying again cannot mend that."""

    cause = Cause.TOOL_MISSING


class ToolError(CodetasteError):
    """An agent's tool refuses; the message goes to the model, which can act on it."""

    cause = Cause.TOOL


class BudgetExceeded(CodetasteError):
    """A call does not fit into what is left of a budget; it was not made."""

    cause = Cause.BUDGET


class DeadlineExceeded(CodetasteError):
    """A job outlived its time limit."""

    cause = Cause.DEADLINE


class ModelError(CodetasteError):
    """A language model gave no usable reply.

    ``unbilled`` says that the provider certainly did not charge for the call; otherwise it may have.
    ``overloaded`` says that it has too much to do: whoever calls it should call it less.
    """

    cause = Cause.UNAVAILABLE
    unbilled: bool = False
    overloaded: bool = False


class RateLimited(ModelError):
    """The provider asks to wait; ``retry_after_s`` in seconds where it said how long."""

    cause = Cause.RATE_LIMIT
    unbilled = True
    overloaded = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailable(ModelError):
    """The connection was lost, or the provider is failing or overloaded; by default it may have billed.

    ``retry_after_s`` in seconds where the provider said how long to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        unbilled: bool = False,
        overloaded: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.unbilled, self.overloaded = unbilled, overloaded
        self.retry_after_s = retry_after_s


class ModelRefused(ModelError):
    """The provider will not serve this request: bad key, unknown model, request too large."""

    cause = Cause.REFUSED
    unbilled = True


class MalformedReply(ModelError):
    """The provider's reply makes no sense."""

    cause = Cause.MALFORMED


class CassetteMiss(ModelError):
    """A replayed conversation asked something that was not recorded."""

    cause = Cause.CASSETTE
    unbilled = True


class MalformedRequest(CodetasteError):
    """A program that calls a model through us asks for what makes no sense; the message goes back to it."""

    cause = Cause.MALFORMED


class JournalError(CodetasteError):
    """The run directory cannot be read or written."""

    cause = Cause.STORAGE


class RunBusy(JournalError):
    """Another process owns the run directory."""


class StorageFull(JournalError):
    """No space left on the device that holds the run directory."""
