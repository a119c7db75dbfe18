"""The three calls of BigQuery's REST interface that stage 1 makes: dry run, query, further rows."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.core.text import one_line
from codetaste.errors import ConfigError, SourceError
from codetaste.source.download import TransientError, make_download_client, retried

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import httpx2

    from codetaste.mining.ranking.bigquery.config import BigQueryConfig
    from codetaste.mining.ranking.query import Stage1Query

_WAIT_MS = 10_000
"""How long BigQuery waits for the end of a query before it answers."""
_PAUSE_S = 0.2
_PAGE_ROWS = 2_000
_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_TRANSIENT_REASON = re.compile(r'"reason":\s*"(rateLimitExceeded|backendError|internalError|badGateway)"')
"""Of an error that Google's own client repeats whatever the status is: a rate limit has 403."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_SHOWN = 300


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """All rows of a query, each by column name, and the bytes that are billed for it."""

    rows: list[dict[str, Any]]
    bytes_billed: int


@dataclass(frozen=True, slots=True)
class BigQueryClient:
    """Sends queries; ``open_client`` makes one."""

    http: httpx2.AsyncClient
    config: BigQueryConfig
    token: str

    async def dry_run(self, query: Stage1Query) -> int:
        """Return how many bytes ``query`` would read, without running it.

        Raises:
            ConfigError: the token is not accepted.
            SourceError: BigQuery refuses the query, or gives no answer.
        """
        answer = await self._send("POST", "", _body(query, self.config) | {"dryRun": True})
        return _count(answer, "totalBytesProcessed")

    async def run(self, query: Stage1Query, *, max_bytes: int, request_id: str) -> QueryAnswer:
        """Run ``query`` and return all of its rows.

        Args:
            query: in BigQuery's dialect.
            max_bytes: BigQuery refuses the query, without cost, if it would be billed for more.
            request_id: a repeated request with the same one does not run the query again.

        Raises:
            ConfigError: the token is not accepted.
            SourceError: BigQuery refuses the query, or gives no answer.
        """
        body = _body(query, self.config) | {
            "maximumBytesBilled": str(max_bytes),
            "maxResults": _PAGE_ROWS,
            "timeoutMs": _WAIT_MS,
            "requestId": request_id,
        }
        answer = await self._send("POST", "", body)
        job = answer.get("jobReference") or {}
        page: dict[str, str] = {"location": job["location"]} if job.get("location") else {}
        rows: list[dict[str, Any]] = []
        billed = 0
        while True:
            if answer.get("jobComplete"):
                rows += _rows(answer)
                billed = max(billed, _count(answer, "totalBytesBilled", "totalBytesProcessed"))
                if not answer.get("pageToken"):
                    return QueryAnswer(rows, billed)
                page["pageToken"] = answer["pageToken"]
            if not job.get("jobId"):
                raise SourceError("BigQuery: an answer without the id of its job")
            await anyio.sleep(_PAUSE_S)
            limits = {"maxResults": str(_PAGE_ROWS), "timeoutMs": str(_WAIT_MS)}
            answer = await self._send("GET", f"/{job['jobId']}", None, page | limits)

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None, parameters: dict[str, str] | None = None
    ) -> dict[str, Any]:
        url = f"{self.config.address}/bigquery/v2/projects/{self.config.project}/queries{path}"

        async def attempt() -> dict[str, Any]:
            response = await self.http.request(
                method, url, json=body, params=parameters, headers={"Authorization": f"Bearer {self.token}"}
            )
            return _check(response, self.config)

        return await retried(attempt, "BigQuery")


@asynccontextmanager
async def open_client(config: BigQueryConfig) -> AsyncIterator[BigQueryClient]:
    """Open a client with the token in the environment.

    Raises:
        ConfigError: there is none.
    """
    token = os.environ.get(config.token_env, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"BigQuery needs a token in {config.token_env}; `gcloud auth print-access-token` prints one"
        )
    async with make_download_client() as http:
        yield BigQueryClient(http, config, token)


def _body(query: Stage1Query, config: BigQueryConfig) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "parameterType": {"type": "INT64" if isinstance(value, int) else "STRING"},
            "parameterValue": {"value": str(value)},
        }
        for name, value in query.parameters.items()
    ]
    location = {"location": config.location} if config.location else {}
    return {
        "query": query.text,
        "useLegacySql": False,
        "parameterMode": "NAMED",
        "queryParameters": parameters,
        **location,
    }


def _check(response: httpx2.Response, config: BigQueryConfig) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    message = _error_message(answer)
    if response.status_code in _TRANSIENT or (message and _TRANSIENT_REASON.search(response.text)):
        raise TransientError(f"status {response.status_code} {message}".rstrip())
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        raise ConfigError(f"BigQuery does not accept the token in {config.token_env}; it may have expired")
    if response.status_code != HTTPStatus.OK:
        raise SourceError(f"BigQuery refuses the query (status {response.status_code}): {message}")
    if not isinstance(answer, dict):
        raise SourceError("BigQuery: the answer is no JSON object; does a proxy intervene?")
    return answer


def _error_message(answer: Any) -> str:  # noqa: ANN401 - JSON data
    error = answer.get("error") if isinstance(answer, dict) else None
    text = error.get("message") if isinstance(error, dict) else None
    return one_line(text)[:_MAX_SHOWN] if isinstance(text, str) else ""


def _count(answer: dict[str, Any], *names: str) -> int:
    for name in names:
        value = answer.get(name)
        if isinstance(value, str | int) and str(value).isdecimal():
            return int(value)
    raise SourceError(f"BigQuery: an answer without {names[0]}")


def _rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        fields: Sequence[dict[str, str]] = answer["schema"]["fields"]
        return [
            {
                field["name"]: _value(field["type"], cell["v"])
                for field, cell in zip(fields, row["f"], strict=True)
            }
            for row in answer.get("rows", ())
        ]
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise SourceError(f"BigQuery: rows of an unknown form: {one_line(error)}") from error


def _value(kind: str, text: str | None) -> str | int | datetime | None:
    if text is None:
        return None
    if kind in {"INTEGER", "INT64"}:
        return int(text)
    if kind == "TIMESTAMP":
        return _EPOCH + timedelta(seconds=float(text))
    return text
