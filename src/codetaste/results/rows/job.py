"""``JobResult``: one row for each job of a run, from its journal."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.results.rows.schema import SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """One job of a run.

    Attributes:
        schema_version: version of the schema of rows.
        run: name of the run.
        key: key of the job, unique in the run.
        flow: first part of the key, such as "infer", "evaluate", "answer".
        title: name for readers.
        model: id of the model of its calls.
        state: "done", "failed", "budget_exceeded", "timeout", "cancelled", "skipped", or, before its end,
            "queued", "running", "retrying", "interrupted".
        ending: name under which its ending is counted; empty before it ended.
        ended_well: whether no limit, fault or mistake of its agent ended it.
        reason: why it did not end well, in one line.
        cause: cause of a fault, by which it is retried or not, such as "rate_limit", "sandbox".
        attempts: attempts that have started.
        retries: failed attempts, and failed calls that were repeated.
        calls: model calls that were sent.
        settled_usd: measured cost of its calls, US dollars.
        unknown_usd: reserved for calls whose cost is unknown; they may have been billed.
        reserved_usd: reserved for calls that are on their way.
        tokens_input: tokens of prompts that no cache had.
        tokens_cache_read: tokens of prompts read from a cache.
        tokens_cache_write: tokens of prompts written to a cache.
        tokens_output: tokens of replies, reasoning included.
        tokens_reasoning: tokens of reasoning.
        queued_at: when it was added first, ISO 8601, UTC.
        started_at: when its first attempt began.
        ended_at: when it ended.
        queued_needs_s: seconds in the queue until the jobs that it needs had ended.
        queued_resources_s: seconds in the queue from then on: for a permit, a sandbox, a processor.
        retry_s: seconds between an attempt that failed and the next one.
        running_s: seconds of its attempts.
        working_s: of these, seconds in which it waited for nothing of the following.
        waiting_s: of these, seconds in which it waited for at least one of the following.
        waited_budget_s: seconds of its waits for budget.
        waited_permit_s: seconds of its waits for a permit of a model. Waits of several calls at once add up.
        waited_rate_limit_s: seconds of its waits because a provider asked to wait (429).
        waited_overloaded_s: seconds of its waits because a provider was overloaded.
        waited_call_retry_s: seconds of its waits before the repetition of a failed call.
        waited_tests_s: seconds of its waits for test runs of another job.
        waited_other_s: seconds of its other waits, such as the replay in a new sandbox.
    """

    schema_version: int = SCHEMA_VERSION
    run: str
    key: str
    flow: str
    title: str | None
    model: str | None
    state: str
    ending: str | None
    ended_well: bool | None
    reason: str | None
    cause: str | None
    attempts: int
    retries: int
    calls: int
    settled_usd: float
    unknown_usd: float
    reserved_usd: float
    tokens_input: int | None
    tokens_cache_read: int | None
    tokens_cache_write: int | None
    tokens_output: int | None
    tokens_reasoning: int | None
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    queued_needs_s: float
    queued_resources_s: float
    retry_s: float
    running_s: float
    working_s: float
    waiting_s: float
    waited_budget_s: float
    waited_permit_s: float
    waited_rate_limit_s: float
    waited_overloaded_s: float
    waited_call_retry_s: float
    waited_tests_s: float
    waited_other_s: float
