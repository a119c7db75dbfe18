"""Requests to GitHub's API: paced, bounded in number, size and time, with untrusted replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from anyio import to_thread
from pydantic import AwareDatetime, ValidationError

from codetaste import __version__
from codetaste.core.paths import SYSTEM_BUNDLES, trust_store
from codetaste.core.text import one_line, printable
from codetaste.errors import ConfigError
from codetaste.mining.github.answer import ApiOutcome
from codetaste.mining.github.pacer import MAX_REFUSALS, RequestStopped, is_limit
from codetaste.mining.github.replies import Count, ReplyNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.mining.github.config import GitHubConfig
    from codetaste.mining.github.pacer import Pacer
    from codetaste.mining.github.queries import GraphQLQuery

MAX_REPLY_BYTES = 16 * 1024**2
"""Larger than most hundreds of pull requests; a batch with a larger reply is split."""
GRAPHQL, REST = "graphql", "core"
"""Resources with a primary limit of their own."""
_MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 307, 308})
_LIMIT_STATUS = frozenset({200, 403, 429})
_FINAL_STATUS = frozenset({200, 304, 400, 401, 403, 404, 409, 410, 422, 429, 451})
_MAX_MESSAGE = 200


class TransientFailure(Exception):
    """A request got no usable reply; a repeated or smaller one may get one. The message is one line."""


class ReplyTooLarge(TransientFailure):
    """A reply has more than ``MAX_REPLY_BYTES``: only a smaller request may get one."""


@dataclass(frozen=True, slots=True)
class ApiReply:
    """A reply: ``data`` is its JSON value, None for status 304; ``etag`` is "" without one."""

    status: int
    data: Any
    etag: str = ""

    @property
    def message(self) -> str:
        """The explanation of an error in one line, "" if there is none."""
        message = self.data.get("message") if isinstance(self.data, dict) else None
        return printable(message, _MAX_MESSAGE) if isinstance(message, str) else ""


class _RateLimit(ReplyNode):
    cost: Count
    remaining: Count
    reset_at: AwareDatetime


@dataclass(slots=True)
class ApiConnection:
    """Sends requests when ``pacer`` lets it.

    Attributes:
        http: a client from ``make_api_client``.
        config: address, time limit, and name of the token's variable.
        token: the token, "" without; it is in no message.
        pacer: decides when a request is sent.
        slots: bounds the requests under way.
        requests: how many were sent.
        points: what GraphQL requests cost of the primary limit.
    """

    http: httpx2.AsyncClient
    config: GitHubConfig
    token: str = field(repr=False)
    pacer: Pacer
    slots: anyio.CapacityLimiter
    requests: int = 0
    points: int = 0

    async def post(self, query: GraphQLQuery) -> ApiReply:
        """Send a GraphQL query.

        Raises:
            TransientFailure: no usable reply.
            RequestStopped: it was not sent.
            ConfigError: GitHub does not accept the token.
        """
        url = f"{self.config.api_url.removesuffix('/v3')}/graphql"
        content = json.dumps({"query": query.document, "variables": query.variables}).encode()
        reply = await self._exchange(GRAPHQL, "POST", url, content, {"Content-Type": "application/json"})
        data = reply.data.get("data") if isinstance(reply.data, dict) else None
        try:
            limit = _RateLimit.model_validate(data.get("rateLimit") if isinstance(data, dict) else None)
        except ValidationError:
            return reply
        self.points += limit.cost
        self.pacer.note_remaining(GRAPHQL, limit.remaining, limit.reset_at.timestamp())
        return reply

    async def get(self, path: str, etag: str = "") -> ApiReply:
        """Get a REST resource; with ``etag`` the status is 304 if it is still the same.

        Raises:
            TransientFailure: no usable reply.
            RequestStopped: it was not sent.
            ConfigError: GitHub does not accept the token.
        """
        headers = {"If-None-Match": etag} if etag else {}
        return await self._exchange(REST, "GET", f"{self.config.api_url}{path}", b"", headers)

    async def _exchange(
        self, resource: str, method: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> ApiReply:
        for _ in range(MAX_REFUSALS):
            # What a reply says about limits is noted before the next request gets the slot.
            async with self.slots:
                turn = await self.pacer.turn(resource)
                try:
                    status, answered, body = await self._follow(method, url, content, headers)
                    data = await self._parse(status, body)
                except TransientFailure as error:
                    if not isinstance(error, ReplyTooLarge):
                        self.pacer.note_failure(str(error), turn)
                    raise
                text = _text_of_refusal(resource, status, data, body)
                limited = text is not None and is_limit(status, answered, text)
                note = self.pacer.note_refusal if limited else self.pacer.note_headers
                note(resource, answered, turn)
                # After a refusal the next request goes alone.
                self.slots.total_tokens = 1 if self.pacer.refusals_in_row else self.config.in_flight
            if limited:
                continue
            if status == HTTPStatus.UNAUTHORIZED and self.token:
                raise ConfigError(
                    f"GitHub does not accept the token in {self.config.token_env}: it is wrong, or has "
                    "expired; make a new one"
                )
            return ApiReply(status, data, answered.get("etag", "")[:_MAX_MESSAGE])
        raise RequestStopped(
            ApiOutcome.LIMITED, f"GitHub refused a request {MAX_REFUSALS} times for its rate limits"
        )

    async def _follow(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; redirections of a GET are followed within the server."""
        try:
            address = httpx2.URL(url)
            for _ in range(_MAX_REDIRECTS + 1):
                self.requests += 1
                with anyio.fail_after(self.config.timeout):
                    status, answered, body = await self._send(method, address, content, headers)
                if status not in _REDIRECTS or method != "GET":
                    return status, answered, body
                target = address.join(answered.get("location", ""))
                if (target.scheme, target.netloc) != (address.scheme, address.netloc):
                    raise TransientFailure("GitHub redirected to another server, which is not followed")
                address = target
        except TimeoutError:
            raise TransientFailure(f"no answer within {self.config.timeout:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            # "from None": an error of the client may show the headers of the request.
            raise TransientFailure(_describe(error)) from None
        raise TransientFailure("GitHub redirected too often")

    async def _send(
        self, method: str, address: httpx2.URL, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self.http.stream(method, address, content=content, headers=headers) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise ReplyTooLarge(f"the reply has more than {MAX_REPLY_BYTES:,} bytes")
            return response.status_code, response.headers, bytes(body)

    async def _parse(self, status: int, body: bytes) -> Any:  # noqa: ANN401 - JSON data
        if status not in _FINAL_STATUS:
            raise TransientFailure(f"GitHub answered {status}")
        if status == HTTPStatus.NOT_MODIFIED:
            return None
        if self.token:
            body = body.replace(self.token.encode(), b"(token)")
        try:
            return await to_thread.run_sync(_parse_json, body)
        except (ValueError, RecursionError):
            if status != HTTPStatus.OK:
                return None  # an error page; the status says enough
            raise TransientFailure("the reply is not JSON") from None


def make_api_client(config: GitHubConfig, token: str) -> httpx2.AsyncClient:
    """Return an HTTP client that takes nothing from the environment: no proxy, no certificates, no netrc.

    Reads certificates: call it from a worker thread.
    """
    headers = {
        "Accept": "application/vnd.github+json",
        "User-Agent": f"codetaste/{__version__}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return httpx2.AsyncClient(
        headers=headers | ({"Authorization": f"Bearer {token}"} if token else {}),
        timeout=httpx2.Timeout(config.timeout),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=config.in_flight),
        trust_env=False,
        follow_redirects=False,
        verify=trust_store(*SYSTEM_BUNDLES) if config.api_url.startswith("https:") else False,
    )


def _parse_json(body: bytes) -> Any:  # noqa: ANN401 - JSON data
    return json.loads(body.decode("utf-8", "replace"))


def _text_of_refusal(resource: str, status: int, data: Any, body: bytes) -> str | None:  # noqa: ANN401
    """Return what a reply may say of a limit, None if it is no refusal; facts may quote such a text."""
    if status not in _LIMIT_STATUS or (status == HTTPStatus.OK and resource == REST):
        return None
    if status == HTTPStatus.OK and isinstance(data, dict) and data.get("data"):
        return json.dumps(data["errors"]) if data.get("errors") else None
    return body.decode("utf-8", "replace")


def _describe(error: Exception) -> str:
    """Return the kind of an error of the client, and its message if it is about the connection."""
    if isinstance(error, httpx2.NetworkError | httpx2.TimeoutException):
        return one_line(f"{type(error).__name__}: {error}", _MAX_MESSAGE).removesuffix(": ")
    return type(error).__name__
