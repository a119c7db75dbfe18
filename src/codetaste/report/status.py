"""How far a run has come, read from its journal: also while another process is at work on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.errors import ConfigError, JournalError
from codetaste.orchestration.history import History
from codetaste.orchestration.journal import NAME, read_journal
from codetaste.orchestration.storage import owner_of
from codetaste.report.progress import printable
from codetaste.units import format_usd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.orchestration.history import Call, JobHistory


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job; ``waits_for`` is what it waits for now, ``retries`` counts by cause."""

    key: str
    model: str
    state: str
    attempts: int
    settled_usd: Decimal
    unknown_usd: Decimal
    waits_for: tuple[str, ...]
    needs: tuple[str, ...]
    retries: dict[str, int]
    error: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run at one moment. ``owner`` is the process at work on it, "" for none."""

    directory: Path
    owner: str
    sessions: int
    jobs: tuple[JobStatus, ...]

    @property
    def models(self) -> dict[str, tuple[Decimal, Decimal]]:
        """What each model cost: settled and unknown US dollars."""
        spent: dict[str, tuple[Decimal, Decimal]] = {}
        for job in self.jobs:
            if job.model:
                settled, unknown = spent.get(job.model, (Decimal(0), Decimal(0)))
                spent[job.model] = (settled + job.settled_usd, unknown + job.unknown_usd)
        return spent


def read_status(run: Path) -> RunStatus:
    """Read the status of the run in folder ``run``, or in ``runs/<run>``.

    Raises:
        ConfigError: there is no run.
        JournalError: its journal is damaged.
    """
    directory = next((place for place in (run, Path("runs") / run) if (place / NAME).is_file()), None)
    if directory is None:
        known = sorted(path.parent.name for path in Path("runs").glob(f"*/{NAME}"))
        raise ConfigError(f"{run}: no run there (runs here: {', '.join(known) or 'none'})")
    try:
        history = History(read_journal(directory / NAME))
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"{directory / NAME}: a line says what no codetaste writes ({error!r})") from error
    owner = owner_of(directory)
    calls: dict[str, list[Call]] = {}
    for call in history.calls.values():
        calls.setdefault(call.key, []).append(call)
    jobs = (_job(key, job, calls.get(key, ()), live=bool(owner)) for key, job in history.jobs.items())
    return RunStatus(directory, owner, history.sessions, tuple(jobs))


def _job(key: str, job: JobHistory, calls: Iterable[Call], *, live: bool) -> JobStatus:
    settled = unknown = Decimal(0)
    for call in calls:
        if call.state == "settled":
            settled += call.cost.usd
        elif call.state != "released":
            unknown += call.granted.usd
    state = job.state if live or job.state not in {"queued", "running", "retrying"} else "interrupted"
    waits = tuple(sorted(+job.waits)) if live else ()
    return JobStatus(
        key, job.lane, state, job.attempts, settled, unknown, waits, job.needs, dict(job.retries), job.error
    )


def render(status: RunStatus) -> str:
    """Say it as text."""
    who = f"at work: {printable(status.owner)}" if status.owner else "nobody is at work on it"
    sessions = f"{status.sessions} session{'' if status.sessions == 1 else 's'}"
    lines = [f"{status.directory}: {who}; {sessions}"]
    states = Counter(job.state for job in status.jobs)
    lines.append(", ".join(f"{count} {state.replace('_', ' ')}" for state, count in states.most_common()))
    for model, (settled, unknown) in sorted(status.models.items()):
        lines.append(
            f"{model}: {format_usd(settled)}" + (f" + {format_usd(unknown)} unknown" if unknown else "")
        )
    lines.extend(_line(job) for job in status.jobs)
    return "\n".join(lines)


def _line(job: JobStatus) -> str:
    said = f"  {job.state:<15} {job.key}"
    money = job.settled_usd + job.unknown_usd
    if money:
        said += f" · {format_usd(money)}"
    if job.waits_for:
        said += f" · waits for {', '.join(job.waits_for)}"
    elif job.state == "queued" and job.needs:
        said += f" · needs {', '.join(job.needs)}"
    if job.retries:
        said += " · tried again: " + ", ".join(f"{count} × {cause}" for cause, count in job.retries.items())
    if job.error:
        said += f" · {job.error}"
    return printable(said, 500)


def as_json(status: RunStatus) -> dict[str, Any]:
    """Say it as JSON data; money is text, exact."""

    def plain(job: JobStatus) -> dict[str, Any]:
        data = asdict(job)
        return data | {name: format(data[name], "f") for name in ("settled_usd", "unknown_usd")}

    return {
        "directory": str(status.directory),
        "owner": status.owner or None,
        "sessions": status.sessions,
        "models": {
            model: {"settled_usd": format(settled, "f"), "unknown_usd": format(unknown, "f")}
            for model, (settled, unknown) in status.models.items()
        },
        "jobs": [plain(job) for job in status.jobs],
    }
