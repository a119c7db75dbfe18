"""The keys of an allow list, and those that a request uses: ``messages[].content[]<text>.cache_control``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codetaste.llm.wire.common.allow_list import AllowList, Fields, Form, Items, Kinds, OneOf


def keys_of_list(allowed: AllowList) -> set[str]:
    """Return all keys of an allow list, those of its headers and query included."""
    headers = {f"{name}={value}" for name, values in allowed.headers.items() for value in values or ()}
    names = {name for name, values in allowed.headers.items() if values is None}
    return {*_keys(allowed.body, ""), *headers, *names, *(f"query={each}" for each in allowed.query)}


def keys_of_request(
    allowed: AllowList, body: Any, headers: Mapping[str, str] | None = None, query: str = ""
) -> set[str]:
    """Return the keys of an allow list that a request uses."""
    used = {*_used(allowed.body, body, "")}
    for name, values in allowed.headers.items():
        given = (headers or {}).get(name)
        if given is not None:
            used |= {name} if values is None else {f"{name}={each.strip()}" for each in given.split(",")}
    return used | {f"query={each}" for each in query.split("&") if each}


def _keys(form: Form, at: str) -> Iterator[str]:
    match form:
        case Fields():
            for name, inner in form.forms.items():
                yield _join(at, name)
                yield from _keys(inner, _join(at, name))
        case Kinds():
            for kind, fields in form.forms.items():
                if kind is not None:
                    yield f"{at}<{kind}>"
                    yield from _keys(_without(fields, form.tag), f"{at}<{kind}>")
        case Items():
            yield from _keys(form.form, f"{at}[]")
        case OneOf():
            yield from (f"{at}={value}" for _, value in form.values)


def _used(form: Form, value: Any, at: str) -> Iterator[str]:
    match form:
        case Fields():
            for name, inner in value.items():
                if name in form.forms:
                    yield _join(at, name)
                    if inner is not None:
                        yield from _used(form.forms[name], inner, _join(at, name))
        case Kinds():
            found = form.forms.get(value.get(form.tag))
            kind = next((name for name, fields in form.forms.items() if fields is found and name), None)
            if found is not None:
                yield f"{at}<{kind}>"
                yield from _used(_without(found, form.tag), value, f"{at}<{kind}>")
        case Items() if isinstance(value, list):
            for inner in value:
                yield from _used(form.form, inner, f"{at}[]")
        case OneOf():
            yield f"{at}={value}"


def _without(fields: Fields, tag: str) -> Fields:
    return Fields({name: form for name, form in fields.forms.items() if name != tag})


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
