"""What the request types of the official clients have and an allow list has not."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, Required

from codetaste.llm.wire.common.allow_list import DATA, Beginning, Fields, Form, Items, Kinds, OneOf

_SCALARS = (str, int, float, bool, object)


def refused_names(form: Form, given: Any, at: str = "") -> Iterator[str]:
    """Yield the names of what a request of type ``given`` may have and ``form`` refuses, outermost first.

    ``tools[]<mcp>`` is a type, ``service_tier=flex`` a value, ``tool_choice=ToolChoiceMcpParam`` an object in
    the place of a text, and ``service_tier=absent`` an optional field of which some values are refused.
    """
    for member in _members(given):
        yield from _refused(form, member, at)


def _refused(form: Form, member: Any, at: str) -> Iterator[str]:
    element = _element(member)
    if isinstance(form, Items) and element is not None:
        yield from refused_names(form.form, element, f"{at}[]")
    elif isinstance(form, Items) and form.scalar is not None:
        yield from _refused(form.scalar, member, at)
    elif form is DATA or isinstance(form, Beginning | Items):
        return
    elif hasattr(member, "__required_keys__"):  # a TypedDict, also of typing_extensions
        yield from _refused_object(form, member, at)
    elif element is not None or (isinstance(form, Fields | Kinds) and member in _SCALARS):
        yield f"{at}={'list' if element is not None else member.__name__}"
    elif isinstance(form, OneOf):
        values = [True, False] if member is bool else _values(member)
        yield from (f"{at}={value}" for value in values if (type(value), value) not in form.values)


def _refused_object(form: Form, given: Any, at: str) -> Iterator[str]:
    if isinstance(form, Kinds):
        for kind in _values(typing.get_type_hints(given).get(form.tag)) or [None]:
            fields = form.forms.get(kind)
            if fields is None:
                yield f"{at}<{kind}>"
            else:
                yield from _refused_fields(fields, given, f"{at}<{kind or 'default'}>", form.tag)
    elif isinstance(form, Fields):
        yield from _refused_fields(form, given, at)
    else:
        yield f"{at}={given.__name__}"


def _refused_fields(form: Fields, given: Any, at: str, tag: str = "") -> Iterator[str]:
    marked = typing.get_type_hints(given, include_extras=True)
    for name, inner in typing.get_type_hints(given).items():
        place = f"{at}.{name}" if at else name
        if name not in form.forms:
            yield place
        elif name != tag:
            refused = list(refused_names(form.forms[name], inner, place))
            yield from refused
            needed = name in form.needs or typing.get_origin(marked[name]) is Required
            if refused and isinstance(form.forms[name], OneOf) and not needed:
                yield f"{place}=absent"


def _members(given: Any) -> Iterator[Any]:
    """Yield the members of a union, without marks and null."""
    origin = typing.get_origin(given)
    if origin in (typing.Union, types.UnionType):
        for member in typing.get_args(given):
            yield from _members(member)
    elif origin is typing.Annotated:
        yield from _members(typing.get_args(given)[0])
    elif given is not type(None):
        yield given


def _element(member: Any) -> Any:
    """Return the type of a list's values, None if it is no list."""
    origin: Any = typing.get_origin(member)
    is_list = isinstance(origin, type) and not issubclass(origin, dict) and origin is not Literal
    return typing.get_args(member)[0] if is_list and len(typing.get_args(member)) == 1 else None


def _values(given: Any) -> list[Any]:
    """Return the values of a literal type."""
    literals = [member for member in _members(given) if typing.get_origin(member) is Literal]
    return [value for literal in literals for value in typing.get_args(literal)]
