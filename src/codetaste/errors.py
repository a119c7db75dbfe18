"""The exception tree, and the causes that decide what is retried.

::

    CodetasteError
    ├── ConfigError          bad config, command line or benchmark data; lists every problem found
    ├── ToolMissing          a required program is not on this machine
    ├── SourceError          a repository, commit or archive is unavailable
    │   ├── UnsafeArchive    … because it tries to leave the folder it is unpacked into
    │   ├── PatchError       a patch is not a unified diff; carries the line
    │   │   └── PatchTooLarge … or exceeds the size limit
    │   └── PatchDoesNotApply … to the tree it was made for
    ├── RuleError            a rule is malformed; carries file and line
    ├── EngineError          the rule engine itself failed
    ├── JavaError            a Java program gave no answer to a request; carries the outcome
    ├── SandboxError         a command could not be started or contained
    │   └── SandboxMissing   … because its engine or image is not on this machine
    ├── ToolError            an agent's tool refuses; the text is meant for the model
    ├── BudgetExceeded       a call does not fit into the remaining budget
    ├── DeadlineExceeded     a job exceeded its time limit
    ├── ModelError           a language model gave no usable reply
    │   ├── RateLimited      the provider asks to wait
    │   ├── ModelUnavailable connection lost, server error, overloaded
    │   ├── ModelRefused     the model, or its provider's policy, refuses this request for good
    │   │   ├── ModelSetupError     … because a setting of the model is wrong, or its account is empty
    │   │   └── ConversationTooLong … because it does not fit into the context window
    │   ├── MalformedReply   the reply makes no sense
    │   └── CassetteMiss     a replayed conversation differs from its recording
    ├── MalformedRequest     a client sends the gateway an invalid request
    └── JournalError         the run directory cannot be read or written
        ├── RunBusy          another process owns it
        └── StorageFull      no space left

An error is raised where the fault is known, and its message says what the user can do about it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    SETUP = "setup"
    CONTEXT = "context"
    MALFORMED = "malformed"
    CASSETTE = "cassette"
    STORAGE = "storage"
    NEED = "need"
    CANCELLED = "cancelled"
    FAULT = "fault"

    @property
    def is_infrastructure(self) -> bool:
        """Whether it is no fault of an agent or its model, so that a trial that it ended has no score."""
        return self not in {
            *(Cause.BUDGET, Cause.DEADLINE, Cause.REFUSED, Cause.CONTEXT, Cause.TOOL, Cause.RULE),
            Cause.CANCELLED,
        }


class CodetasteError(Exception):
    """Base of all errors that codetaste raises on purpose; any other exception is a fault of the program."""

    cause: ClassVar[Cause] = Cause.FAULT


class ConfigError(CodetasteError):
    """Invalid user input. ``problems`` has one line for each problem, all reported at once."""

    cause = Cause.CONFIG

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ToolMissing(CodetasteError):
    """A required program is missing; the message says how to install it."""

    cause = Cause.TOOL_MISSING


class SourceError(CodetasteError):
    """A repository, commit or archive is unavailable."""

    cause = Cause.SOURCE


class UnsafeArchive(SourceError):
    """An archive has a member that must not be unpacked."""


class PatchError(SourceError):
    """A patch is not a unified diff. ``line`` counts from 1 in the patch, 0 when unknown."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class PatchTooLarge(PatchError):
    """A patch exceeds the limit of bytes or files."""


class PatchDoesNotApply(SourceError):
    """A patch does not apply to a tree; ``other_base`` if it was made against another tree."""

    def __init__(self, message: str, *, other_base: bool = False) -> None:
        super().__init__(message)
        self.other_base = other_base


class RuleError(CodetasteError):
    """A rule is malformed. ``line`` counts from 1 in its source text, 0 when unknown."""

    cause = Cause.RULE

    def __init__(self, message: str, *, line: int = 0, rule_id: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.rule_id = rule_id


class EngineError(CodetasteError):
    """The rule engine crashed, was killed, or printed unreadable output."""

    cause = Cause.ENGINE


class JavaOutcome(StrEnum):
    """Why a Java program gave no answer."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    """Its JVM ran out of the memory that it may use."""
    CRASH = "crash"
    """Its JVM died, or wrote something unreadable."""
    NO_START = "no_start"
    """No JVM with it starts here: that is no matter of the request."""
    FAILED = "failed"
    """It said what is wrong with the request, or which error it met; it goes on with other requests."""


class JavaError(CodetasteError):
    """A Java program gave no answer to a request."""

    cause = Cause.ENGINE

    def __init__(self, message: str, outcome: JavaOutcome) -> None:
        super().__init__(message)
        self.outcome = outcome


class SandboxError(CodetasteError):
    """A command could not be started or contained."""

    cause = Cause.SANDBOX


class SandboxMissing(SandboxError):
    """The required engine or image is not on this machine: a retry cannot fix that."""

    cause = Cause.TOOL_MISSING


class ToolError(CodetasteError):
    """An agent's tool refuses; the message goes to the model, which can act on it."""

    cause = Cause.TOOL


class BudgetExceeded(CodetasteError):
    """A call does not fit into the remaining budget; it was not made."""

    cause = Cause.BUDGET


class DeadlineExceeded(CodetasteError):
    """A job exceeded its time limit."""

    cause = Cause.DEADLINE


class ModelError(CodetasteError):
    """A language model gave no usable reply.

    ``unbilled``: the provider certainly did not charge for the call; otherwise it may have.
    ``overloaded``: the provider has too much load, and callers should slow down.
    ``retry_after_s``: seconds that the provider asks to wait, None if it did not say how long.
    ``usage``: the ``Usage`` that an unusable reply reported, None if it reported none.
    """

    usage: object = None
    cause = Cause.UNAVAILABLE
    unbilled: bool = False
    overloaded: bool = False
    retry_after_s: float | None = None


class RateLimited(ModelError):
    """The provider asks to wait."""

    cause = Cause.RATE_LIMIT
    unbilled = True
    overloaded = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailable(ModelError):
    """The connection was lost, or the provider is failing or overloaded; by default it may have billed."""

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
    """The model, or the policy of its provider, refuses this request; a subclass says that it was neither."""

    cause = Cause.REFUSED
    unbilled = True


class ModelSetupError(ModelRefused):
    """A setting of the model is wrong, its account is empty, or the script of a scripted model fails.

    ``setting`` is the key of ``[[models]]`` to mend, ``model_id`` the model, "" until it is known.
    """

    cause = Cause.SETUP
    model_id: str = ""

    def __init__(self, message: str, setting: str = "options") -> None:
        super().__init__(message)
        self.setting = setting

    def __str__(self) -> str:
        """Return the message, after the name of the setting if the model is known."""
        message = super().__str__()
        return f"models[{self.model_id}].{self.setting}: {message}" if self.model_id else message


class ConversationTooLong(ModelRefused):
    """The conversation does not fit into the context window of the model."""

    cause = Cause.CONTEXT


class MalformedReply(ModelError):
    """The provider's reply is invalid."""

    cause = Cause.MALFORMED


class CassetteMiss(ModelError):
    """A replayed conversation made a request that was not recorded."""

    cause = Cause.CASSETTE
    unbilled = True


class MalformedRequest(CodetasteError):
    """A client of the gateway sent an invalid request; the message goes back to it."""

    cause = Cause.MALFORMED


class JournalError(CodetasteError):
    """The run directory cannot be read or written."""

    cause = Cause.STORAGE


class RunBusy(JournalError):
    """Another process owns the run directory."""


class StorageFull(JournalError):
    """No space left on the device that holds the run directory."""


def leaf_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error``, or the errors of an exception group and of all groups in it."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from leaf_errors(part)
    else:
        yield error
