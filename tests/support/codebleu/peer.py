"""Scores of the package ``codebleu``, run by the Python of an environment that has it.

``python peer.py FILE [ordered]`` reads a JSON list of pairs (candidate, reference). It writes a list of
(ngram, weighted ngram, syntax, data flow, score) and the CPU seconds that they took. ``ordered`` gives the
package sets that keep their order: without it the data flow depends on the seed of Python's hashes.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

PARTS = (
    "ngram_match_score",
    "weighted_ngram_match_score",
    "syntax_match_score",
    "dataflow_match_score",
    "codebleu",
)


class OrderedSet(dict[Any, None]):
    """A set in the order in which its items came."""

    def __init__(self, items: Any = ()) -> None:
        super().__init__(dict.fromkeys(items))

    def add(self, item: Any) -> None:
        self[item] = None


def main(path: str, *options: str) -> None:
    logging.disable(logging.CRITICAL)
    score = import_module("codebleu").calc_codebleu
    if "ordered" in options:
        for module in ("codebleu.dataflow_match", "codebleu.parser.DFG"):
            vars(import_module(module))["set"] = OrderedSet
    pairs = json.loads(Path(path).read_text("utf-8"))
    score(["int a;"], ["int a;"], "java")
    started = time.process_time()
    results = [score([reference], [candidate], "java") for candidate, reference in pairs]
    used = time.process_time() - started
    json.dump({"scores": [[each[part] for part in PARTS] for each in results], "cpu_s": used}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
