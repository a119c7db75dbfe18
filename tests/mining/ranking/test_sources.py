"""Each source's SQL gives the relation of commits: events as our reader does, and the Activity Data."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from codetaste.mining.archive.event import parse_event
from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.ranking import query as query_module
from codetaste.mining.ranking.bigquery.compile import bigquery_query, compile_for_bigquery
from codetaste.mining.ranking.bigquery.config import BigQueryConfig
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.query import Relation, Stage1Query, stage1_query
from codetaste.mining.ranking.rank import rank_activity_data, rank_record_files
from codetaste.mining.ranking.record_file import COLUMNS, record_from_row, write_records
from codetaste.mining.ranking.result import Ranking, ranking_of
from support.mining.archive_events import MergedChange, event_of_2013, event_of_2023, event_of_2026
from support.mining.archive_keywords import KEYWORDS

CONFIG = RankingConfig(keep=3)
TARGETS = (
    BigQueryConfig(project="made-project", events="githubarchive.year.2023"),
    BigQueryConfig(project="made-project", stars="made-project.tables.stars"),
)
COMMIT = {
    "commit": "1" * 40,
    "subject": "Refactor",
    "message": "Refactor\n\nDedup the parser\n",
    "repo_name": ["o/a", "fork/a"],
    "difference": [{"new_path": f"f{number}"} for number in range(50)],
    "committer": {"name": "x", "time_sec": "1460000000"},
}


def made_events() -> list[dict[str, Any]]:
    changes = [
        MergedChange(f"o/r{number}", number, title, body, merged, f"{number:040x}", files, stars=stars)
        for number, (title, body, merged, files, stars) in enumerate(
            [
                ("Refactor", "dedup", True, 45, 90),
                ("Refactor", "dedup", False, 45, 90),
                ("Refactor", "", True, 44, 90),
                ("Refactor", "", True, 45, 89),
                ("  Chore: x", "refactor", True, 99, 99),
                ("chore: x", "refactor", True, 99, 99),
                ("Move", "reorganize 'all' \N{GREEK SMALL LETTER GAMMA}\n", True, 99, 99),
                ("Move", "add test", True, 99, 99),
            ]
        )
    ]
    eras = [make(change) for change in changes for make in (event_of_2013, event_of_2023, event_of_2026)]
    return [*eras, event_of_2023(MergedChange(), "opened") | {"type": "PullRequestReviewEvent"}]


def bigquery_rows(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return events as rows of GH Archive's tables, to which its uploader brings all eras."""
    return [
        (
            event["type"],
            (event.get("repo") or event["repository"]).get("name"),
            (event.get("repo") or event["repository"])["url"],
            json.dumps(event["payload"]),
            event["created_at"],
        )
        for event in events
    ]


def rank_table(connection: duckdb.DuckDBPyConnection, query: Stage1Query) -> Ranking:
    found = connection.execute(query.text, query.parameters)
    names = [column[0] for column in found.description or ()]
    return ranking_of([dict(zip(names, row, strict=True)) for row in found.fetchall()])


def test_table_of_events_and_hour_files_give_the_same_ranking(tmp_path: Path) -> None:
    changes = [parse_event(json.dumps(event).encode(), "GH Archive") for event in made_events()]
    write_records(tmp_path / "r.jsonl", [change.record for change in changes if change is not None])
    ours = anyio.run(rank_record_files, [tmp_path / "r.jsonl"], KEYWORDS, CONFIG, tmp_path)
    with duckdb.connect() as connection:
        make_events_table(connection, made_events())
        query = stage1_query(Relation.PULL_REQUEST_EVENTS, KEYWORDS, CONFIG, star_rows=False)
        theirs = rank_table(connection, query)
    assert theirs == ours
    assert len(ours.commits) == 2
    assert {row.filter: row.removed for row in ours.rows} == {
        "incomplete": 7,
        "stars": 2,
        "files": 2,
        "strong_minus": 4,
        "ratio": 2,
        "duplicate": 2,
        "best": 0,
    }


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an event of any era with fields missing, null or of other values than usual."""
    change = MergedChange(
        title=draw(st.text(max_size=20)),
        body=draw(st.text(max_size=20)),
        merged=draw(st.booleans()),
        golden=f"{draw(st.integers(0, 9)):040x}",
        licence=draw(st.none() | st.just("MIT")),
    )
    make = draw(st.sampled_from((event_of_2013, event_of_2023, event_of_2026)))
    event = json.loads(json.dumps(make(change)))
    event["payload"]["action"] = draw(st.sampled_from(("opened", "closed", "merged", "reopened")))
    pull_request = event["payload"]["pull_request"]
    base_repository = pull_request["base"].get("repo", {})
    for node, names in (
        (
            pull_request,
            ("merged", "merged_at", "merge_commit_sha", "title", "body", "changed_files", "additions"),
        ),
        (base_repository, ("full_name", "stargazers_count", "license")),
    ):
        for name in draw(st.sets(st.sampled_from(names))) & node.keys():
            if draw(st.booleans()):
                node[name] = None
            else:
                del node[name]
    return event


@settings(max_examples=25)
@given(st.lists(events(), max_size=16))
def test_reader_and_sql_make_the_same_records_of_events(made: list[dict[str, Any]]) -> None:
    changes = [parse_event(json.dumps(event).encode(), "GH Archive") for event in made]
    with duckdb.connect() as connection:
        make_events_table(connection, made)
        found = connection.execute(stage1_sql("pull_request_events"))
        names = [column[0] for column in found.description or ()]
        rows = [record_from_row(dict(zip(names, row, strict=True))) for row in found.fetchall()]
    ours = [change.record for change in changes if change is not None]
    assert sorted(map(without_old_stars, rows), key=repr) == sorted(map(without_old_stars, ours), key=repr)


def without_old_stars(record: CommitRecord) -> CommitRecord:
    """Return a record without stars and name, which only hour files have outside of the payload."""
    return replace(record, stars=None, repository=record.repository.lower())


def stage1_sql(name: str) -> str:
    return (Path(query_module.__file__).parent / "sql" / f"{name}.sql").read_text()


def make_events_table(connection: duckdb.DuckDBPyConnection, made: list[dict[str, Any]]) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE archive_events (type VARCHAR, repo STRUCT(name VARCHAR, url VARCHAR), "
        "payload VARCHAR, created_at TIMESTAMPTZ)"
    )
    if made:
        connection.executemany(
            "INSERT INTO archive_events VALUES (?, {'name': ?, 'url': ?}, ?, ?)", bigquery_rows(made)
        )


@pytest.mark.parametrize("target", TARGETS)
def test_compiled_query_is_sql_of_bigquery(target: BigQueryConfig) -> None:
    query = bigquery_query(KEYWORDS, CONFIG, target)
    tree = sqlglot.parse_one(query.text, read="bigquery")
    assert tree.sql(dialect="bigquery", pretty=True) == query.text
    names = {table.name for table in tree.find_all(exp.CTE)} | {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = {".".join(part.name for part in t.parts) for t in tree.find_all(exp.Table) if t.db}
    assert tables == {
        name
        for name in (
            target.events,
            *(() if target.events else (target.commits, target.licences)),
            target.stars,
        )
        if name
    }
    assert all(t.name in names or t.db for t in tree.find_all(exp.Table))
    assert {parameter.name for parameter in tree.find_all(exp.Parameter)} == set(query.parameters)
    assert "MATERIALIZED" not in query.text


def test_compiled_query_names_only_columns_that_the_tables_have() -> None:
    query = bigquery_query(KEYWORDS, CONFIG, TARGETS[0])
    events = {"type": "STRING", "payload": "STRING", "created_at": "TIMESTAMP", "repo": "STRUCT<url STRING>"}
    schema = {"githubarchive": {"year": {"2023": events}}}
    tree = qualify(
        sqlglot.parse_one(query.text, read="bigquery"),
        schema=schema,
        dialect="bigquery",
        validate_qualify_columns=True,
    )
    assert "rank" not in tree.named_selects
    assert {"repository", "golden", "strong_plus", "total_commits", "total_unique"} <= set(tree.named_selects)


def test_compiled_query_finds_the_same_as_the_written_one() -> None:
    """BigQuery's SQL, read by its dialect and brought back to DuckDB's, is still the same query."""
    written = stage1_query(Relation.RECORDS, KEYWORDS, CONFIG, star_rows=False)
    compiled = compile_for_bigquery(written.text, {})
    returned = sqlglot.transpile(compiled, read="bigquery", write="duckdb")[0]
    rows = [("refactor", 100), ("move, refactor", None), ("fix", 100), ("\n\nchore: refactor", 100), ("", 1)]
    with duckdb.connect() as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        connection.execute(f"CREATE TABLE records ({columns})")
        for number, (message, stars) in enumerate(rows):
            connection.execute(
                "INSERT INTO records (repository, golden, message, stars, files) VALUES (?, ?, ?, ?, 50)",
                [f"o/r{number}", f"{number:040x}", message, stars],
            )
        ours = rank_table(connection, written)
        theirs = rank_table(connection, Stage1Query(returned, written.parameters))
    assert theirs == ours
    assert len(ours.commits) == 2


def activity(folder: Path, kind: str, *commits: dict[str, Any]) -> tuple[list[Path], list[Path]]:
    rows, licences = folder / "commits.json", folder / "licenses.json"
    rows.write_text("".join(json.dumps(commit) + "\n" for commit in commits))
    licences.write_text('{"repo_name": "o/a", "license": "bsd-3-clause"}\n')
    if kind == "json":
        return [rows], [licences]
    struct = "STRUCT(name VARCHAR, time_sec BIGINT)"
    columns = {
        rows: f"commit: 'VARCHAR', message: 'VARCHAR', repo_name: 'VARCHAR[]', committer: '{struct}', "
        "difference: 'STRUCT(new_path VARCHAR)[]'",
        licences: "repo_name: 'VARCHAR', license: 'VARCHAR'",
    }
    with duckdb.connect() as connection:
        for path, types in columns.items():
            target = path.with_suffix(".parquet")
            connection.execute(f"COPY (FROM read_json('{path}', columns = {{{types}}})) TO '{target}'")
    return [rows.with_suffix(".parquet")], [licences.with_suffix(".parquet")]


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_activity_data_are_a_relation_of_commits(tmp_path: Path, kind: str) -> None:
    stars = tmp_path / "stars.csv"
    stars.write_text("name,stars\nfork/a,100\no/a,2000\n")
    files = activity(tmp_path, kind, COMMIT, COMMIT | {"commit": "2" * 40, "difference": []})
    config = RankingConfig(stars=stars)
    ranking = anyio.run(rank_activity_data, *files, KEYWORDS, config, tmp_path)
    [ranked] = ranking.commits
    assert ranked.record == CommitRecord(
        repository="o/a",
        golden="1" * 40,
        message="Refactor\n\nDedup the parser\n",
        stars=2000,
        files=50,
        date=datetime(2016, 4, 7, 3, 33, 20, tzinfo=UTC),
        licence="BSD-3-Clause",
        source="GitHub Activity Data",
    )
    assert ranked.counts.strong_plus == 2
    assert [row.removed for row in ranking.rows] == [0, 0, 2, 0, 0, 1, 0]


def test_activity_data_without_licences_have_none(tmp_path: Path) -> None:
    commits, _ = activity(tmp_path, "json", COMMIT)
    ranking = anyio.run(rank_activity_data, commits, [], KEYWORDS, RankingConfig(), tmp_path)
    assert [each.record.licence for each in ranking.commits] == [None]
    assert ranking.rows[1].unknown == 2


def test_pull_request_text_is_title_and_body() -> None:
    record = CommitRecord("o/a", "1" * 40, message="unused", pull_request=PullRequest(1, "a", "b"))
    assert record.text == "a\n\nb"
