"""``codetaste config schema``: print the JSON schema of config files."""

from __future__ import annotations

import ast
import inspect
import json
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.streams import print_result
from codetaste.core.section import Section
from codetaste.run.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator


@command
def schema(*, json_: AsJson = False) -> int:  # noqa: ARG001 - ``command`` reads it
    """Print the JSON schema of the models that read a config; earlier names of keys are not in it.

    Args:
        json_: Print errors as JSON, too; the schema is JSON in any case.
    """
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
    tables: dict[str, Any] = {**found["$defs"], Config.__name__: found}
    for model in _sections(Section):
        for key, text in _documented_keys(model):
            properties = tables.get(model.__name__, {}).get("properties", {})
            if key in properties:
                properties[key]["description"] = text
    print_result(json.dumps({**found, "title": "codetaste config"}, indent=2))
    return 0


def _sections(model: type[Section]) -> Iterator[type[Section]]:
    for each in model.__subclasses__():
        yield each
        yield from _sections(each)


def _documented_keys(model: type[Section]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a table with the strings below them; pydantic would read them at each start."""
    (definition,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - the source of a class
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(key)), ast.Expr(ast.Constant(str(text))):
                yield key, inspect.cleandoc(text).replace("``", "`")
