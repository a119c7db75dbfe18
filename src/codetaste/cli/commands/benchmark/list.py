"""``codetaste benchmark list`` and ``show``: list a benchmark's instances, or show one in detail."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.facts.facts import describe_benchmark
from codetaste.benchmark.layout import INSTANCE_METADATA_FILE, Track, environment_folder
from codetaste.cli.arguments import resolve_benchmark, resolve_instance
from codetaste.console import print_result
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.facts.facts import InstanceFacts
    from codetaste.benchmark.instance import Instance

_UNKNOWN = "?"
_MAX_LINE = 20_000


@dataclass(frozen=True, slots=True)
class BenchmarkListArguments:
    """Arguments of ``codetaste benchmark list``."""

    benchmark: str
    repos: Path | None = None
    instances: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    json: bool = False


def print_instances(arguments: BenchmarkListArguments) -> int:
    """Print a line for each instance; returns the exit code.

    Raises:
        ConfigError: the benchmark does not exist, or no instance matches.
    """
    benchmark = resolve_benchmark(arguments.benchmark, arguments.repos)
    rows = [_row(benchmark, each) for each in _chosen(benchmark, arguments)]
    if arguments.json:
        print_result(json.dumps(rows, indent=2))
        return 0
    width = max(len(row["instance"]) for row in rows)
    for row in rows:
        absent = [name for name in ("descriptions", "rules", "environment") if not row[name]]
        lacking = f"  without {', '.join(absent)}" if absent else ""
        print_result(
            printable(f"{row['instance']:<{width}}  {row['language']:<10}  {row['category']}{lacking}")
        )
    print_result(f"{len(rows)} of {len(benchmark.instances)} instances")
    return 0


def print_instance(name: str, benchmark_name: str, repos: Path | None, *, as_json: bool) -> int:
    """Print the details of one instance; returns the exit code.

    Raises:
        ConfigError: the benchmark or instance does not exist, or the glob matches several.
        ToolMissing: there is a clone, but no git.
    """
    benchmark = resolve_benchmark(benchmark_name, repos)
    (facts,) = describe_benchmark(benchmark, [resolve_instance(benchmark, name)]).instances
    data = _instance_to_json(benchmark, facts)
    print_result(json.dumps(data, indent=2) if as_json else _format_instance(data))
    return 0


def _chosen(benchmark: Benchmark, arguments: BenchmarkListArguments) -> list[Instance]:
    languages = {each.lower() for each in arguments.languages}
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
        for each in benchmark.select(arguments.instances)
        if (not languages or each.language.lower() in languages)
        and (not arguments.categories or any(_matches(each.category, glob) for glob in arguments.categories))
    ]
    if not found:
        raise ConfigError(f"no instance of {benchmark.root} matches all of these filters")
    return found


def _matches(category: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(category.lower(), glob.lower())


def _row(benchmark: Benchmark, instance: Instance) -> dict[str, Any]:
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


def _instance_to_json(benchmark: Benchmark, facts: InstanceFacts) -> dict[str, Any]:
    instance = facts.instance
    return {
        **_row(benchmark, instance),
        "folder": str(benchmark.root),
        "clone": None if facts.clone is None else str(facts.clone),
        "licence": facts.licence,
        "descriptions": {track.value: _description(benchmark, instance, track) for track in Track},
        "rules": {"additive": facts.additive_rules, "reductive": facts.reductive_rules},
        "golden_patch": None if facts.golden is None else asdict(facts.golden),
        "baseline": {
            "base_tests": _test_counts(facts.base_tests),
            "golden_tests": _test_counts(facts.golden_tests),
        },
        "problems": list(facts.problems),
    }


def _description(benchmark: Benchmark, instance: Instance, track: Track) -> str | None:
    try:
        return benchmark.description(instance, track).strip()
    except ConfigError:
        return None


def _test_counts(metrics: Any) -> dict[str, int] | None:  # noqa: ANN401 - JSON
    if metrics is None:
        return None
    names = ("passed", "failed", "skipped", "total")
    return {name: metrics[name] for name in names if type(metrics.get(name)) is int}


def _format_instance(data: dict[str, Any]) -> str:
    golden = data["golden_patch"]
    size = f"{golden['files']} files, +{golden['added']} -{golden['removed']} lines" if golden else _UNKNOWN
    additive, reductive = (_format_count(data["rules"][each]) for each in ("additive", "reductive"))
    runs = [_format_tests(which, data["baseline"][f"{which}_tests"]) for which in ("base", "golden")]
    lines = [
        data["instance"],
        f"  repository    {data['repository']}, licence {data['licence']}",
        f"  kind          {data['language']}; {data['category']}",
        f"  base          {data['base']}",
        f"  golden        {data['golden']}",
        f"  golden patch  {size}",
        f"  rules         {additive} additive, {reductive} reductive",
        f"  tests         {'; '.join(runs)}",
        f"  clone         {data['clone'] or 'none here'}",
        *(f"  problem       {problem}" for problem in data["problems"]),
    ]
    for track, text in data["descriptions"].items():
        lines += ["", f"{track}: {'there is no description' if text is None else ''}".rstrip()]
        lines += [] if text is None else [f"  {line}".rstrip() for line in text.splitlines()]
    return "\n".join(printable(line, _MAX_LINE) for line in lines)


def _format_tests(which: str, counts: dict[str, int] | None) -> str:
    if not counts:
        return f"{which} {_UNKNOWN}"
    return (
        f"{which} {_format_count(counts.get('passed'))} passed, {_format_count(counts.get('failed'))} failed"
    )


def _format_count(number: int | None) -> str:
    return _UNKNOWN if number is None else str(number)
