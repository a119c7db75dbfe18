"""The one thing every language model can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codetaste.llm.messages import Reply, Request


class Model(Protocol):
    """A language model. Implementations make exactly one attempt for each call: retries are the caller's."""

    @property
    def id(self) -> str:
        """What the config calls this model."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether ``recall`` knows every call that was ever charged: then None means that it was not."""
        ...

    async def complete(self, request: Request, *, call: str) -> Reply:
        """Answer ``request``. ``call`` names this call in the run, the same after a resume.

        Raises:
            ModelError: no usable reply; its subclass and cause say whether trying again may help.
        """
        ...

    async def recall(self, call: str) -> Reply | None:
        """Return what ``call`` was answered before this process lost it, if the model keeps a record."""
        ...

    async def aclose(self) -> None:
        """Give back connections and files."""
        ...
