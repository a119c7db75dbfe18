"""Score several patches of one instance in one process, as a run does; print the CPU time as JSON.

For ``score.py``. The argument is JSON: ``options`` (of ``codetaste evaluate``: the benchmark and clones),
``instance``, ``patches`` (files) and ``out`` (a folder with a numbered folder for each patch). The time is
without imports and the search for the engine, which a run does once.
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


async def score(task: dict[str, Any], patches: list[bytes]) -> dict[str, Any]:
    options = dict(zip(task["options"][::2], task["options"][1::2], strict=True))
    config = BenchmarkConfig(path=options["--benchmark"], repos=Path(options["--repos"]))
    benchmark = find_benchmark(config, Path())
    (instance,) = benchmark.select([task["instance"]])
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
            Path(task["out"], str(number)),
            evaluation,
            instance=instance,
            agent_config={},
            inference_metadata=None,
            instance_metadata=None,
            timestamp="",
        )
    return {"cpu_s": used_s() - before_s, "engine": engine.version}


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    patches = [Path(each).read_bytes() for each in task["patches"]]
    print(json.dumps(anyio.run(score, task, patches)))
