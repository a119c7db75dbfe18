"""Stage 1 in BigQuery: estimated first, run only after its price was accepted, and paid for once."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import write_atomically
from codetaste.core.hashing import json_digest
from codetaste.errors import ConfigError
from codetaste.mining.ranking.bigquery.client import QueryAnswer, open_client
from codetaste.mining.ranking.bigquery.compile import bigquery_query
from codetaste.mining.ranking.result import ranking_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from codetaste.mining.keywords.sets import KeywordSets
    from codetaste.mining.ranking.bigquery.config import BigQueryConfig
    from codetaste.mining.ranking.config import RankingConfig
    from codetaste.mining.ranking.result import Ranking

USD_PER_TIB = Decimal("6.25")
"""List price of a query by bytes, in the location US."""
PRICE_DATE = "2023-07-05"
"""Since when the list price holds; checked in November 2026 against nothing newer."""
_TIB = 1024**4
_CENT = Decimal("0.01")
_ROUNDING = 128 * 1024**2
"""Bytes by which a bill may exceed its estimate: at least 10 MB are billed for each table."""


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """What a query would read, and its price at the list price; the first TiB of a month may be free."""

    bytes_read: int

    @property
    def price_usd(self) -> Decimal:
        """The price, rounded to cents."""
        return (USD_PER_TIB * self.bytes_read / _TIB).quantize(_CENT)

    def describe(self) -> str:
        """Return the question that a user answers before the query is run."""
        return (
            f"BigQuery would read {self.bytes_read:,} bytes ({self.bytes_read / _TIB:.2f} TiB): "
            f"${self.price_usd} at the list price of {PRICE_DATE} (${USD_PER_TIB} a TiB)"
        )


async def rank_in_bigquery(
    sets: KeywordSets,
    config: RankingConfig,
    target: BigQueryConfig,
    folder: Path,
    accept: Callable[[QueryEstimate], Awaitable[bool]],
) -> Ranking | None:
    """Return stage 1 over tables of BigQuery; None if ``accept`` refuses the price.

    Args:
        sets: the keyword sets.
        config: the bounds; a CSV file of stars cannot be used here.
        target: the tables, the project that pays, and the name of the token.
        folder: where the answer is kept: the same query is not paid for again.
        accept: asks for the price of the dry run.

    Raises:
        ConfigError: no or a wrong token, a CSV file of stars, or a price above ``max_usd``.
        SourceError: BigQuery refuses the query, or gives no answer.
        StorageFull: no space left in ``folder``.
    """
    if config.stars is not None:
        raise ConfigError(
            "stars: BigQuery cannot read a CSV file; upload it, and name the table in bigquery.stars"
        )
    query = bigquery_query(sets, config, target)
    digest = json_digest([query.text, query.parameters])
    stored = folder / f"bigquery-{digest[:16]}.json"
    if (earlier := await to_thread.run_sync(_read_answer, stored)) is not None:
        return _ranking_of(earlier)
    async with open_client(target) as client:
        estimate = QueryEstimate(await client.dry_run(query))
        if estimate.price_usd > target.max_usd:
            raise ConfigError(f"{estimate.describe()}, more than max_usd (${target.max_usd})")
        if not await accept(estimate):
            return None
        answer = await client.run(query, max_bytes=estimate.bytes_read + _ROUNDING, request_id=digest[:32])
    await to_thread.run_sync(write_atomically, stored, json.dumps(asdict(answer), default=str))
    return _ranking_of(answer)


def _ranking_of(answer: QueryAnswer) -> Ranking:
    return ranking_of(answer.rows, QueryEstimate(answer.bytes_billed).price_usd)


def _read_answer(path: Path) -> QueryAnswer | None:
    try:
        return QueryAnswer(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
