"""The query of stage 1 compiled to BigQuery's dialect, over tables of BigQuery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.mining.ranking.query import Relation, Stage1Query, stage1_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.mining.keywords.sets import KeywordSets
    from codetaste.mining.ranking.bigquery.config import BigQueryConfig
    from codetaste.mining.ranking.config import RankingConfig


def bigquery_query(sets: KeywordSets, config: RankingConfig, target: BigQueryConfig) -> Stage1Query:
    """Return the query of stage 1 in BigQuery's dialect; its parameters are written ``@name``.

    Raises:
        ConfigError: sqlglot is not installed.
    """
    relation = Relation.ACTIVITY_COMMITS if target.events is None else Relation.PULL_REQUEST_EVENTS
    query = stage1_query(relation, sets, config, star_rows=target.stars is not None)
    tables = {
        "archive_events": target.events,
        "activity_commits": target.commits,
        "activity_licenses": target.licences,
        "star_rows": target.stars,
    }
    named = {name: table for name, table in tables.items() if table is not None}
    return Stage1Query(compile_for_bigquery(query.text, named), query.parameters)


def compile_for_bigquery(text: str, tables: Mapping[str, str]) -> str:
    """Return SQL of DuckDB's dialect in BigQuery's, with ``tables`` in place of the names that it uses.

    Raises:
        ConfigError: sqlglot is not installed.
        sqlglot.errors.SqlglotError: the SQL is wrong, or something in it has no counterpart in BigQuery.
    """
    try:
        import sqlglot  # noqa: PLC0415 - of the extra "mine"
    except ImportError:
        raise ConfigError("BigQuery needs sqlglot: install codetaste[mine]") from None
    from sqlglot import exp  # noqa: PLC0415

    tree = sqlglot.parse_one(text, read="duckdb")
    for table in list(tree.find_all(exp.Table)):
        if not table.db and table.name in tables:
            names = [exp.to_identifier(part, quoted=True) for part in tables[table.name].split(".")]
            table.replace(
                exp.alias_(exp.Table(this=names[2], db=names[1], catalog=names[0]), table.name, table=True)
            )
    for relation in tree.find_all(exp.CTE):
        relation.set("materialized", None)  # a hint for DuckDB, which BigQuery does not know
    return tree.sql(
        dialect="bigquery", pretty=True, unsupported_level=sqlglot.ErrorLevel.RAISE, comments=False
    )
