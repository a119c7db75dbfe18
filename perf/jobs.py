"""CPU and memory of the scheduler: 1,000 trivial, paid and waiting jobs, beside samples of Inspect.

The journal is on and synced to disk. CPU is that of the whole process with its start, divided by the jobs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measure import Report, Use, arguments, interleaved, machine, measured, ratio, versions
from peers import peer_python

HERE = Path(__file__).resolve().parent
COUNT, PERMITS, MANY = 1000, 100, 10_000
MAX_CPU_MS, MAX_MB, MAX_WALL_S = 1.0, 60.0, 2.0


def workload(python: str | Path, script: str, kind: str, count: int, permits: int) -> Use:
    with tempfile.TemporaryDirectory() as folder:
        command = [python, HERE / script, kind, str(count), str(permits), folder]
        return measured(command, cwd=HERE)


def main() -> int:
    chosen = arguments(__doc__, 5).parse_args()
    inspect, about = peer_python("inspect_ai"), machine()

    def ours(kind: str, count: int = COUNT, permits: int = PERMITS) -> Use:
        return workload(sys.executable, "workload.py", kind, count, permits)

    def peer(kind: str, permits: int = PERMITS) -> Use:
        return workload(inspect, "inspect_workload.py", kind, COUNT, permits)

    uses = interleaved(
        {
            "trivial": lambda: ours("trivial"),
            "paid": lambda: ours("paid"),
            "inspect": lambda: peer("trivial"),
            "wait": lambda: ours("wait", permits=COUNT),
            "inspect wait": lambda: peer("wait", permits=COUNT),
            "idle": lambda: ours("idle", MANY, MANY),
            "none": lambda: ours("trivial", 1, 1),
        },
        chosen.rounds,
    )
    about |= {**versions(sys.executable, "codetaste"), **versions(inspect, "inspect_ai")}
    report = Report(f"jobs: {COUNT} with {PERMITS} permits, journal on", about)
    cpu = {name: [use.cpu_s * 1000 / COUNT for use in each] for name, each in uses.items()}
    memory = {name: [use.rss / 1e6 for use in each] for name, each in uses.items()}
    report.add("a trivial job, CPU", cpu["trivial"], " ms", most=MAX_CPU_MS)
    report.add("trivial jobs, peak memory", memory["trivial"], " MB", most=MAX_MB)
    report.add("start-up alone, CPU (one job)", [use.cpu_s * 1000 for use in uses["none"]], " ms")
    report.add("a job with a paid call, CPU", cpu["paid"], " ms")
    report.add("jobs with a paid call, peak memory", memory["paid"], " MB")
    report.add("an Inspect sample (mock model), CPU", cpu["inspect"], " ms")
    report.add("Inspect samples, peak memory", memory["inspect"], " MB")
    report.add("CPU of an Inspect sample / a trivial job", ratio(cpu["inspect"], cpu["trivial"]), " ×")
    report.add("CPU of an Inspect sample / a job with a paid call", ratio(cpu["inspect"], cpu["paid"]), " ×")
    report.add("memory of Inspect / trivial jobs", ratio(memory["inspect"], memory["trivial"]), " ×")
    wall = {name: [use.wall_s for use in uses[name]] for name in ("wait", "inspect wait")}
    report.add(f"{COUNT} jobs that wait 1 s with {COUNT} permits, wall", wall["wait"], " s", most=MAX_WALL_S)
    report.add(
        f"{COUNT} Inspect samples that wait 1 s with {COUNT} permits, wall", wall["inspect wait"], " s"
    )
    report.add("wall of Inspect / jobs that wait", ratio(wall["inspect wait"], wall["wait"]), " ×")
    figures = [json.loads(use.output) for use in uses["idle"]]
    assert all(each["waiting"] == MANY for each in figures)
    report.add(
        f"CPU of a second in which {MANY} jobs wait", [each["cpu_per_s"] * 1000 for each in figures], " ms"
    )
    report.add(f"{MANY} jobs that wait, peak memory", [each["rss"] / 1e6 for each in figures], " MB")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
