"""Write a folder in the published layout, so that a run's rules can be used as a benchmark.

Every file is written under a temporary name, synced and renamed. The benchmark that a run reads is never
modified.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.instances_csv import format_table
from codetaste.benchmark.layout import IGNORE_FILE, INSTANCES_FILE, Track, rules_path
from codetaste.core.files import write_atomically
from codetaste.errors import ConfigError
from codetaste.source.origin import GitOrigin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.benchmark.instance import Instance
    from codetaste.rules.registration import Direction


async def write_rules(root: Path, instance: Instance, direction: Direction, yaml_text: str) -> Path:
    """Write the rules of one pass to ``assets/rules/<path>/rules_{positive,negative}.yml`` below ``root``.

    Returns:
        The path of the file, which is durable by then.

    Raises:
        StorageFull: no space left.
        JournalError: it cannot be written.
    """
    path = rules_path(root, instance, direction)
    await to_thread.run_sync(write_atomically, path, yaml_text)
    return path


async def write_benchmark(root: Path, benchmark: Benchmark, instances: Sequence[Instance]) -> None:
    """Write the table, the descriptions and the ignore file that make ``root`` a benchmark.

    Instances that an earlier call wrote to the table stay there. An open description that cannot be read is
    left out, as it is not required.

    Raises:
        ConfigError: an instructed description is missing or empty.
        StorageFull: no space left.
        JournalError: it cannot be written.
    """
    await to_thread.run_sync(_write_files, root, benchmark, instances)


def _write_files(root: Path, benchmark: Benchmark, instances: Sequence[Instance]) -> None:
    portable = tuple(with_absolute_origin(instance, benchmark) for instance in instances)
    product = Benchmark(root, _merge_earlier(root, portable, benchmark))
    for instance in instances:
        texts = {Track.INSTRUCTED: benchmark.description(instance, Track.INSTRUCTED)}
        with suppress(ConfigError):
            texts[Track.OPEN] = benchmark.description(instance, Track.OPEN)
        for track, text in texts.items():
            if text.strip():  # one that a run failed to make is empty
                write_atomically(product.description_path(instance, track), text)
    if benchmark.semgrepignore is not None:
        write_atomically(root / IGNORE_FILE, benchmark.ignore_text())
    write_atomically(root / INSTANCES_FILE, format_table(product.instances))


def _merge_earlier(root: Path, new: Sequence[Instance], benchmark: Benchmark) -> tuple[Instance, ...]:
    """Return ``new`` and the instances already in the table of ``root``, in the order of ``benchmark``."""
    try:
        earlier = open_benchmark(root).instances
    except ConfigError:
        earlier = ()
    rank = {instance.id: number for number, instance in enumerate(benchmark.instances)}
    together = {instance.id: instance for instance in (*earlier, *new)}
    return tuple(sorted(together.values(), key=lambda instance: rank.get(instance.id, len(rank))))


def with_absolute_origin(instance: Instance, benchmark: Benchmark) -> Instance:
    """Return ``instance`` with an origin that does not depend on the benchmark's folder."""
    if not instance.origin:
        return instance
    origin = benchmark.origin(instance)
    if not isinstance(origin, GitOrigin) or origin.location == instance.origin:
        return instance
    return replace(instance, extra={**instance.extra, "origin": str(Path(origin.location).absolute())})
