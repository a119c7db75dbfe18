"""The reference of all config keys, made from the models of the config: the tables of ``docs/config.md``.

``.venv/bin/python tests/support/docs/config_reference.py`` rewrites the tables; the prose before the
first one stays. The text of a key is the string under its field.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import AliasChoices, AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from codetaste.core.units import Bytes, Seconds, Usd
from codetaste.evaluation.config import EvaluateConfig
from codetaste.flows.mine.plan import MineConfig
from codetaste.llm.price import LongRates, Price
from codetaste.run.config import Config
from codetaste.swe_refactor.config import SweRefactorConfig

PAGE = Path(__file__).resolve().parents[3] / "docs" / "config.md"
FIRST_HEADING = "## `[run]`"
QUANTITIES = {Usd: "US dollars", Seconds: "duration", Bytes: "size"}
PLAIN = {
    datetime: "date and time",
    AwareDatetime: "date and time",
    Decimal: "number",
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
}


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model in ``Model``, ``Model | None`` or ``tuple[Model, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, get_args(annotation))), None)


def sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Yield (name, heading, model) of each table that a config may have."""
    for name, field in Config.model_fields.items():
        model = model_in(field.annotation)
        assert model is not None
        several = get_origin(field.annotation) is tuple
        yield name, f"`[[{name}]]`" if several else f"`[{name}]`", model
        if model in {MineConfig, EvaluateConfig, SweRefactorConfig}:
            yield from _tables_in(name, model)
    yield "price", "`price` of `[[models]]`", Price
    yield "above", "`above` of `price`", LongRates


def _tables_in(name: str, model: type[BaseModel]) -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Yield the tables inside of a table, and those inside of them."""
    for key, field in model.model_fields.items():
        inner = model_in(field.annotation)
        if inner is not None:
            path = f"{name}.{key}"
            several = get_origin(field.annotation) is tuple
            yield path, f"`[[{path}]]`" if several else f"`[{path}]`", inner
            yield from _tables_in(path, inner)


def render() -> str:
    return "\n".join(line for _, heading, model in sections() for line in _section(heading, model))


def _section(heading: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"## {heading}\n"
    about = " ".join(inspect.cleandoc(model.__doc__ or "").split("\n\n")[0].split())
    text = re.sub(r"^``\[+\w+\]+``: ", "", about)
    yield textwrap.fill(text[0].upper() + text[1:], 118).replace("``", "`")
    yield "\n| key | type | default | meaning |\n| --- | --- | --- | --- |"
    texts = _texts(model)
    hints = get_type_hints(model, include_extras=True)
    for key, field in model.model_fields.items():
        meaning = texts[key] + _earlier_name(key, field)
        cells = (f"`{key}`", _type(hints[key]), _default(hints[key], field, texts[key]), meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the string under each field, also of the classes that the model extends."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not issubclass(each, BaseModel) or not each.model_fields:
            continue
        [tree] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(tree, ast.ClassDef)
        for field, after in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                assert isinstance(after.value, ast.Constant)
                found[ast.unparse(field.target)] = " ".join(str(after.value.value).replace("``", "`").split())
    return found


def _earlier_name(key: str, field: FieldInfo) -> str:
    if not isinstance(field.validation_alias, AliasChoices):
        return ""
    earlier = [f"`{name}`" for name in field.validation_alias.choices if name != key]
    return f" The earlier name {', '.join(earlier)} is accepted."


def _type(annotation: Any) -> str:
    """Describe what a user writes for a value: "text", "duration", the allowed values …"""
    for quantity, name in (QUANTITIES | PLAIN).items():
        if annotation == quantity:
            return name
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        text = _type(arguments[0])
    elif origin is dict or model_in(annotation) is annotation:
        text = "table"
    elif origin is tuple:
        text = f"list of {_type(arguments[0])}s"
    elif origin is Literal:
        text = ", ".join("false" if one is False else f'"{one}"' for one in _choices(arguments))
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        text = ", ".join(f'"{one.value}"' for one in annotation)
    else:
        assert arguments, annotation
        text = ", ".join(_type(one) for one in arguments if one is not NoneType)
    return text


def _choices(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the values of a Literal, nested ones included."""
    for one in arguments:
        yield from _choices(get_args(one)) if get_origin(one) is Literal else (one,)


def _default(annotation: Any, field: FieldInfo, text: str) -> str:  # noqa: PLR0911 - a table
    if field.is_required():
        return "required"
    if "default" in text:
        return "see meaning"
    match field.get_default(call_default_factory=True):
        case None:
            return "none"
        case BaseModel():
            return "see the table"
        case float() as seconds if Seconds in (annotation, *get_args(annotation)):
            return _in_units(seconds, {"h": 3600, "m": 60, "s": 1})
        case int() as size if annotation == Bytes:
            return _in_units(size, {"GiB": 1024**3, "MiB": 1024**2})
        case Enum(value=plain) | plain:
            text = str(plain) if isinstance(plain, Decimal) else json.dumps(plain, default=str)
    return f"`{text}`"


def _in_units(amount: float, units: dict[str, int]) -> str:
    unit, size = next((unit, size) for unit, size in units.items() if amount % size == 0)
    return f'`"{amount / size:.0f}{unit}"`'


def render_page(text: str) -> str:
    """Return ``text`` with everything from the first heading of a section on replaced."""
    return text.partition(FIRST_HEADING)[0] + render().rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), "utf-8")
