"""``codetaste swe-refactor show``: show one instance of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import did_you_mean, plural, printable
from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.format import read_instances

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


@command
def show(file: Path, instance: str, /, *, json_: AsJson = False) -> int:
    """Show one instance.

    Args:
        file: A file in the published shape.
        instance: Its id, or the beginning of it.
        json_: Print all keys as JSON.

    Raises:
        ConfigError: the file cannot be read, or no single instance has this id.
    """
    found = select_instance(read_instances(file), instance)
    if json_:
        print_result(json_document(dict(found.document)))
    else:
        for line in describe_instance(found):
            print_result(printable(line))
    return 0


def select_instance(instances: Sequence[RefactoringInstance], name: str) -> RefactoringInstance:
    """Return the instance whose id is ``name`` or begins with it.

    Raises:
        ConfigError: there is none, or there are several.
    """
    found = [each for each in instances if each.unique_id == name] or [
        each for each in instances if each.unique_id.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(each.unique_id for each in found)
        raise ConfigError(f"{name}: the beginning of {plural(len(found), 'id')}: {ids}")
    raise ConfigError(
        f"{name}: no instance has this id{did_you_mean(name, [each.unique_id for each in instances])}"
    )


def describe_instance(instance: RefactoringInstance) -> Iterator[str]:
    """Yield lines about an instance, with the method before and after."""
    yield from describe_facts(instance)
    yield "── before"
    yield from instance.source_code_before_refactoring.splitlines()
    yield "── after"
    yield from instance.source_code_after_refactoring.splitlines()


def describe_facts(instance: RefactoringInstance) -> Iterator[str]:
    """Yield lines about an instance without any code."""
    yield instance.unique_id
    yield instance.description.replace("\t", " ", 1)
    yield f"commit       {instance.commit_id}"
    yield f"target       {instance.method_name_before}"
    for place in instance.diff_locations:
        yield f"place        {place.file_path}, lines {place.start_line}–{place.end_line}"
    for each in instance.purity_check_result_list:
        yield f"purity       {'pure' if each.is_pure else 'not pure'}: {each.description}"
    if (context := instance.context) is not None:
        callers, callees = len(context.callers), len(context.callees)
        yield f"context      {plural(callers, 'caller')}, {plural(callees, 'callee')}"
    yield f"verified     {'yes' if instance.verified else 'no'}"
    if instance.java_release is not None:
        yield f"JDK          {instance.java_release}"
    for name, counter in (instance.coverage_info or {}).items():
        yield f"coverage     {name}: {counter.covered} covered, {counter.missed} missed"
