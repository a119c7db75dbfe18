import csv
import io
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.mining.clones.pairs import read_pairs
from codetaste.mining.commit import CommitRecord, PullRequest

A, B, C = "a" * 40, "b" * 40, "c" * 64
PUBLISHED = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"


def test_a_published_file_is_read() -> None:
    pairs = read_pairs(f"{PUBLISHED}acme,shop,{A},{B},0.8,api,go\n".encode(), "pairs.csv")
    assert pairs.problems == ()
    assert pairs.records == (CommitRecord("acme/shop", B, A, source="pairs.csv:2"),)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (f"repository,golden\nacme/shop,{B}\n", CommitRecord("acme/shop", B)),
        (f"repository,base,golden\nacme/shop,,{B}\n", CommitRecord("acme/shop", B)),
        (f"URL;Base;Golden\r\nhttps://github.com/acme/shop.git;{A};{B}\r\n", CommitRecord("acme/shop", B, A)),
        (f"\ufeffrepo\tsha\nacme/shop\t{C.upper()}\n", CommitRecord("acme/shop", C)),
        (f"owner,repo,commit_hash\nacme,shop,{B}\n", CommitRecord("acme/shop", B)),
        (f"owner,repo,commit,base\nacme,shop,{B},{A}\n", CommitRecord("acme/shop", B, A)),
        (
            f'full_name,golden,stars,changed_files,additions,deletions,license,message\nacme/shop,{B},"1,200",3,4,5,MIT,"Move\nall"\n',
            CommitRecord("acme/shop", B, None, "Move\nall", None, 1200, 3, 4, 5, None, "MIT"),
        ),
        (
            f"full_name,golden,pr_number,pr_title,pr_body\nacme/shop,{B},7,Move,all of it\n",
            CommitRecord("acme/shop", B, pull_request=PullRequest(7, "Move", "all of it")),
        ),
    ],
)
def test_columns_have_any_order_and_common_names(text: str, record: CommitRecord) -> None:
    (found,) = read_pairs(text.encode(), "p").records
    assert found.source == "p:2"
    assert {**_fields(found), "source": ""} == _fields(record)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2024-06-30", datetime(2024, 6, 30, tzinfo=UTC)),
        ("2024-06-30T12:00:00Z", datetime(2024, 6, 30, 12, tzinfo=UTC)),
        ("2024-06-30 12:00:00+02:00", datetime(2024, 6, 30, 12, tzinfo=timezone(timedelta(hours=2)))),
        ("86400", datetime(1970, 1, 2, tzinfo=UTC)),
        ("", None),
    ],
)
def test_dates_without_a_time_zone_are_utc(date: str, expected: datetime | None) -> None:
    (record,) = read_pairs(f"repository,golden,date\na/b,{B},{date}\n".encode(), "p").records
    assert record.date == expected


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (f"acme,shop,{A}", "p:2: 3 fields, but the first line names 7 columns"),
        (f"acme,shop,{A},main,,,", "p:2: golden commit 'main' is not a full hash (40 or 64 hex digits)"),
        (
            f"acme,shop,{A[:9]},{B},,,",
            "p:2: base commit 'aaaaaaaaa' is not a full hash (40 or 64 hex digits)",
        ),
        (f"acme,shop,{A},{A},,,", "p:2: base and golden commit are the same"),
        (f"acme,-x,{A},{B},,,", "p:2: repository 'acme/-x' is not OWNER/REPO or a URL"),
        (f",shop,{A},{B},,,", "p:2: repository '/shop' is not OWNER/REPO or a URL"),
        (f"ac me,shop,{A},{B},,,", "p:2: repository 'ac me/shop' is not OWNER/REPO or a URL"),
    ],
)
def test_a_bad_row_is_one_line_and_the_others_are_read(row: str, problem: str) -> None:
    pairs = read_pairs(f"{PUBLISHED}{row}\nacme,shop,{B},{A},,,\n".encode(), "p")
    assert pairs.problems == (problem,)
    assert [record.golden for record in pairs.records] == [A]


def test_bytes_that_are_not_utf_8_are_a_problem_of_their_row() -> None:
    content = b"repository,golden,message\na/b,%s,caf\xe9\na/c,%s,tea\n" % (A.encode(), B.encode())
    pairs = read_pairs(content, "p")
    assert pairs.problems == ("p:2: message is not UTF-8",)
    assert [record.repository for record in pairs.records] == ["a/c"]


def test_bad_numbers_and_dates_are_problems_of_their_rows() -> None:
    text = f"repository,golden,stars,date\na/b,{A},many,\na/b,{A},,soon\na/b,{A},,99999999999999999999\n"
    text += f"a/b,{A},,0001-01-01T00:00:00+14:00\na/b,{A},-1,\na/b,{A},²,\n"
    assert read_pairs(text.encode(), "p").problems == (
        "p:2: stars 'many' is not a number",
        "p:3: date 'soon' is not a date (such as 2024-06-30T12:00:00Z)",
        "p:4: date '99999999999999999999' is not a date (such as 2024-06-30T12:00:00Z)",
        "p:5: date '0001-01-01T00:00:00+14:00' is not a date (such as 2024-06-30T12:00:00Z)",
        "p:6: stars '-1' is not a number",
        "p:7: stars '²' is not a number",
    )


def test_a_pair_that_is_there_twice_is_read_once() -> None:
    pairs = read_pairs(f"repository,golden\na/b,{A}\n\nA/B,{A}\na/c,{A}\n".encode(), "p")
    assert pairs.problems == ("p:4: A/B@aaaaaaaaaa is already in line 2",)
    assert len(pairs.records) == 2


@pytest.mark.parametrize("text", ["", "\n", "owner,golden\n", "repository,base\n", "owner,repo,date\n"])
def test_a_file_without_the_columns_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^pairs\.csv:1: no column"):
        read_pairs(text.encode(), "pairs.csv")


@given(st.binary(max_size=300))
def test_any_rows_are_records_or_problems(content: bytes) -> None:
    read = read_pairs(f"{PUBLISHED}acme,shop,{A},{B},,,\n".encode() + content, "p")
    assert read.records[0].golden == B
    assert all(problem.startswith("p:") and "\n" not in problem for problem in read.problems)


_FIELD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(
    st.lists(
        st.tuples(st.from_regex(r"[0-9a-f]{40}", fullmatch=True), _FIELD),
        max_size=8,
        unique_by=lambda x: x[0],
    )
)
def test_messages_that_csv_writes_come_back(rows: list[tuple[str, str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("repository", "golden", "message"), *(("a/b", *row) for row in rows)])
    pairs = read_pairs(text.getvalue().encode(), "p")
    assert pairs.problems == ()
    assert [(record.golden, record.message) for record in pairs.records] == [
        (golden, message.strip()) for golden, message in rows
    ]


def _fields(record: CommitRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in CommitRecord.__slots__}
