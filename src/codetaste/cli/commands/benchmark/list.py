"""``codetaste benchmark list``: list a benchmark's instances."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import INSTANCE_METADATA_FILE, Track, environment_folder
from codetaste.cli.arguments import resolve_benchmark
from codetaste.cli.options import AsJson, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance


@command
def print_instances(
    *,
    benchmark: str = "quickstart",
    repos: OptionalPath = None,
    instance: Several = (),
    language: Several = (),
    category: Several = (),
    json_: AsJson = False,
) -> int:
    """Print a line for each instance.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO.
        instance: Globs on instance ids; default all.
        language: Only those in one of these languages.
        category: Only those whose category matches one of these globs.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the benchmark does not exist, or no instance matches.
    """
    opened = resolve_benchmark(benchmark, repos)
    rows = [
        instance_row(opened, each) for each in _filter(opened, opened.select(instance), language, category)
    ]
    if json_:
        print_result(json_document({"instances": rows}))
        return 0
    width = max(len(row["instance"]) for row in rows)
    for row in rows:
        absent = [name for name in ("descriptions", "rules", "environment") if not row[name]]
        lacking = f"  without {', '.join(absent)}" if absent else ""
        print_result(
            printable(f"{row['instance']:<{width}}  {row['language']:<10}  {row['category']}{lacking}")
        )
    print_result(f"{len(rows)} of {len(opened.instances)} instances")
    return 0


def _filter(
    benchmark: Benchmark, instances: Sequence[Instance], names: Sequence[str], globs: Sequence[str]
) -> list[Instance]:
    """Return the instances in one of the languages ``names`` whose category matches one of ``globs``."""
    languages = {each.lower() for each in names}
    known = {each.language for each in benchmark.instances}
    unknown = sorted(languages - {language.lower() for language in known})
    if unknown:
        raise ConfigError(
            *(
                f"no instance of {benchmark.root} is in {each!r} (languages: {', '.join(sorted(known))})"
                for each in unknown
            )
        )
    found = [
        each
        for each in instances
        if (not languages or each.language.lower() in languages)
        and (not globs or any(_matches(each.category, glob) for glob in globs))
    ]
    if not found:
        raise ConfigError(f"no instance of {benchmark.root} matches all of these filters")
    return found


def _matches(category: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(category.lower(), glob.lower())


def instance_row(benchmark: Benchmark, instance: Instance) -> dict[str, Any]:
    """Return the JSON data of an instance in the list."""
    rules = [benchmark.rules_path(instance, direction).is_file() for direction in Direction]
    texts = [benchmark.description_path(instance, track).is_file() for track in Track]
    folder = environment_folder(benchmark.root, instance)
    return {
        "instance": instance.id,
        "repository": f"{instance.owner}/{instance.repo}",
        "base": instance.commit_hash,
        "golden": instance.golden_commit_hash,
        "language": instance.language,
        "category": instance.category,
        "descriptions": all(texts),
        "rules": any(rules),
        "environment": (folder / INSTANCE_METADATA_FILE).is_file(),
    }
