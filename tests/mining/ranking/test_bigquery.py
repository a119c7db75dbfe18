"""BigQuery is asked for the price first, and paid once; a loopback server answers like it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from codetaste.errors import ConfigError, SourceError
from codetaste.mining.ranking.bigquery.config import BigQueryConfig
from codetaste.mining.ranking.bigquery.rank import QueryEstimate, rank_in_bigquery
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.result import Ranking
from support.mining.archive_bigquery_server import TOKEN, ServedTable, serving_bigquery
from support.mining.archive_keywords import KEYWORDS

TOTALS = ("commits", "incomplete", "stars", "stars_unknown", "files", "files_unknown")
LATER_TOTALS = ("strong_minus", "ratio", "passed", "unique")
FIELDS = [
    *((f"total_{name}", "INTEGER") for name in (*TOTALS, *LATER_TOTALS)),
    ("repository", "STRING"),
    ("golden", "STRING"),
    ("number", "INTEGER"),
    ("title", "STRING"),
    ("body", "STRING"),
    ("stars", "INTEGER"),
    ("date", "TIMESTAMP"),
    ("strong_plus", "INTEGER"),
    ("weak_plus", "INTEGER"),
    ("strong_minus", "INTEGER"),
    ("weak_minus", "INTEGER"),
]
COUNTS = ["9", "1", "1", "0", "1", "2", "1", "1", "4", "3"]


def served(commits: int = 3, **options: object) -> ServedTable:
    rows = [
        [
            *COUNTS,
            "o/a",
            f"{number:040x}",
            str(number),
            "Refactor",
            None,
            "120",
            "1.680674828E9",
            "1",
            "0",
            "0",
            "0",
        ]
        for number in range(commits)
    ]
    return ServedTable(FIELDS, rows or [[*COUNTS, *[None] * 11]], **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODETASTE_BIGQUERY_TOKEN", TOKEN)
    monkeypatch.setattr("codetaste.source.download._BACK_OFF_S", (0.0, 0.0))


def rank(
    table: ServedTable,
    folder: Path,
    *,
    accepted: bool = True,
    max_usd: int = 50,
    config: RankingConfig | None = None,
) -> tuple[Ranking | None, list[QueryEstimate]]:
    offers: list[QueryEstimate] = []

    async def accept(estimate: QueryEstimate) -> bool:
        offers.append(estimate)
        return accepted

    async def main(url: str) -> Ranking | None:
        target = BigQueryConfig(
            project="made-project", events="githubarchive.year.2023", address=url, max_usd=Decimal(max_usd)
        )
        return await rank_in_bigquery(KEYWORDS, config or RankingConfig(), target, folder, accept)

    with serving_bigquery(table):
        return anyio.run(main, table.url), offers


def test_price_is_offered_before_the_query_runs(tmp_path: Path) -> None:
    table = served()
    ranking, offers = rank(table, tmp_path)
    assert offers[0].describe() == (
        "BigQuery would read 3,298,534,883,328 bytes (3.00 TiB): $18.75 at the list price of 2023-07-05 "
        "($6.25 a TiB)"
    )
    assert [request for request, _ in table.requests] == [
        "POST /bigquery/v2/projects/made-project/queries",
        "POST /bigquery/v2/projects/made-project/queries",
        "GET /bigquery/v2/projects/made-project/queries/job_1",
        "GET /bigquery/v2/projects/made-project/queries/job_1",
    ]
    dry, real = (body for _, body in table.requests[:2])
    assert dry["dryRun"] is True
    assert "dryRun" not in real
    assert 0 <= int(real["maximumBytesBilled"]) - offers[0].bytes_read < 1024**3
    assert {
        "name": "min_stars",
        "parameterType": {"type": "INT64"},
        "parameterValue": {"value": "90"},
    } in real["queryParameters"]
    assert ranking is not None
    assert ranking.rows[-1].cost_usd == Decimal("18.75")
    assert [each.record.golden for each in ranking.commits] == [f"{number:040x}" for number in range(3)]
    assert ranking.commits[0].record.date is not None
    assert ranking.commits[0].record.date.isoformat() == "2023-04-05T06:07:08+00:00"
    assert [row.removed for row in ranking.rows] == [1, 1, 1, 1, 1, 1, 0]


def test_refused_price_runs_nothing(tmp_path: Path) -> None:
    table = served()
    assert rank(table, tmp_path, accepted=False)[0] is None
    assert len(table.requests) == 1


def test_price_above_the_maximum_is_not_offered(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\$18\.75 .* more than max_usd \(\$10\)"):
        rank(served(), tmp_path, max_usd=10)


def test_same_query_is_not_paid_for_again(tmp_path: Path) -> None:
    first, _ = rank(served(), tmp_path)
    again = served()
    assert rank(again, tmp_path) == (first, [])
    assert again.requests == []


def test_answer_without_commits_has_its_totals(tmp_path: Path) -> None:
    ranking, _ = rank(served(commits=0), tmp_path)
    assert ranking is not None
    assert ranking.commits == ()
    assert ranking.rows[0].entered == 9


def test_transient_errors_are_repeated(tmp_path: Path) -> None:
    table = served(faults=[(503, "busy", ""), (403, "Exceeded rate limits", "rateLimitExceeded")])
    assert rank(table, tmp_path)[0] is not None
    assert len(table.requests) == 6


@pytest.mark.parametrize(
    ("status", "message", "reason", "error", "shown"),
    [
        (
            400,
            "Unrecognized name: payload\nat [1:2]",
            "invalidQuery",
            SourceError,
            r"status 400\): Unrecognized name: payload",
        ),
        (403, "Access Denied", "accessDenied", SourceError, r"status 403\): Access Denied"),
        (403, "Quota exceeded", "quotaExceeded", SourceError, r"status 403\): Quota exceeded"),
        (401, "", "authError", ConfigError, "does not accept the token in CODETASTE_BIGQUERY_TOKEN"),
    ],
)
def test_errors_say_what_to_do(
    tmp_path: Path, status: int, message: str, reason: str, error: type[Exception], shown: str
) -> None:
    with pytest.raises(error, match=shown) as caught:
        rank(served(faults=[(status, message, reason)]), tmp_path)
    assert "\n" not in str(caught.value)


def test_missing_token_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CODETASTE_BIGQUERY_TOKEN")
    with pytest.raises(ConfigError, match="CODETASTE_BIGQUERY_TOKEN"):
        rank(served(), tmp_path)


def test_token_is_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODETASTE_BIGQUERY_TOKEN", "secret-value")
    with pytest.raises(ConfigError) as caught:
        rank(served(), tmp_path)
    assert "secret-value" not in str(caught.value)


def test_rows_of_another_form_are_refused(tmp_path: Path) -> None:
    table = served()
    table.rows[0].pop()
    with pytest.raises(SourceError, match="rows of an unknown form"):
        rank(table, tmp_path)


def test_csv_of_stars_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CSV"):
        rank(served(), tmp_path, config=RankingConfig(stars=tmp_path / "stars.csv"))
