"""``SourceIndex``: all types, methods and calls of a source tree, in memory.

The fields have the names of the answers of ``shim/Jdt.java``; see ``model.py`` for lines and names of types.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from codetaste.java.jdt.model import IndexCounts  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class IndexedType:
    """A named class, interface, enum, record or annotation, with its lines."""

    name: str
    kind: str
    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class IndexedMethod:
    """A method or constructor, with its lines; ``overrides`` are the numbers of those that it overrides."""

    owner: str
    name: str
    parameters: tuple[str, ...]
    path: str
    start_line: int
    end_line: int
    overrides: tuple[int, ...] = field(default=(), repr=False)

    @property
    def label(self) -> str:
        """CLASS#NAME with the types of its parameters."""
        return f"{self.owner}#{self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, slots=True)
class IndexedCall:
    """A call.

    Attributes:
        caller: number of the method that it is in; -1 in another member.
        member: that method or member, as CLASS#NAME.
        path: its file.
        line: its line.
        callee: number of the method that is called; -1 without source.
        owner: class of the callee; None if unresolved.
        name: name of the callee.
        arguments: how many; -1 of a reference to a method.
    """

    caller: int
    member: str
    path: str
    line: int
    callee: int
    owner: str | None
    name: str
    arguments: int


@dataclass(frozen=True)
class SourceIndex:
    """The index of a source tree.

    Attributes:
        types: all named types.
        methods: all methods; a number of a method is its place here.
        calls: all calls, by path and line.
        left_out_files: files that another one with the same package and name hides.
        counts: its size.
    """

    types: tuple[IndexedType, ...]
    methods: tuple[IndexedMethod, ...]
    calls: tuple[IndexedCall, ...]
    left_out_files: tuple[str, ...]
    counts: IndexCounts

    @classmethod
    def from_json(cls, data: Any) -> SourceIndex:  # noqa: ANN401 - JSON
        """Read an answer of JDT, or what ``to_json`` returned.

        Raises:
            pydantic.ValidationError: it is no index.
        """
        return _INDEX.validate_python(data)

    @classmethod
    def from_text(cls, text: bytes) -> SourceIndex:
        """Read the JSON text of an index.

        Raises:
            pydantic.ValidationError: it is no index.
        """
        return _INDEX.validate_json(text)

    def to_text(self) -> bytes:
        """Return the index as JSON text."""
        return _INDEX.dump_json(self)

    def find_types(self, name: str) -> list[IndexedType]:
        """Return the types with a name; the last parts of a name are enough."""
        wanted = name.strip().replace("$", ".").replace("/", ".")
        return [each for each in self.types if _ends_with(each.name, wanted)]

    def find_methods(self, owner: str, name: str) -> list[int]:
        """Return the numbers of the methods with a name, overloads included, of the types named ``owner``."""
        types = {each.name for each in self.find_types(owner)}
        return [at for at, each in enumerate(self.methods) if each.name == name and each.owner in types]

    def calls_of(self, method: int) -> Iterator[IndexedCall]:
        """Yield the calls that reach a method: of it, of what it overrides, and unresolved ones that fit."""
        target = self.methods[method]
        reached = {method, *target.overrides}
        for call in self._calls_by_name.get(target.name, ()):
            fits = call.owner is None and call.arguments in {-1, len(target.parameters)}
            if call.callee in reached or fits:
                yield call

    def calls_in(self, method: int) -> Iterator[IndexedCall]:
        """Yield the calls in a method, by line."""
        return iter(self._calls_by_caller.get(method, ()))

    @cached_property
    def _calls_by_name(self) -> dict[str, list[IndexedCall]]:
        found: dict[str, list[IndexedCall]] = {}
        for call in self.calls:
            name = self.methods[call.callee].name if call.callee >= 0 else call.name
            found.setdefault(name, []).append(call)
        return found

    @cached_property
    def _calls_by_caller(self) -> dict[int, list[IndexedCall]]:
        found: dict[int, list[IndexedCall]] = {}
        for call in self.calls:
            found.setdefault(call.caller, []).append(call)
        return found


def _ends_with(name: str, wanted: str) -> bool:
    return name == wanted or name.endswith(f".{wanted}")


_INDEX = TypeAdapter(SourceIndex)
