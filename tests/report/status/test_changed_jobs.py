"""What changes between two statuses of a run, against a status that is made anew."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.report.status.status import RunWatcher

KEYS = ("a", "b", "c")
EVENTS = st.tuples(
    st.sampled_from(("job", "started", "wait", "retry", "call", "pay", "release", "ended", "session", "odd")),
    st.sampled_from(KEYS),
)


class Writer:
    """Writes a journal in which all lines are possible, one second apart."""

    def __init__(self, folder: Path) -> None:
        self._path, self._time, self._calls = folder / "journal.jsonl", 0.0, 0
        self._open: list[str] = []
        self.write({"event": "journal", "format": 2}, _SESSION, *({**_JOB, "key": each} for each in KEYS))

    def write(self, *lines: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            for line in lines:
                self._time += 1
                file.write(json.dumps({**line, "t": self._time}) + "\n")

    def happen(self, what: str, key: str) -> None:
        """Write the line of an event of a job."""
        line: dict[str, Any] = {"event": what, "key": key}
        if what == "job":
            line |= {**_JOB, "key": key, "needs": [each for each in KEYS if each < key]}
        elif what == "started":
            line["attempt"] = 1
        elif what == "wait":
            line |= {"event": "wait_started", "reason": "permit", "detail": "m", "delay_s": None}
        elif what == "retry":
            line |= {"attempt": 1, "cause": "timeout", "error": "slow", "delay_s": 1.0}
        elif what == "call":
            self._calls += 1
            self._open.append(f"{key}#{self._calls}")
            line |= {"event": "reserved", "call": self._open[-1], "fingerprint": "f", "effect": "e"}
            line |= {"path": [key], "usd": "0.5", "tokens": 9, "note": {"model": f"m{self._calls % 2}"}}
        elif what in {"pay", "release"} and self._open:
            line = {"call": self._open.pop(0)}
            line |= (
                {"event": "settled", "usd": "0.25", "tokens": 4} if what == "pay" else {"event": "released"}
            )
        elif what == "ended":
            line |= {"fingerprint": "f", "status": "done"}
        elif what == "session":
            line = _SESSION
        else:
            line = {"event": "odd", "key": [key], "call": {}}
        self.write(line)


_SESSION = {"event": "session", "pid": 7, "host": "here", "limits": [None, None, None, None]}
_JOB = {"event": "job", "title": "t", "lane": "m", "needs": [], "path": ["p"], "resources": {"cpu": 1.0}}


@pytest.mark.parametrize("owner", ["", "process 7"])
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.lists(EVENTS, max_size=4), max_size=6))
def test_changed_jobs_and_the_others_are_those_of_a_status_that_is_made_anew(
    owner: str, steps: list[list[tuple[str, str]]]
) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("codetaste.report.status.status.lock_owner", lambda _: owner)
        writer, watcher = Writer(Path(name)), RunWatcher(Path(name))
        known = {job.key: job for job in watcher.poll().jobs}
        for step in steps:
            for what, key in step:
                writer.happen(what, key)
            watcher.read_on()
            changed = watcher.changed_jobs()
            if changed is None:
                assert "session" in {what for what, _ in step}
                changed = watcher.status().jobs
            known |= {job.key: job for job in changed}
            anew = RunWatcher(Path(name)).poll().jobs
            assert list(known) == [job.key for job in anew]
            for job in anew:
                if job.state in {"queued", "interrupted"}:  # needs and resources of others change these
                    assert (known[job.key].state, known[job.key].spend) == (job.state, job.spend)
                else:
                    assert known[job.key] == job


def test_a_run_whose_process_ends_is_looked_at_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = ["process 7"]
    monkeypatch.setattr("codetaste.report.status.status.lock_owner", lambda _: owners[-1])
    writer, watcher = Writer(tmp_path), RunWatcher(tmp_path)
    watcher.poll()
    writer.happen("started", "b")
    watcher.read_on()
    changed = watcher.changed_jobs()
    assert changed is not None
    assert [(job.key, job.state) for job in changed] == [("b", "running")]
    assert watcher.changed_jobs() == ()
    owners.append("")
    watcher.read_on()
    assert watcher.changed_jobs() is None
    assert {job.state for job in watcher.status().jobs} == {"interrupted"}
