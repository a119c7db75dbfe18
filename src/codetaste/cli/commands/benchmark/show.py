"""``codetaste benchmark show``: show one instance in detail."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.facts.facts import describe_benchmark
from codetaste.benchmark.layout import Track
from codetaste.cli.arguments import resolve_benchmark, resolve_instance
from codetaste.cli.commands.benchmark.list import instance_row
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import printable
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.facts.facts import InstanceFacts
    from codetaste.benchmark.instance import Instance

_UNKNOWN = "?"
_MAX_LINE = 20_000


@command
def show(
    instance: str,
    /,
    *,
    benchmark: str = "quickstart",
    repos: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Print the details of one instance.

    Args:
        instance: Its id, or a glob that matches exactly one.
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the benchmark or instance does not exist, or the glob matches several.
        ToolMissing: there is a clone, but no git.
    """
    opened = resolve_benchmark(benchmark, repos)
    (facts,) = describe_benchmark(opened, [resolve_instance(opened, instance)]).instances
    data = _instance_to_json(opened, facts)
    print_result(json_document(data) if json_ else _format_instance(data))
    return 0


def _instance_to_json(benchmark: Benchmark, facts: InstanceFacts) -> dict[str, Any]:
    instance = facts.instance
    return {
        **instance_row(benchmark, instance),
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
