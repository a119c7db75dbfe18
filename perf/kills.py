"""Repeated kill -9 during one run of short jobs: nothing is repeated or lost, and costs equal the bill.

After each kill the journal must be valid and cover what the model has billed, and no job that it records as
done may begin again; the witness is a file that the jobs write themselves. A job killed before its end begins
again by design ("interrupted"): its paid replies are replayed and not bought again.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

from measure import Report, arguments, machine, versions

from codetaste.orchestration.budget.cost import Cost
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import read_lines

PROGRAM = Path(__file__).with_name("killed_jobs.py")
KILLS, JOBS = 100, 1000
_PATIENCE_S = 60.0


@dataclass(slots=True)
class Tally:
    """The counts and costs of a run with kills."""

    jobs: int
    kills: int = 0
    sessions: int = 0
    interrupted: int = 0
    repeated: int = 0
    lost: int = 0
    bought: int = 0
    bought_twice: int = 0
    billed_usd: str = ""
    settled_usd: str = ""
    unknown_usd: str = ""
    wall_s: float = 0.0

    @property
    def correct(self) -> bool:
        """Whether nothing was repeated or lost, and the money agrees."""
        wrong = self.repeated or self.lost or self.bought_twice
        return not wrong and self.billed_usd == self.settled_usd and Decimal(self.unknown_usd) == 0


class Run:
    """One run directory and its tally."""

    def __init__(self, folder: Path, jobs: int, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.tally = Tally(jobs)
        self.done: set[str] = set()
        self._seen = 0

    def witnessed(self) -> list[str]:
        """Return the lines that the jobs have written."""
        path = self.folder / "witness"
        return path.read_text().splitlines() if path.exists() else []

    def size(self) -> int:
        """Return the bytes that the jobs have written."""
        path = self.folder / "witness"
        return path.stat().st_size if path.exists() else 0

    def session(self, *, kill_after: int | None) -> None:
        """Start the run; kill it when ``kill_after`` more lines are witnessed, or let it end."""
        command = [sys.executable, str(PROGRAM), str(self.folder), str(self.tally.jobs)]
        until = time.monotonic() + _PATIENCE_S
        # The size is cheap to poll; a line has about as many bytes as this one.
        enough = self.size() + (kill_after or 0) * len("begins job 100\n")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            if kill_after is None:
                _, stderr = process.communicate()
                assert process.returncode == 0, stderr
            else:
                while self.size() < enough and process.poll() is None:
                    time.sleep(0.002)
                    assert time.monotonic() < until, "the run makes no progress"
                time.sleep(self.rng.random() * 0.01)
                self.tally.kills += process.poll() is None
                process.kill()
        self.check()

    def check(self) -> None:
        """Check the journal, the witness and the costs after a session."""
        journal = self.folder / "journal.jsonl"
        lines = [line for _end, line in read_lines(journal)] if journal.exists() else []
        self.tally.sessions = sum(line["event"] == "session" for line in lines)
        witnessed = self.witnessed()
        begun = {line.partition(" ")[2] for line in witnessed[self._seen :]}
        self._seen = len(witnessed)
        self.tally.repeated += len(begun & self.done)
        ended = [line["key"] for line in lines if line["event"] == "ended" and line["status"] == "done"]
        self.tally.repeated += len(ended) - len(set(ended))
        ends = {line.partition(" ")[2] for line in witnessed if line.startswith("ends ")}
        self.tally.lost += len(self.done - set(ended)) + len(set(ended) - ends)
        self.done = set(ended)
        self._check_money(lines)

    def _check_money(self, lines: list[dict[str, object]]) -> None:
        ledger = self.folder / "models" / "scripted.ledger.jsonl"
        text = ledger.read_text() if ledger.exists() else ""
        bills = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        effects = [bill["call"].rpartition("#")[0] for bill in bills]
        billed = sum((Decimal(bill["cost_usd"]) for bill in bills), Decimal(0))
        prior = History(lines).prior_charges().values()
        settled = sum((each.settled for each in prior), Cost()).usd
        unknown = sum((each.unknown for each in prior), Cost()).usd
        assert settled <= billed <= settled + unknown, "the journal does not cover the bill"
        self.tally.bought, self.tally.bought_twice = len(bills), len(effects) - len(set(effects))
        self.tally.billed_usd, self.tally.settled_usd = f"{billed.normalize():f}", f"{settled.normalize():f}"
        self.tally.unknown_usd = f"{unknown.normalize():f}"


def kill_repeatedly(folder: Path, kills: int, jobs: int, rng: random.Random) -> Tally:
    """Kill the run ``kills`` times, spread over its length, and then let it end."""
    folder.mkdir()
    run, began_s = Run(folder, jobs, rng), time.monotonic()
    while (left := kills - run.tally.kills) > 0:
        assert len(run.done) < jobs, "the run ended before all kills"
        # A job writes two lines; leave work for all remaining kills.
        share = 2 * (jobs - len(run.done)) / (left + 1)
        run.session(kill_after=rng.randint(0, max(1, int(share * 1.2))))
    run.session(kill_after=None)
    begins = [line for line in run.witnessed() if line.startswith("begins ")]
    run.tally.interrupted = len(begins) - jobs
    run.tally.lost += jobs - len(run.done)
    run.tally.wall_s = round(time.monotonic() - began_s, 1)
    return run.tally


def main() -> int:
    parser = arguments(__doc__, 1)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    chosen = parser.parse_args()
    about = {**machine(), **versions(sys.executable, "codetaste"), "seed": chosen.seed}
    report = Report(f"kills: {chosen.kills} during a run of {chosen.jobs} jobs", about)
    for number in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as folder:
            rng = random.Random(chosen.seed + number)
            tally = kill_repeatedly(Path(folder, "run"), chosen.kills, chosen.jobs, rng)
        for name, value in asdict(tally).items():
            zero = 0.0 if name in {"repeated", "lost", "bought_twice", "unknown_usd"} else None
            report.add(name.replace("_", " "), [float(value)], "", most=zero)
        assert tally.correct, tally
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
