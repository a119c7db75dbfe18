"""Hours become files of records, once; faults are counted and the rest of the hours goes on."""

from __future__ import annotations

import gzip
from pathlib import Path

import anyio
import pytest

from codetaste.mining.archive.extract import extract_hour, extract_hours
from codetaste.mining.archive.hour_summary import HourSummary
from codetaste.mining.commit import CommitRecord
from codetaste.mining.ranking.record_file import read_records
from support.mining.archive_events import MergedChange
from support.mining.archive_hours import HourShape, MadeHour, write_made_hour

SMALL = HourShape(events=400, pull_requests=0.3, dirt=0.02)


def matches(record: CommitRecord, change: MergedChange) -> bool:
    assert record.pull_request is not None
    return (record.repository, record.golden, record.files, record.pull_request.body) == (
        change.repository,
        change.golden,
        change.files,
        change.body,
    )


@pytest.mark.parametrize("era", [2013, 2023])
def test_merged_pull_requests_of_an_hour_are_its_records(tmp_path: Path, era: int) -> None:
    made = write_made_hour(
        tmp_path / "2023-04-05-6.json.gz",
        HourShape(events=400, pull_requests=0.3, era=era, dirt=0.02),
        seed=1,
    )
    summary = extract_hour(made.path, tmp_path / "records")
    records = list(read_records(summary.records))
    assert len(records) == len(made.changes) > 20
    assert all(map(matches, records, made.changes))
    assert (summary.lines, summary.merged) == (400, len(made.changes))
    assert sum(summary.faults.values()) == made.broken > 0
    assert len(summary.examples) == made.broken
    assert records[0].source == "GH Archive 2023-04-05-6"


def test_trimmed_hour_gives_records_to_be_completed(tmp_path: Path) -> None:
    made = write_made_hour(tmp_path / "2026-04-05-6.json.gz", HourShape(200, 0.3, 2026, 0), seed=2)
    summary = extract_hour(made.path, tmp_path / "records")
    assert summary.trimmed == summary.without_hash == summary.merged >= len(made.changes) > 0
    assert all(record.golden == "" and record.text == "" for record in read_records(summary.records))


def test_hour_is_read_again_only_if_it_changed(tmp_path: Path) -> None:
    made = write_made_hour(tmp_path / "2023-04-05-6.json.gz", SMALL, seed=3)
    first = extract_hour(made.path, tmp_path / "records")
    first.records.write_text("")
    assert extract_hour(made.path, tmp_path / "records") == first
    assert first.records.read_text() == ""
    first.records.unlink()
    assert extract_hour(made.path, tmp_path / "records").merged == first.merged
    assert first.records.exists()
    write_made_hour(made.path, SMALL, seed=4)
    assert extract_hour(made.path, tmp_path / "records") != first


def test_hours_are_read_by_several_processes(tmp_path: Path) -> None:
    made = [write_made_hour(tmp_path / f"2023-04-05-{hour}.json.gz", SMALL, seed=hour) for hour in range(3)]
    seen: list[HourSummary] = []

    async def main() -> list[HourSummary]:
        files = [each.path for each in made]
        return await extract_hours(files, tmp_path / "records", processes=2, on_hour=seen.append)

    summaries = anyio.run(main)
    assert [summary.file for summary in summaries] == [each.path for each in made]
    assert [summary.merged for summary in summaries] == [len(each.changes) for each in made]
    assert sorted(seen, key=lambda summary: summary.file) == summaries


def test_faulty_hours_do_not_end_the_run(tmp_path: Path) -> None:
    good = write_made_hour(tmp_path / "2023-04-05-1.json.gz", SMALL, seed=1)
    torn, html = tmp_path / "2023-04-05-2.json.gz", tmp_path / "2023-04-05-3.json.gz"
    torn.write_bytes(good.path.read_bytes()[:2000])
    html.write_bytes(gzip.compress(b"<html>\n<body>\n"))
    files = [good.path, torn, html, tmp_path / "2023-04-05-4.json.gz"]
    summaries = run(files, tmp_path / "records")
    assert [summary.torn for summary in summaries] == [
        "",
        "the gzip data ends too early",
        "",
        "cannot be read: No such file or directory",
    ]
    assert summaries[0].merged == len(good.changes)
    assert list(summaries[2].fault_lines()) == [f"{html}: 2 lines skipped: not a JSON object, first line 1"]


def run(files: list[Path], folder: Path) -> list[HourSummary]:
    async def main() -> list[HourSummary]:
        return await extract_hours(files, folder, processes=0)

    return anyio.run(main)


def test_same_hour_in_two_folders_has_two_files_of_records(tmp_path: Path) -> None:
    made: list[MadeHour] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(write_made_hour(tmp_path / name / "2023-04-05-6.json.gz", SMALL, seed=5))
    summaries = run([each.path for each in made], tmp_path / "records")
    assert summaries[0].records != summaries[1].records
