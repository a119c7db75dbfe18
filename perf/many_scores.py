"""Score several patches of one instance in one process, as a run does; print what that cost.

For ``score.py``. The order is JSON: ``options`` (of ``codetaste evaluate``: where everything is),
``instance``, ``patches`` (files) and ``out`` (a folder, in which each patch has a numbered one). What counts
is what is used once imports and the search for the engine are done: a run has them once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from one_scan import used_s

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.core.paths import cache_dir
from codetaste.evaluation.evaluate import evaluate
from codetaste.evaluation.output.result_files import write_evaluation
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.rules.config import RulesConfig
from codetaste.run.resolve import find_benchmark
from codetaste.run.services import open_scanner
from codetaste.source.checkout import checkout_trees


async def scored(order: dict[str, Any], patches: list[bytes]) -> dict[str, Any]:
    place = dict(zip(order["options"][::2], order["options"][1::2], strict=True))
    config = BenchmarkConfig(path=place["--benchmark"], repos=Path(place["--repos"]))
    benchmark = find_benchmark(config, Path())
    (instance,) = benchmark.select([order["instance"]])
    scanner, engine = await open_scanner(RulesConfig(), benchmark.ignore_text(), sys.exit)
    cache = cache_dir(sys.exit)
    scratch = cache / "predictions"
    scratch.mkdir(exist_ok=True)
    before_s = used_s()
    rules = read_rule_set(benchmark, instance)
    for number, patch in enumerate(patches):
        trees = await checkout_trees(benchmark.origin(instance), cache)
        evaluation = await evaluate(rules, trees.base, patch, scanner, scratch=scratch)
        write_evaluation(
            Path(order["out"], str(number)),
            evaluation,
            instance=instance,
            agent_config={},
            inference_metadata=None,
            instance_metadata=None,
            timestamp="",
        )
    return {"cpu_s": used_s() - before_s, "engine": engine.version}


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    patches = [Path(each).read_bytes() for each in order["patches"]]
    print(json.dumps(anyio.run(scored, order, patches)))
