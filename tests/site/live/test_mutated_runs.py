"""Journals that anything may have happened to: pages are made, and say what is wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.site.live import followed_run
from codetaste.site.live.current_site import CurrentSite
from codetaste.site.live.followed_run import FollowedRun
from codetaste.site.live.pages import index_page, job_page, run_changes, run_page
from support.site.journals import (
    HEADER,
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

NASTY = "infer/<script>alert(1)</script>\u202e/open/direct/x/execute"
LINES = (
    SESSION,
    job("a", "b"),
    job(NASTY, lane="<b>m</b>"),
    started("a"),
    reserved("a", "c1", "0.5"),
    {"event": "wait_started", "key": "a", "reason": "permit", "detail": "<i>m</i>", "delay_s": None},
    {"event": "call_retry", "key": "a", "model": "m", "cause": "rate_limit", "error": "429", "delay_s": 1.0},
    settled("c1", "0.25"),
    {"event": "price", "model": "m", "price": {}, "source": "config"},
    {"event": "limits_applied", "limits": {"run.concurrency": 4, "models.m.max_concurrency": 2}},
    {"event": "note", "key": NASTY, "text": "\x1b[31m<u>note</u>"},
    {"event": "drain", "reason": "Ctrl-C"},
    ended(NASTY, "failed", error="<p>why</p>"),
    {"event": "session_failed", "error": "<h1>disk</h1>"},
)
_bytes = "".join(
    json.dumps({**line, "t": 1.7e9 + at}) + "\n" for at, line in enumerate([HEADER, *LINES])
).encode()


def pages(run: FollowedRun, folder: Path) -> list[bytes]:
    """Return every page that follows the run."""
    current = CurrentSite([folder], None, "<title>")
    view = look(run)
    made = [
        run_page(current, run, view),
        run_changes(current, run, look(run, view.version), 0),
        run_changes(current, run, look(run, "another"), -1),
        index_page(current, [(run, view)]),
    ]
    for each in view.jobs:
        detail = run.detail(each.key)
        if detail is not None:
            made.append(job_page(current, run, detail, 1.8e9))
    return made


def test_untrusted_texts_of_a_journal_are_text(tmp_path: Path) -> None:
    run = FollowedRun(write_journal(tmp_path, LINES), "r", "<em>r</em>")
    made = pages(run, tmp_path)
    assert len(made) == 6
    for page in made:
        text = page.decode()
        assert "\u202e" not in text
        assert "\x1b" not in text
        for tag in ("<script>alert", "<b>m", "<i>m", "<u>note", "<p>why", "<h1>disk", "<em>r"):
            assert tag not in text
    assert b"alert(1)" in made[0]


@settings(max_examples=25)
@given(st.data())
def test_pages_of_a_damaged_journal_are_made(data: st.DataObject) -> None:
    content = bytearray(_bytes)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(at, min(len(content), at + 200)))
        content[at:end] = data.draw(
            st.one_of(
                st.binary(max_size=30),
                st.sampled_from([b"1e999", b"null", b'"\\ud800"', b"-1", b"[]", b"\n"]),
            )
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "journal.jsonl").write_bytes(content)
        for page in pages(FollowedRun(folder, "r", "r"), folder):
            assert page


def test_pages_are_made_at_every_length_of_a_journal(tmp_path: Path) -> None:
    run = FollowedRun(write_journal(tmp_path, []), "r", "r")
    for line in LINES:
        append_journal(tmp_path, [line])
        run._read_at = -followed_run._MAX_INTERVAL_S
        assert pages(run, tmp_path)
