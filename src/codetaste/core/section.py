"""Sections of a TOML file as pydantic models: their base class, and one line for each validation error."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, field_validator

from codetaste.core.files import read_text_file
from codetaste.core.text import did_you_mean, format_value, quoted
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import ValidationError

_MAX_TOML_BYTES = 4 * 1024**2
_MAX_PATH_BYTES, _MAX_NAME_BYTES = 4095, 255
_MESSAGES = {"tuple_type": "must be a list", "dict_type": "must be a table", "model_type": "must be a table"}
"""Messages for the types of a config file in place of those of Python."""


def check_path(value: Any) -> Any:  # noqa: ANN401 - from a config
    """Return ``value``, a path in a config; it need not exist. None is no path.

    Raises:
        ValueError: no file can have this path.
    """
    if value is None:
        return None
    if not isinstance(value, str | Path):
        raise ValueError("must be a path, in quotes")  # noqa: TRY004 - pydantic reports a ValueError
    text = str(value)
    if not text:
        raise ValueError("must not be empty")
    if "\0" in text:
        raise ValueError("no path can have a NUL character")
    encoded = os.fsencode(text)
    if len(encoded) > _MAX_PATH_BYTES or max(map(len, encoded.split(b"/"))) > _MAX_NAME_BYTES:
        raise ValueError(f"longer than a path can be ({len(encoded):,} bytes)")
    try:
        Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home folder {text.split('/', 1)[0]}") from None
    return value


FilePath = Annotated[Path, BeforeValidator(check_path)]
PathText = Annotated[str, AfterValidator(check_path)]
"""A path that may also be a name with another meaning."""


class Section(BaseModel):
    """A table of the config. The string under each field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_text(cls, value: Any) -> Any:  # noqa: ANN401 - TOML data
        texts = value if isinstance(value, list) else [value]
        if any("\0" in text for text in texts if isinstance(text, str)):
            raise ValueError("it has a NUL character, which no path, address or name can have")
        return value


def toml_to_json(value: Any) -> Any:  # noqa: ANN401 - TOML data
    """Return TOML data as JSON data.

    Raises:
        ValueError: a value has no JSON form, such as a date.
    """
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {str(key): toml_to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [toml_to_json(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise ValueError(f"{value!r}: a provider takes text, numbers, booleans, lists and tables only")


def read_toml(path: Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the data of a TOML file.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: it cannot be read, or is not TOML.
    """
    import tomli  # noqa: PLC0415 - only here

    try:
        return tomli.loads(read_text_file(path, _MAX_TOML_BYTES), parse_float=parse_float)
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    except (tomli.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def validation_messages(
    error: ValidationError, raw: Mapping[str, Any], model: type[BaseModel]
) -> Iterator[str]:
    """Yield one line for each error of validating ``raw`` as ``model``."""
    faults = error.errors(include_url=False)
    wrong_items = {fault["loc"][:end] for fault in faults for end in range(len(fault["loc"]))}
    for fault in faults:
        if fault["type"] == "too_short" and fault["loc"] in wrong_items:
            continue  # items that are wrong are not counted
        key = _format_key(fault["loc"], raw)
        if fault["type"] == "extra_forbidden":
            name, fields = str(fault["loc"][-1]), _fields_at(fault["loc"][:-1], model)
            if current := next((field for field, names in fields.items() if name in names), None):
                yield f"{key}: earlier name of {current!r}, which is there, too: remove one of them"
            else:
                yield f"{key}: unknown key{did_you_mean(name, list(fields))}"
        elif fault["type"] == "missing":
            yield f"{key}: missing"
        else:
            message = _MESSAGES.get(fault["type"], fault["msg"].removeprefix("Value error, "))
            message = message.replace("Tuple should", "the list should").replace(" after validation", "")
            value = fault["input"]
            shown_value = isinstance(value, dict | list) or format_value(value) in message
            suffix = "" if shown_value else f" (it is {format_value(value)})"
            yield f"{key}: {message}{suffix}" if key else f"{message}{suffix}"


def _format_key(location: Sequence[int | str], raw: Mapping[str, Any]) -> str:
    """Format a location: ``models[sonnet].price.input``; tables in lists are named by their ids, if any."""
    node: Any = raw
    key = ""
    for part in location:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            node = None
        if isinstance(part, int):
            own = node.get("id") if isinstance(node, dict) else None
            name = own if isinstance(own, str) else part
            key += f"[{name}]"
        else:
            key += f".{part}" if key else part
    return quoted(key)


def _fields_at(location: Sequence[int | str], model: Any) -> dict[str, list[object]]:  # noqa: ANN401 - a type
    """Return the valid keys of the table at ``location``, each with all names that it is accepted under."""
    for part in location:
        if isinstance(part, int):
            continue
        fields = getattr(model, "model_fields", {})
        if part not in fields:
            return {}
        model = _model_in(fields[part].annotation)
    aliases = {name: field.validation_alias for name, field in getattr(model, "model_fields", {}).items()}
    return {
        name: list(alias.choices) if isinstance(alias, AliasChoices) else []
        for name, alias in aliases.items()
    }


def _model_in(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """Return the pydantic model inside ``tuple[Model, ...]`` or ``Model | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
