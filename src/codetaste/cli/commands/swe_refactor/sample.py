"""``codetaste swe-refactor sample``: draw the stratified sample of §4.4 from a file of instances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from codetaste.cli.commands.swe_refactor.list import write_new_file
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result, result_stream, width_of
from codetaste.core.files import write_atomically
from codetaste.core.hashing import file_sha256
from codetaste.core.text import plural
from codetaste.errors import ConfigError
from codetaste.report.render.text import render_text
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.report.sample.stratified import (
    SAMPLE_SIZE,
    SHORT_LINES,
    TYPE_MIX,
    count_types,
    draw_sample,
    sample_table,
)

if TYPE_CHECKING:
    from codetaste.swe_refactor.report.sample.stratified import StratifiedSample

_MAX_SIZE = 100_000


@command
def sample(
    file: Path,
    /,
    *,
    size: Annotated[int, Parameter(validator=Number(gte=1, lte=_MAX_SIZE))] = SAMPLE_SIZE,
    seed: int = 0,
    mix: Literal["paper", "file"] = "paper",
    to: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Draw instances: half of them short, half long, in a mix of types. Print the strata.

    Args:
        file: A file in the published shape.
        size: How many instances.
        seed: Another seed draws other instances.
        mix: Types in proportion to the sample of the paper, or to those of the file.
        to: A new file, in the published shape, for the sample, which a config can name; beside it, FILE with
            the ending .sample.json says how it was drawn.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the file cannot be read, the new one exists, or strata lack instances: all are named.
        StorageFull: no space is left.
        JournalError: the new file cannot be written.
    """
    instances = read_instances(file)
    types = TYPE_MIX if mix == "paper" else count_types(instances)
    drawn = draw_sample(instances, size, seed, types)
    record = {
        "source": file.name,
        "source_sha256": file_sha256(file),
        "size": size,
        "seed": seed,
        "mix": dict(types),
        **_strata_to_json(drawn),
    }
    files = []
    if to is not None:
        beside = to.with_suffix(".sample.json")
        if beside == to or beside.exists():
            raise ConfigError(f"--to {to}: {beside} exists, or is the same; name another new file")
        ids = set(drawn.ids)
        write_new_file(to, [each for each in instances if each.unique_id in ids])
        write_atomically(beside, json.dumps(record, indent=2) + "\n")
        files = [str(to), str(beside)]
    if json_:
        print_result(json_document({**record, "instances": list(drawn.ids), "files": files}))
        return 0
    print_result(render_text(sample_table(drawn), width_of(result_stream())))
    written = f" in {to}" if to is not None else ""
    print_result(f"{plural(size, 'instance')} drawn with seed {seed}{written}")
    return 0


def _strata_to_json(drawn: StratifiedSample) -> dict[str, Any]:
    return {
        "short_lines": SHORT_LINES,
        "strata": [
            {"type": kind, "short": short, "long": long, "given_short": given[0], "given_long": given[1]}
            for kind, (short, long) in drawn.counts.items()
            for given in [drawn.available[kind]]
        ],
        "uncounted": list(drawn.uncounted),
    }
