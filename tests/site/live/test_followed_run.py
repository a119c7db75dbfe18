"""A run that is followed: what a reader gets who has seen a part, and runs that are not as they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.site.live import followed_run
from codetaste.site.live.followed_run import FollowedRun, RunView
from support.site.journals import (
    SESSION,
    append_journal,
    ended,
    job,
    look,
    reserved,
    settled,
    started,
    write_journal,
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look read the journal."""
    monkeypatch.setattr(followed_run, "_MIN_INTERVAL_S", 0.0)
    monkeypatch.setattr(followed_run, "_MAX_SHARE", 1e9)
    monkeypatch.setattr(followed_run, "_MAX_INTERVAL_S", 0.0)


def follow(path: Path) -> FollowedRun:
    return FollowedRun(path, "run", "run")


def keys(view: RunView) -> set[str]:
    return {job.key for job in view.jobs}


def test_reader_gets_everything_once_and_then_changes(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("a"), job("b")]))
    first = look(run)
    assert first.whole
    assert keys(first) == {"a", "b"}
    assert [event.kind for event in first.events] == ["session"]
    same = look(run, first.version)
    assert not same.whole
    assert (same.jobs, same.events) == ((), ())
    append_journal(tmp_path, [started("a"), reserved("a", "c1", "0.5"), settled("c1", "0.25")])
    changed = look(run, same.version)
    assert keys(changed) == {"a"}
    assert [(event.kind, event.job) for event in changed.events] == [("started", "a"), ("settled", "a")]
    assert changed.status is not None
    assert str(changed.status.spend.settled_usd) == "0.25"
    # Another reader, who is as far as the first look, gets the same.
    assert keys(look(run, first.version)) == {"a"}


@pytest.mark.parametrize("version", ["x", "x-1", "-", "-1", "1", "\ud800", "9" * 5000])
def test_unknown_version_gets_everything(tmp_path: Path, version: str) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("a")]))
    assert look(run, version).whole
    epoch = look(run).version.partition("-")[0]
    assert look(run, f"{epoch}-1x").whole
    assert not look(run, f"{epoch}-99").whole


def test_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION]))
    first = look(run)
    path, line = tmp_path / "journal.jsonl", json.dumps({**job("late"), "t": 1.0}) + "\n"
    with path.open("a") as file:
        file.write(line[:20])
    assert keys(look(run, first.version)) == set()
    with path.open("a") as file:
        file.write(line[20:])
    assert keys(look(run, first.version)) == {"late"}


def test_run_that_does_not_exist_is_waited_for(tmp_path: Path) -> None:
    run = follow(tmp_path / "later")
    view = look(run)
    assert view.status is None
    assert view.waited_for
    assert "no run there" in view.problem
    write_journal(tmp_path / "later", [SESSION, job("a")])
    begun = look(run, view.version)
    assert keys(begun) == {"a"}
    assert not begun.waited_for
    assert begun.problem == ""


def test_damaged_journal_is_a_problem_beside_what_was_read(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("a")]))
    look(run)
    append_journal(tmp_path, [{"event": "settled", "call": 3}])
    view = look(run)
    assert "journal.jsonl" in view.problem
    assert keys(view) == {"a"}


def test_of_a_journal_that_was_damaged_before_all_that_is_before_the_damage_is_shown(tmp_path: Path) -> None:
    write_journal(tmp_path, [SESSION, job("a"), started("a"), {"event": "settled", "call": 3}, job("b")])
    view = look(follow(tmp_path))
    assert "journal.jsonl" in view.problem
    assert keys(view) == {"a"}


def test_another_run_in_its_place_is_read_from_its_beginning(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("old"), job("older"), started("old")]))
    before = look(run)
    write_journal(tmp_path, [SESSION, job("new")])
    view = look(run, before.version)
    assert view.whole
    assert keys(view) == {"new"}
    assert [event.kind for event in view.events] == ["session"]


def test_longer_journal_in_its_place_is_read_from_its_beginning(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("old"), started("old")]))
    before = look(run)
    write_journal(tmp_path, [SESSION, *(job(f"new-{number}") for number in range(50))])
    view = look(run, before.version)
    assert view.whole
    assert keys(view) == {f"new-{number}" for number in range(50)}
    assert [event.kind for event in view.events] == ["session"]


@pytest.mark.parametrize("size", [0, 1, 30, 200])
def test_journal_that_is_cut_and_grows_again_is_read_anew(tmp_path: Path, size: int) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("a"), started("a"), ended("a")]))
    before = look(run)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    cut = look(run, before.version)
    assert cut.whole
    assert "a" not in keys(cut) or cut.jobs[0].state != "done"
    path.write_bytes(whole)
    append_journal(tmp_path, [job("b")])
    view = look(run, cut.version)
    assert keys(view) >= {"b"}
    assert run.ended_jobs == 1
    assert view.problem == ""


def test_run_that_does_not_go_on_has_one_version(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("a"), started("a"), ended("a")]))
    versions = {look(run).version for _ in range(3)}
    assert len(versions) == 1
    append_journal(tmp_path, [job("b")])
    assert look(run).version not in versions


def test_killed_run_is_followed_into_its_next_session(tmp_path: Path) -> None:
    run = follow(write_journal(tmp_path, [SESSION, job("a"), started("a")]))
    view = look(run)
    assert view.jobs[0].state == "interrupted"  # no process has the lock
    append_journal(tmp_path, [SESSION, job("a"), started("a"), ended("a")])
    view = look(run, view.version)
    assert view.jobs[0].state == "done"
    assert view.status is not None
    assert len(view.status.sessions) == 2
    assert run.ended_jobs == 1


def test_details_of_a_job_are_found_by_its_whole_key(tmp_path: Path) -> None:
    odd = "infer/[a]*/open?"
    run = follow(write_journal(tmp_path, [SESSION, job(odd), job("infer/a/open")]))
    run.poll()
    detail = run.detail(odd)
    assert detail is not None
    assert detail.job.key == odd
    assert run.detail("infer/*") is None


def test_jobs_and_events_change_before_the_sums_of_a_large_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_run, "_MAX_INTERVAL_S", 3600.0)
    monkeypatch.setattr(followed_run, "_MAX_WHOLE_SHARE", 1e-9)
    run = follow(write_journal(tmp_path, [SESSION, job("a"), job("b"), job("c")]))
    first = look(run)
    paid = [started("a"), reserved("a", "c1", "0.5"), settled("c1", "0.25"), ended("a")]
    append_journal(tmp_path, [*paid, job("d"), {"event": "note", "key": "", "text": "for the whole run"}])
    second = look(run, first.version)
    assert second.status is not None
    assert [(each.key, each.state) for each in second.jobs] == [("a", "done"), ("d", "interrupted")]
    assert str(second.jobs[0].spend.settled_usd) == "0.25"
    assert [each.key for each in second.status.jobs] == ["a", "b", "c", "d"]
    assert (second.status.spend.settled_usd, run.ended_jobs) == (0, 1)
    assert second.events[-1].text == "for the whole run"
    assert look(run, second.version).version == second.version
    monkeypatch.setattr(run, "_whole_interval_s", 0.0)
    third = look(run, second.version)
    assert third.status is not None
    assert (third.jobs, str(third.status.spend.settled_usd)) == ((), "0.25")
    append_journal(tmp_path, [SESSION])  # all jobs of the session before are interrupted
    assert keys(look(run, third.version)) == set()


def test_old_events_are_dropped(tmp_path: Path) -> None:
    notes = [{"event": "note", "key": "", "text": f"note {number}"} for number in range(3000)]
    view = look(follow(write_journal(tmp_path, [SESSION, *notes])))
    assert len(view.events) == followed_run.MAX_EVENTS
    assert view.events[-1].text == "note 2999"
