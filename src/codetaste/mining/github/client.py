"""The client of GitHub's API: lookups in batches, each asked once and answered from the cache after that."""

from __future__ import annotations

import json
import random
from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread

from codetaste.core.concurrency import gather
from codetaste.core.text import printable
from codetaste.mining.github.answer import FACTS_OF_KIND, Answer, ApiOutcome, LookupKind
from codetaste.mining.github.cache import AnswerCache, CachedAnswer
from codetaste.mining.github.config import read_token
from codetaste.mining.github.connection import ApiConnection, make_api_client
from codetaste.mining.github.graphql import ask_next
from codetaste.mining.github.pacer import Pacer, WallClock
from codetaste.mining.github.queries import BatchSize
from codetaste.mining.github.rest import ask_rest, can_rest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path

    from codetaste.mining.github.answer import Lookup
    from codetaste.mining.github.config import GitHubConfig
    from codetaste.mining.github.graphql import Answers

_CACHED_OUTCOMES = frozenset({ApiOutcome.FOUND, ApiOutcome.DELETED, ApiOutcome.NOT_FOUND})
"""Other outcomes may change with the next attempt, or with another token."""


class ClientStatistics(NamedTuple):
    """What a client did so far.

    Attributes:
        lookups: valid lookups.
        cached: lookups that the cache answered.
        requests: requests sent, repeated ones included.
        points: points of the primary limit that GraphQL requests cost.
        refusals: requests refused for a rate limit.
        failures: requests without a usable reply.
        waited_s: seconds waited for limits and after failures.
    """

    lookups: int
    cached: int
    requests: int
    points: int
    refusals: int
    failures: int
    waited_s: float


class GitHubClient:
    """Answers lookups; made by ``open_github``."""

    def __init__(
        self, config: GitHubConfig, connection: ApiConnection, cache: AnswerCache, clock: WallClock
    ) -> None:
        self._config, self._connection, self._cache, self._clock = config, connection, cache, clock
        self._sizes = {kind: BatchSize(kind, config.batch) for kind in LookupKind}
        self._lookups = self._cached = 0

    @property
    def has_token(self) -> bool:
        """Whether GraphQL can be used."""
        return bool(self._connection.token)

    @property
    def chunk(self) -> int:
        """How many lookups at once keep all requests busy; without a token each takes a request."""
        return self._config.batch * self._config.in_flight if self.has_token else 1

    def statistics(self) -> ClientStatistics:
        """Return what the client did so far."""
        pacer = self._connection.pacer
        return ClientStatistics(
            lookups=self._lookups,
            cached=self._cached,
            requests=self._connection.requests,
            points=self._connection.points,
            refusals=pacer.refusals,
            failures=pacer.failures,
            waited_s=pacer.waited_s,
        )

    async def look_up(self, lookups: Iterable[Lookup]) -> Answers:
        """Return the answer to each of ``lookups``, which may be repeated and of any kinds.

        Whatever GitHub replies is an outcome of the lookups; answers are stored as they come.

        Raises:
            ConfigError: GitHub does not accept the token.
            SourceError: the cache cannot be read or written.
            StorageFull: no space left for the cache.
        """
        distinct = list(dict.fromkeys(lookups))
        answers = {
            lookup: Answer(ApiOutcome.INVALID, detail=printable(f"GitHub can have no {' '.join(lookup)}"))
            for lookup in distinct
            if not lookup.is_valid
        }
        valid = [lookup for lookup in distinct if lookup not in answers]
        stored = await self._cache.get([self._key(lookup) for lookup in valid])
        etags: dict[Lookup, tuple[str, Answer]] = {}
        for lookup in valid:
            entry = stored.get(self._key(lookup))
            answer = _from_bytes(lookup, entry.value) if entry else None
            if entry and answer and self._clock.now() - entry.stored_at <= self._config.cache_age:
                answers[lookup] = answer
            elif entry and answer and entry.etag:
                etags[lookup] = entry.etag, answer
        missing = [lookup for lookup in valid if lookup not in answers]
        self._lookups += len(valid)
        self._cached += len(valid) - len(missing)
        if self.has_token:
            calls = []
            for kind in dict.fromkeys(lookup.kind for lookup in missing):
                waiting = deque([[lookup for lookup in missing if lookup.kind is kind]])
                calls += [partial(self._ask, self._sizes[kind], waiting)] * self._config.in_flight
            parts = await gather(calls)
        else:
            # One after the other: there are sixty requests, and the first records get them.
            parts = [{lookup: await self._ask_rest(lookup, *etags.get(lookup, ()))} for lookup in missing]
        for part in parts:
            answers |= part
        return answers

    async def _ask(self, size: BatchSize, waiting: deque[list[Lookup]]) -> Answers:
        answers: Answers = {}
        while waiting:
            part = await ask_next(self._connection, size, waiting)
            await self._store({lookup: (answer, "") for lookup, answer in part.items()})
            for lookup, answer in part.items():
                if answer.outcome is ApiOutcome.UNAVAILABLE and can_rest(lookup):
                    part[lookup] = await self._ask_rest(lookup)
            answers |= part
        return answers

    async def _ask_rest(self, lookup: Lookup, etag: str = "", earlier: Answer | None = None) -> Answer:
        if not can_rest(lookup):
            return Answer(ApiOutcome.NO_TOKEN, detail=f"{lookup.kind}: only GraphQL has it")
        answer, new_etag, unchanged = await ask_rest(self._connection, lookup, etag)
        if unchanged and earlier:
            answer, new_etag = earlier, new_etag or etag
        await self._store({lookup: (answer, new_etag)})
        if answer.outcome is ApiOutcome.LIMITED and not self.has_token:
            return answer._replace(outcome=ApiOutcome.NO_TOKEN)
        return answer

    async def _store(self, answers: dict[Lookup, tuple[Answer, str]]) -> None:
        now = self._clock.now()
        await self._cache.put(
            {
                self._key(lookup): CachedAnswer(now, etag, _to_bytes(answer))
                for lookup, (answer, etag) in answers.items()
                if answer.outcome in _CACHED_OUTCOMES
            }
        )

    def _key(self, lookup: Lookup) -> str:
        return f"{self._config.api_url} {lookup.kind} {lookup.repository.lower()} {lookup.key}"


@asynccontextmanager
async def open_github(
    config: GitHubConfig,
    cache: Path,
    report: Callable[[str], None],
    *,
    clock: WallClock | None = None,
    rng: random.Random | None = None,
) -> AsyncIterator[GitHubClient]:
    """Open a client for the block.

    Args:
        config: the API, its limits, and the name of the token's variable.
        cache: the file of the answers.
        report: called with one line when a limit makes the client wait, or a token is missing.
        clock: the time of day and how to wait.
        rng: jitter of the waits.

    Raises:
        ConfigError: the value of the token's variable cannot be a token.
        SourceError: the cache cannot be opened.
        StorageFull: no space left for the cache.
    """
    clock = clock or WallClock()
    token = read_token(config)
    if not token:
        report(
            f"{config.token_env} is not set: GitHub's GraphQL needs a token, and without one REST answers 60 "
            "requests an hour; records beyond that stay incomplete, and linked issues are not read"
        )
    # Jitter needs no secret numbers; sixty requests are not worth the wait for the next sixty.
    pacer = Pacer(config.wait_limit if token else 0.0, report, rng or random.Random(), clock)  # noqa: S311
    answers = AnswerCache(cache, report)
    await answers.open()
    try:
        async with await to_thread.run_sync(make_api_client, config, token) as http:
            slots = anyio.CapacityLimiter(config.in_flight)
            connection = ApiConnection(http, config, token, pacer, slots)
            yield GitHubClient(config, connection, answers, clock)
    finally:
        await answers.close()


def _to_bytes(answer: Answer) -> bytes:
    facts = answer.facts.model_dump(mode="json") if answer.facts else None
    return json.dumps([answer.outcome, answer.detail, facts]).encode()


def _from_bytes(lookup: Lookup, data: bytes) -> Answer | None:
    """Return a stored answer; None if it is damaged."""
    try:
        outcome, detail, facts = json.loads(data)
        found = None if facts is None else FACTS_OF_KIND[lookup.kind].model_validate(facts)
        answer = Answer(ApiOutcome(outcome), found, str(detail))
    except (ValueError, TypeError):
        return None
    return None if answer.outcome is ApiOutcome.FOUND and found is None else answer
