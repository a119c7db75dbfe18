"""``codetaste benchmark list`` and ``show``: a benchmark's instances, and all that is known of one."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.catalog import Track
from codetaste.benchmark.statistics import describe_benchmark
from codetaste.command import say
from codetaste.commands.named import named_benchmark, named_instance
from codetaste.errors import ConfigError
from codetaste.report.progress import printable
from codetaste.rules.verdict import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.benchmark.statistics import InstanceFacts

_UNKNOWN = "?"
_LINE = 20_000


@dataclass(frozen=True, slots=True)
class Wish:
    """Which instances of which benchmark are wanted."""

    benchmark: str
    repos: Path | None = None
    instances: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    json: bool = False


def list_instances(wish: Wish) -> int:
    """Print a line for each instance; returns the exit code.

    Raises:
        ConfigError: there is no such benchmark, or nothing in it is wanted.
    """
    benchmark = named_benchmark(wish.benchmark, wish.repos)
    rows = [_row(benchmark, each) for each in _chosen(benchmark, wish)]
    if wish.json:
        say(json.dumps(rows, indent=2))
        return 0
    width = max(len(row["instance"]) for row in rows)
    for row in rows:
        absent = [name for name in ("descriptions", "rules", "environment") if not row[name]]
        lacking = f"  without {', '.join(absent)}" if absent else ""
        say(printable(f"{row['instance']:<{width}}  {row['language']:<10}  {row['category']}{lacking}"))
    say(f"{len(rows)} of {len(benchmark.instances)} instances")
    return 0


def show_instance(name: str, benchmark_name: str, repos: Path | None, *, as_json: bool) -> int:
    """Print what is known of one instance; returns the exit code.

    Raises:
        ConfigError: there is no such benchmark or instance, or the glob fits several.
        ToolMissing: there is a clone, but no git.
    """
    benchmark = named_benchmark(benchmark_name, repos)
    (facts,) = describe_benchmark(benchmark, [named_instance(benchmark, name)]).instances
    told = _told(benchmark, facts)
    say(json.dumps(told, indent=2) if as_json else _text(told))
    return 0


def _chosen(benchmark: Benchmark, wish: Wish) -> list[Instance]:
    languages = {each.lower() for each in wish.languages}
    known = {each.language for each in benchmark.instances}
    strangers = sorted(languages - {language.lower() for language in known})
    if strangers:
        raise ConfigError(
            *(
                f"no instance of {benchmark.root} is in {each!r} (languages: {', '.join(sorted(known))})"
                for each in strangers
            )
        )
    found = [
        each
        for each in benchmark.select(wish.instances)
        if (not languages or each.language.lower() in languages)
        and (not wish.categories or any(_fits(each.category, glob) for glob in wish.categories))
    ]
    if not found:
        raise ConfigError(f"no instance of {benchmark.root} fits all of this")
    return found


def _fits(category: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(category.lower(), glob.lower())


def _row(benchmark: Benchmark, instance: Instance) -> dict[str, Any]:
    rules = [benchmark.rules_path(instance, direction).is_file() for direction in Direction]
    texts = [benchmark.description_path(instance, track).is_file() for track in Track]
    folder = benchmark.root / "instance_images" / instance.path
    return {
        "instance": instance.id,
        "repository": f"{instance.owner}/{instance.repo}",
        "base": instance.commit_hash,
        "golden": instance.golden_commit_hash,
        "language": instance.language,
        "category": instance.category,
        "descriptions": all(texts),
        "rules": any(rules),
        "environment": (folder / "instance_metadata.json").is_file(),
    }


def _told(benchmark: Benchmark, facts: InstanceFacts) -> dict[str, Any]:
    instance = facts.instance
    return {
        **_row(benchmark, instance),
        "folder": str(benchmark.root),
        "clone": None if facts.clone is None else str(facts.clone),
        "licence": facts.licence,
        "descriptions": {track.value: _description(benchmark, instance, track) for track in Track},
        "rules": {"additive": facts.additive_rules, "reductive": facts.reductive_rules},
        "golden_patch": None if facts.golden is None else asdict(facts.golden),
        "baseline": {"base_tests": _tests(facts.base_tests), "golden_tests": _tests(facts.golden_tests)},
        "problems": list(facts.problems),
    }


def _description(benchmark: Benchmark, instance: Instance, track: Track) -> str | None:
    try:
        return benchmark.description(instance, track).strip()
    except ConfigError:
        return None


def _tests(metrics: Any) -> dict[str, int] | None:  # noqa: ANN401 - JSON
    if metrics is None:
        return None
    names = ("passed", "failed", "skipped", "total")
    return {name: metrics[name] for name in names if type(metrics.get(name)) is int}


def _text(told: dict[str, Any]) -> str:
    golden = told["golden_patch"]
    size = f"{golden['files']} files, +{golden['added']} -{golden['removed']} lines" if golden else _UNKNOWN
    rules = told["rules"]
    runs = [_run(which, told["baseline"][f"{which}_tests"]) for which in ("base", "golden")]
    lines = [
        told["instance"],
        f"  repository    {told['repository']}, licence {told['licence']}",
        f"  kind          {told['language']}; {told['category']}",
        f"  base          {told['base']}",
        f"  golden        {told['golden']}",
        f"  golden patch  {size}",
        f"  rules         {_known(rules['additive'])} additive, {_known(rules['reductive'])} reductive",
        f"  tests         {'; '.join(runs)}",
        f"  clone         {told['clone'] or 'none here'}",
        *(f"  problem       {problem}" for problem in told["problems"]),
    ]
    for track, text in told["descriptions"].items():
        lines += ["", f"{track}: {'there is no description' if text is None else ''}".rstrip()]
        lines += [] if text is None else [f"  {line}".rstrip() for line in text.splitlines()]
    return "\n".join(printable(line, _LINE) for line in lines)


def _run(which: str, counts: dict[str, int] | None) -> str:
    if not counts:
        return f"{which} {_UNKNOWN}"
    return f"{which} {_known(counts.get('passed'))} passed, {_known(counts.get('failed'))} failed"


def _known(number: int | None) -> str:
    return _UNKNOWN if number is None else str(number)
