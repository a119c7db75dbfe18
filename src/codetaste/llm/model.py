"""The protocol of a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codetaste.llm.messages import Reply, Request


class Model(Protocol):
    """A language model. Implementations make exactly one attempt per call; the caller retries."""

    @property
    def id(self) -> str:
        """The model's id in the config."""
        ...

    @property
    def has_ledger(self) -> bool:
        """Whether every charged call is on record, so that None from ``lookup`` means "not charged"."""
        ...

    async def complete(self, request: Request, *, call: str) -> Reply:
        """Answer ``request``. ``call`` identifies this call in the run and is the same after a resume.

        Raises:
            ModelError: there is no usable reply; subclass and cause determine whether a retry may help.
        """
        ...

    async def lookup(self, call: str) -> Reply | None:
        """Return the reply to an earlier ``call`` from the model's own record, if it has one."""
        ...

    async def aclose(self) -> None:
        """Close connections and files."""
        ...
