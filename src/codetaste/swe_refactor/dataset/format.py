"""The published files of SWE-Refactor: a JSON list of instances, read and written byte for byte."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from codetaste.core.files import read_text_file, write_atomically
from codetaste.core.text import one_line, plural, printable, shorten
from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.instance import RefactoringInstance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_FILE_BYTES = 1024**3
_MAX_VALUE_CHARS = 60
_MAX_PROBLEMS = 100


def read_instances(path: Path) -> tuple[RefactoringInstance, ...]:
    """Return the instances of a file. Blocking.

    Raises:
        ConfigError: the file cannot be read, is no JSON list, or instances are not of the published shape: a
            line for each problem, with file, index and key.
    """
    try:
        text = read_text_file(path, MAX_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    return parse_instances(text, str(path))


def parse_instances(text: str, name: str) -> tuple[RefactoringInstance, ...]:
    """Return the instances of the text of a file; ``name`` names it in messages.

    Raises:
        ConfigError: as for ``read_instances``.
    """
    try:
        documents = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not valid JSON: {one_line(error)}") from None
    if not isinstance(documents, list):
        raise ConfigError(f"{name}: must be a JSON list of instances")
    instances, problems, seen = [], [], dict[str, int]()
    for index, document in enumerate(documents):
        place = f"{name}: instance {index}"
        if not isinstance(document, dict):
            problems.append(f"{place}: must be an object")
            continue
        try:
            instance = RefactoringInstance.from_document(document)
        except ValidationError as error:
            problems += (f"{place}: {line}" for line in _messages(error))
            continue
        if instance.unique_id in seen:
            problems.append(
                f"{place}: uniqueId: {one_line(instance.unique_id)} is that of instance "
                f"{seen[instance.unique_id]}, too"
            )
        seen.setdefault(instance.unique_id, index)
        instances.append(instance)
    if len(problems) > _MAX_PROBLEMS:
        left = len(problems) - _MAX_PROBLEMS
        problems[_MAX_PROBLEMS:] = [f"{name}: {plural(left, 'more problem')}"]
    if problems:
        raise ConfigError(*problems)
    return tuple(instances)


def format_instances(instances: Iterable[RefactoringInstance]) -> str:
    """Return the text of a file with the instances, laid out as the published ones."""
    return json.dumps([dict(instance.document) for instance in instances], indent=4)


def write_instances(path: Path, instances: Iterable[RefactoringInstance]) -> None:
    """Write a file with the instances. Blocking.

    Raises:
        StorageFull: no space left.
        JournalError: the file cannot be written.
    """
    write_atomically(path, format_instances(instances))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {one_line(twice, _MAX_VALUE_CHARS)} occurs twice in an object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{shorten(text, _MAX_VALUE_CHARS)} is too large a number")
    return number


def _messages(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        key = printable(".".join(map(str, fault["loc"])), _MAX_VALUE_CHARS)
        if fault["type"] == "missing":
            yield f"{key}: missing"
        else:
            value = shorten(one_line(json.dumps(fault["input"])), _MAX_VALUE_CHARS)
            yield f"{key}: {fault['msg']} (it is {value})"
