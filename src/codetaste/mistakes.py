"""What is wrong in a TOML file that a person wrote: a line for each mistake, by the key as it stands."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import ValidationError


def mistakes(error: ValidationError, raw: Mapping[str, Any], model: type[BaseModel]) -> Iterator[str]:
    """Say each validation error of ``raw`` as a ``model`` in one line."""
    for fault in error.errors(include_url=False):
        key = _key(fault["loc"], raw)
        if fault["type"] == "extra_forbidden":
            name = str(fault["loc"][-1])
            yield f"{key}: unknown key{suggestion(name, _fields_at(fault['loc'][:-1], model))}"
        elif fault["type"] == "missing":
            yield f"{key}: missing"
        else:
            said = fault["msg"].removeprefix("Value error, ")
            given = fault["input"]
            told = "" if isinstance(given, dict | list) or repr(given) in said else f" (it is {given!r})"
            yield f"{key}: {said}{told}" if key else f"{said}{told}"


_SHOWN = 20
"""So many known names are listed: there may be thousands of jobs."""


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return " (did you mean 'x'?)" for the nearest of ``known``, or the known names, or nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f" (did you mean {near[0]!r}?)"
    some, more = sorted(known)[:_SHOWN], len(known) - _SHOWN
    return f" (known: {', '.join(some)}{f', … and {more} more' if more > 0 else ''})" if known else ""


def shown(text: str) -> str:
    """Return ``text`` as it stands, and quoted where it would not stay in its line."""
    return text if text.isprintable() else repr(text)


def _key(location: Sequence[int | str], raw: Mapping[str, Any]) -> str:
    """Name a place: ``models[sonnet].price.input``; a table in a list goes by its id where it has one."""
    node: Any = raw
    said = ""
    for part in location:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            node = None
        if isinstance(part, int):
            name = node.get("id", part) if isinstance(node, dict) else part
            said += f"[{name}]"
        else:
            said += f".{part}" if said else part
    return shown(said)


def _fields_at(location: Sequence[int | str], model: Any) -> list[str]:  # noqa: ANN401 - a type
    """The keys that a table may have."""
    for part in location:
        if isinstance(part, int):
            continue
        fields = getattr(model, "model_fields", {})
        if part not in fields:
            return []
        model = _model_in(fields[part].annotation)
    return list(getattr(model, "model_fields", {}))


def _model_in(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """The pydantic model inside ``tuple[Model, ...]`` or ``Model | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
