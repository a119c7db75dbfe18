"""CodeBLEU of pairs a second: codetaste beside the package ``codebleu`` 0.7.0 with its own parsers.

The pairs are methods, and then whole files, of libraries whose sources are fetched, with mutations of them
(``tests/support/codebleu/java_pairs.py``). Both sides are timed by themselves, in CPU seconds without
start-up and imports. ::

    python perf/codebleu.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measure import Report, Use, arguments, interleaved, measured, ratio
from peers import peer_python

from codetaste.core.paths import cache_dir

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.codebleu import peer
from support.codebleu.java_pairs import Pair, fetch_files, make_pairs, methods

SEED = 20_261_125
METHODS, FILES = 1000, 60
_OURS = """
import json, sys, time
from pathlib import Path
from codetaste.codebleu.score import codebleu
pairs = json.loads(Path(sys.argv[1]).read_text("utf-8"))
codebleu("int a;", "int a;")
started = time.process_time()
scores = [codebleu(candidate, reference, as_published=True).score for candidate, reference in pairs]
json.dump({"scores": scores, "cpu_s": time.process_time() - started}, sys.stdout)
"""


def compare(report: Report, name: str, pairs: list[Pair], rounds: int, python: Path) -> None:
    """Add the pairs a second of both sides, and their ratio."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "pairs.json")
        path.write_text(json.dumps(pairs), "utf-8")
        sides = {
            "codetaste": lambda: measured([sys.executable, "-c", _OURS, path]),
            "codebleu 0.7.0": lambda: measured([python, peer.__file__, path]),
        }
        uses = interleaved(sides, rounds)
    taken = {side: [_scored(use, len(pairs)) for use in each] for side, each in uses.items()}
    for side, each in taken.items():
        report.add(f"{name}: {side}, pairs a CPU second", [len(pairs) / cpu_s for cpu_s in each], "")
    report.add(f"{name}: CPU of codebleu 0.7.0 / codetaste", ratio(*reversed(taken.values())), " ×")


def _scored(use: Use, count: int) -> float:
    """Return the CPU seconds of the scores."""
    done = json.loads(use.output)
    if len(done["scores"]) != count:
        sys.exit(f"{len(done['scores'])} scores instead of {count}")
    return float(done["cpu_s"])


def main() -> int:
    parser = arguments(__doc__, 5)
    chosen = parser.parse_args()
    python = peer_python("codebleu==0.7.0", "tree-sitter==0.22.3", "tree-sitter-java==0.21.0")
    files = fetch_files(cache_dir(sys.exit))
    texts = sorted({text for file in files for text in methods(file)})
    report = Report("CodeBLEU of Java")
    compare(report, f"{METHODS:,} pairs of methods", make_pairs(texts, METHODS, SEED), chosen.rounds, python)
    whole = [file.decode("utf-8", "replace") for file in files]
    compare(report, f"{FILES} pairs of files", make_pairs(whole, FILES, SEED), chosen.rounds, python)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
