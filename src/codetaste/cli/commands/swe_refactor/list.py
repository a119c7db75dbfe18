"""``codetaste swe-refactor list``: list the instances of a file."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result, result_stream, width_of
from codetaste.core.text import did_you_mean, plural, printable
from codetaste.errors import ConfigError
from codetaste.report.render.text import render_text
from codetaste.swe_refactor.dataset.format import read_instances, write_instances
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.report.projects import group_projects, project_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


@command
def print_instances(
    file: Path,
    /,
    *,
    type_: Several = (),
    project: Several = (),
    verified: Flag = False,
    to: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Print a line for each instance, and their number by type; write those that are selected to a file.

    Args:
        file: A file in the published shape, such as runs/NAME/swe_refactor/instances.json.
        type_: Only those of this type, such as "Extract Method".
        project: Only those of projects whose name matches this glob, such as "junit4"; many files of one
            project do not name it.
        verified: Only those whose both sides compile and whose target is covered by tests.
        to: A new file, in the published shape, for these instances: each as it is in FILE, byte for byte.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the file cannot be read, there is no such type, or the new file exists.
        StorageFull: no space is left.
        JournalError: the new file cannot be written.
    """
    unknown = [each for each in type_ if each not in REFACTORING_TYPES]
    if unknown:
        near = did_you_mean(unknown[0], list(REFACTORING_TYPES))
        raise ConfigError(f"--type {unknown[0]}: none of the six types{near}")
    found = [
        each
        for each in read_instances(file)
        if (not type_ or each.type in type_)
        and (not project or any(fnmatchcase(each.project_name or "", glob) for glob in project))
        and (each.verified or not verified)
    ]
    if to is not None:
        write_new_file(to, found)
    if json_:
        print_result(json_document({"instances": [_row(each) for each in found]}))
        return 0
    for each in found:
        state = "verified" if each.verified else "not verified"
        line = f"{each.unique_id}  {each.type}  {each.method_name_before}  {state}"
        print_result(printable(line))
    if found:
        table = project_table(group_projects(found, file.stem))
        print_result(render_text(table, width_of(result_stream())))
    print_result(plural(len(found), "instance"))
    return 0


def write_new_file(to: Path, instances: Sequence[RefactoringInstance]) -> None:
    """Write instances to ``to``.

    Raises:
        ConfigError: it exists.
    """
    if to.exists():
        raise ConfigError(f"--to {to}: exists; name a new file")
    write_instances(to, instances)


def _row(instance: RefactoringInstance) -> dict[str, Any]:
    return {
        "id": instance.unique_id,
        "commit": instance.commit_id,
        "project": instance.project_name,
        "type": instance.type,
        "method": instance.method_name_before,
        "file": instance.file_path_before,
        "verified": instance.verified,
    }
