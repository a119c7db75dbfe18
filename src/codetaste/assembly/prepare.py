"""Before products of a run are adopted: golden patches are made, and a benchmark to check them in."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from codetaste.assembly.adopt import copy_file
from codetaste.assembly.products import Part, PartFiles, part_folder, with_note, with_part
from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.instances_csv import format_table
from codetaste.benchmark.layout import IGNORE_FILE, INSTANCES_FILE, golden_path
from codetaste.core.concurrency import gather
from codetaste.core.files import write_atomically
from codetaste.errors import SourceError
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.diff import diff_trees

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.assembly.products import InstanceProducts

_MAX_CONCURRENT = 2
_COMMITS = "the two commits"


async def add_golden_patches(
    into: Path, products: Sequence[InstanceProducts], *, repos: Path | None, cache: Path, scratch: Path
) -> list[InstanceProducts]:
    """Return ``products`` with golden patches, made from the commits where neither run nor benchmark has one.

    Args:
        into: the benchmark.
        products: of a run.
        repos: a folder of clones OWNER/REPO, None for each instance's own origin.
        cache: the folder of trees.
        scratch: an existing folder; the patches are written below it.

    Raises:
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    limiter = CapacityLimiter(_MAX_CONCURRENT)
    benchmark = Benchmark(into, tuple(each.instance for each in products), repos)

    async def add(each: InstanceProducts) -> InstanceProducts:
        instance = each.instance
        if Part.GOLDEN_PATCH in each.parts or golden_path(into, instance).exists():
            return each
        if missing := benchmark.describe_missing_clone(instance):
            return with_note(each, f"no golden patch: {missing}")
        async with limiter:
            try:
                trees = await checkout_trees(benchmark.origin(instance), cache)
                patch = await diff_trees(trees.base, trees.golden, scratch)
            except SourceError as error:
                return with_note(each, f"no golden patch: {error}")
            path = golden_path(scratch, instance)
            await to_thread.run_sync(write_atomically, path, patch)
        name = golden_path(into, instance).relative_to(into).as_posix()
        return with_part(each, Part.GOLDEN_PATCH, PartFiles(_COMMITS, {name: path}))

    return await gather([partial(add, each) for each in products])


def stage_benchmark(
    into: Path,
    products: Sequence[InstanceProducts],
    folder: Path,
    *,
    ignore_file: Path | None,
    repos: Path | None,
) -> Benchmark:
    """Write ``products`` to the new ``folder`` as if they were adopted, over the benchmark's own; blocking.

    Raises:
        ConfigError: a file cannot be read.
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    for each in products:
        for part in Part:
            earlier = part_folder(into, each.instance, part)
            if earlier.is_dir():
                shutil.copytree(earlier, part_folder(folder, each.instance, part), dirs_exist_ok=True)
        for name, source in each.files.items():
            copy_file(source, folder / name)
    if ignore_file is not None:
        copy_file(ignore_file, folder / IGNORE_FILE)
    write_atomically(folder / INSTANCES_FILE, format_table([each.instance for each in products]))
    return open_benchmark(folder, repos=repos)
