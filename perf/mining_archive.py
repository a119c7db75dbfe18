"""Stage 1 over hour files: reading made-up hours of GH Archive beside ``gzip -dc | wc -l``, and ranking.

Hours are of realistic size, shape and dirt (``tests/support/mining/archive_hours.py``). Our side unpacks
them, finds the merged pull requests, checks them, writes the records and ranks them; the peer only unpacks
and counts lines. Then a million records, all with enough stars and files, are ranked. Targets are of CPU, so
that they hold on one free core, too. ::

    python perf/mining_archive.py
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path

from measure import Report, Use, arguments, interleaved, measured, ratio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.mining.archive_hours import HourShape, made_change, write_made_hour

MAX_RATIO, MAX_MEMORY, MAX_RANK_S = 2.0, 1e9, 20.0
_STAGE1 = """
import json, sys
from pathlib import Path
import anyio
from codetaste.mining.archive.extract import extract_hours
from codetaste.mining.archive.hour import find_hour_files
from codetaste.mining.keywords.sets import load_keyword_sets
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.rank import rank_record_files

async def main(hours, folder):
    summaries = await extract_hours(find_hour_files([hours]), folder)
    files = [summary.records for summary in summaries]
    ranking = await rank_record_files(files, load_keyword_sets(), RankingConfig(), folder)
    print(json.dumps([sum(each.lines for each in summaries), ranking.rows[0].entered, len(ranking.commits)]))

if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
"""
_RANK = """
import json, sys
from pathlib import Path
import anyio
from codetaste.mining.keywords.sets import load_keyword_sets
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.rank import rank_record_files

async def main(folder):
    files = sorted(folder.glob("*.jsonl"))
    ranking = await rank_record_files(files, load_keyword_sets(), RankingConfig(), folder)
    print(json.dumps([ranking.rows[0].entered, len(ranking.commits)]))

anyio.run(main, Path(sys.argv[1]))
"""
_COUNT_LINES = 'for file in "$0"/*.json.gz; do gzip -dc "$file" | wc -l; done'


def write_million(folder: Path, records: int, files: int = 10) -> float:
    """Write records that all reach the keywords; return their bytes."""
    random_ = random.Random(1)
    for number in range(files):
        with Path(folder, f"{number}.jsonl").open("w") as file:
            for each in range(records // files):
                change = made_change(random_, each)
                row = {
                    "repository": change.repository,
                    "golden": change.golden,
                    "number": each,
                    "title": change.title,
                    "body": change.body,
                    "stars": change.stars + 90,
                    "files": change.files + 45,
                    "date": "2023-04-05T06:07:08+00:00",
                }
                file.write(json.dumps(row) + "\n")
    return float(sum(path.stat().st_size for path in folder.iterdir()))


def run_stage1(script: Path, hours: Path, lines: int, merged: int) -> Use:
    """Run all of stage 1 in a new folder, and check what it found."""
    with tempfile.TemporaryDirectory(dir=script.parent) as folder:
        use = measured([sys.executable, script, hours, folder])
    found = json.loads(use.output)
    if found[:2] != [lines, merged]:
        sys.exit(f"{found[0]} lines and {found[1]} merged pull requests instead of {lines} and {merged}")
    return use


def add_hours(report: Report, place: Path, hours: int, events: int, rounds: int) -> None:
    """Measure stage 1 over hours beside unpacking them."""
    folder, script = place / "hours", place / "stage1.py"
    folder.mkdir()
    script.write_text(_STAGE1)
    shape = HourShape(events)
    made = [write_made_hour(folder / f"2023-04-05-{hour}.json.gz", shape, seed=hour) for hour in range(hours)]
    merged = sum(len(each.changes) for each in made)
    packed = sum(each.path.stat().st_size for each in made)
    uses = interleaved(
        {
            "gzip -dc | wc -l": lambda: measured(["bash", "-c", _COUNT_LINES, folder]),
            "stage 1": lambda: run_stage1(script, folder, hours * events, merged),
        },
        rounds,
    )
    name = f"{hours} hours, {hours * events:,} events, {packed / 1e6:.0f} MB"
    for side, each in uses.items():
        report.add(f"{name}: {side}, CPU", [use.cpu_s for use in each], " s")
        report.add(f"{name}: {side}, wall", [use.wall_s for use in each], " s")
    ours, peer = uses["stage 1"], uses["gzip -dc | wc -l"]
    report.add(
        f"{name}: stage 1, memory of its largest process",
        [use.rss / 1e6 for use in ours],
        " MB",
        most=MAX_MEMORY / 1e6,
    )
    wall = ratio([use.wall_s for use in ours], [use.wall_s for use in peer])
    report.add(f"{name}: wall of stage 1 / gzip", wall, " ×")
    cpu = ratio([use.cpu_s for use in ours], [use.cpu_s for use in peer])
    report.add(f"{name}: CPU of stage 1 / gzip", cpu, " ×", most=MAX_RATIO)


def add_ranking(report: Report, place: Path, records: int, rounds: int) -> None:
    """Measure the ranking of records that all reach the keywords."""
    folder, script = place / "records", place / "rank.py"
    folder.mkdir()
    script.write_text(_RANK)
    size = write_million(folder, records)
    uses = [measured([sys.executable, script, folder]) for _ in range(rounds)]
    if any(json.loads(use.output)[0] != records for use in uses):
        sys.exit(f"not all of the {records:,} records were read: {uses[0].output}")
    name = f"{records:,} records, {size / 1e6:.0f} MB"
    report.add(f"{name}: ranking, CPU", [use.cpu_s for use in uses], " s", most=MAX_RANK_S)
    report.add(f"{name}: ranking, wall", [use.wall_s for use in uses], " s")
    report.add(f"{name}: ranking, peak memory", [use.rss / 1e6 for use in uses], " MB", most=MAX_MEMORY / 1e6)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--hours", type=int, default=8, help="hours (default 8)")
    parser.add_argument("--events", type=int, default=60_000, help="events of an hour (default 60,000)")
    parser.add_argument("--records", type=int, default=1_000_000, help="ranked records (default 1,000,000)")
    chosen = parser.parse_args()
    report = Report(f"stage 1 over hour files, {os.cpu_count()} processes")
    with tempfile.TemporaryDirectory() as scratch:
        add_hours(report, Path(scratch), chosen.hours, chosen.events, chosen.rounds)
        add_ranking(report, Path(scratch), chosen.records, chosen.rounds)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
