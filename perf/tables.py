"""CPU time and memory of all tables of 1,600 trials: ``codetaste report`` on both layouts.

The trials are made up (``tables_workload.py``): 100 instances, four agents, four tracks, patches of the sizes
in CodeTaste's Table 5. The peer is a script with pandas and unidiff, which makes only Tables 4 and 5. ::

    python perf/tables.py
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

from measure import Report, Use, arguments, interleaved, measured, ratio, versions
from peers import peer_python
from tables_workload import AGENTS, SEED, TRACKS, make_instances, write_benchmark, write_outputs

MAX_S, MAX_BYTES = 10.0, 400e6
INSTANCES = 100


def check(use: Use, trials: int) -> Use:
    """Check that a report has every trial and no problems."""
    document = json.loads(use.output)
    counted = document["trials"]
    if counted != trials or document["problems"]:
        sys.exit(f"{counted} trials instead of {trials}; problems: {str(document['problems'])[:1000]}")
    return use


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--instances", type=int, default=INSTANCES, help=f"default {INSTANCES}")
    parser.add_argument("--no-peer", action="store_true", help="do not measure pandas and unidiff")
    chosen = parser.parse_args()
    report = Report("all tables")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        instances = make_instances(random.Random(SEED), chosen.instances)
        write_benchmark(place / "benchmark", instances, random.Random(SEED))
        trials = len(AGENTS) * len(TRACKS) * chosen.instances
        program = Path(sys.executable).parent / "codetaste"
        patches = 0
        sides = {}
        for layout in ("ours", "published"):
            outputs = place / layout / "outputs"
            patches = write_outputs(outputs, instances, published=layout == "published")
            words = [program, "report", outputs, "--benchmark", place / "benchmark", "--table", "all"]
            check(measured([*words, "--json"]), trials + chosen.instances)  # with the null agent's
            sides[layout] = lambda words=words: measured(words)
        if not chosen.no_peer:
            python = peer_python("pandas", "unidiff", "scipy")
            report.about |= versions(python, "pandas", "unidiff", "scipy")
            script = Path(__file__).with_name("tables_peer.py")
            sides["peer"] = lambda: measured([python, script, place / "published" / "outputs"])
        uses = interleaved(sides, chosen.rounds)
        name = f"{trials:,} trials, patches of {patches / 1e6:.0f} MB"
        for side, each in uses.items():
            bound = side == "ours"  # in the published layout every precision is computed from SARIF
            report.add(
                f"{name}: {side}, CPU", [use.cpu_s for use in each], " s", most=MAX_S if bound else None
            )
            report.add(f"{name}: {side}, wall", [use.wall_s for use in each], " s")
            most = MAX_BYTES / 1e6 if bound else None
            report.add(f"{name}: {side}, peak memory", [use.rss / 1e6 for use in each], " MB", most=most)
        if "peer" in uses:
            peer = [use.cpu_s for use in uses["peer"]]
            report.add(
                f"{name}: peer / published", ratio(peer, [use.cpu_s for use in uses["published"]]), " ×"
            )
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
