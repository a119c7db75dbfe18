"""``codetaste swe-refactor check``: look for contradictions in a file of instances."""

from __future__ import annotations

from pathlib import Path

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import plural, printable
from codetaste.swe_refactor.dataset.consistency import find_inconsistencies
from codetaste.swe_refactor.dataset.format import read_instances


@command
def check(file: Path, /, *, json_: AsJson = False) -> int:
    """Check that the keys of each instance fit together.

    Args:
        file: A file in the published shape.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the file cannot be read, or is not of the published shape: a line for each problem.
    """
    instances = read_instances(file)
    problems = {each.unique_id: list(find_inconsistencies(each)) for each in instances}
    bad = {name: lines for name, lines in problems.items() if lines}
    if json_:
        print_result(json_document({"instances": len(instances), "problems": bad}))
    else:
        for name, lines in bad.items():
            for line in lines:
                print_result(printable(f"{name}: {line}"))
        verified = sum(each.verified for each in instances)
        state = f"{len(bad)} with problems, {verified} verified"
        print_result(f"{plural(len(instances), 'instance')}: {state}")
    return 1 if bad else 0
