"""One request, from its body to the last byte of the response: paid, counted and written to the transcript.

It runs in its own task, so that the cost of a call stays known if the client disconnects: a reply in flight
is read to its end.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import BudgetExceeded, JournalError, ModelError, ModelRefused
from codetaste.gateway.forward import PROVIDER_ERROR, ForwardedCall, encode_body
from codetaste.gateway.prompt.bound import PartBound
from codetaste.gateway.prompt.parts import raw_reply_messages, reply_parts, request_parts
from codetaste.llm.wire.codecs import SERVERS
from codetaste.llm.wire.common.error_codes import ErrorKind
from codetaste.llm.wire.error_responses import error_response
from codetaste.llm.wire.protocols import PROTOCOLS
from codetaste.orchestration.retry import mark_given_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.gateway.prompt.parts import PromptPart
    from codetaste.gateway.request import GatewayRequest
    from codetaste.gateway.response import ResponseStream
    from codetaste.gateway.session import GatewaySession
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.model import Model
    from codetaste.orchestration.budget.budget import Budget


_REQUEST_ERRORS = frozenset({400, 413, 422})
"""Status codes of provider errors that are about the request itself; the agent may be able to react."""

_COUNTING_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers that may change how a provider counts the tokens of a prompt, as the URL's parameters may."""

_MAX_CALLS, _MAX_CHARS = 3, 120
"""Limits of a turn's progress text: calls, and characters of each."""

_MAIN_ARGUMENTS = ("command", "cmd", "file_path", "absolute_path", "path", "pattern", "input")
"""Arguments that best describe a call, in the tools of the supported CLI agents."""


class _TrackedModel:
    """Model wrapper that tracks whether a call is in flight and stops retries once the client is gone.

    Attributes:
        in_flight: a call may be billed at this moment.
        answered: a call was answered.
        cap: the maximum output tokens of the last call.
    """

    def __init__(self, model: Model, output: ResponseStream, budget: Budget) -> None:
        self._model, self._output, self._budget = model, output, budget
        self.id, self.has_ledger = model.id, model.has_ledger
        self.in_flight = self.answered = False
        self.cap = 0

    async def complete(self, request: Request, *, call: str) -> Reply:
        self.in_flight, self.cap = True, request.max_output_tokens
        try:
            # An agent may send several requests at once; its clock runs while any of them is answered.
            with self._budget.busy():
                reply = await self._model.complete(request, call=call)
        except ModelError as error:
            if self._output.abandoned:
                mark_given_up(error)
            raise
        finally:
            self.in_flight = False
        self.answered = True
        return reply

    async def lookup(self, call: str) -> Reply | None:
        return await self._model.lookup(call)

    async def aclose(self) -> None:
        """Do nothing: the owner of the wrapped model closes it."""


class Exchange:
    """One request and what becomes of it."""

    def __init__(
        self, session: GatewaySession, client_request: GatewayRequest, output: ResponseStream
    ) -> None:
        self._session, self._request, self._output = session, client_request, output
        session.usage.requests += 1
        self._number = session.usage.requests
        self._name = session.name_call()
        self._is_turn = client_request.wire.is_agent_turn or not session.side_calls
        self._began_s = time.monotonic()
        self._parts = request_parts(client_request.wire.protocol, client_request.wire.body)
        self._forwarded: ForwardedCall | None = None
        if (upstream := client_request.model.upstream) is not None:
            encode = partial(self._body, self._parts)
            self._forwarded = ForwardedCall(client_request, upstream, encode, output)
        self._bound: PartBound | None = None
        model = self._forwarded or client_request.model.metered.model
        self._model = _TrackedModel(model, output, session.ctx.budget)

    async def run(self) -> None:
        """Answer the request; every failure is sent to the client in its own protocol."""

        def is_sent() -> bool:
            return self._model.in_flight or self._model.answered

        with self._session.track(is_sent) as scope:
            self._output.on_abandon = lambda: None if is_sent() else scope.cancel()
            try:
                await self._answer()
            except BudgetExceeded as error:
                self._session.usage.record_refusal(one_line(str(error)))
                await self._refuse(ErrorKind.BUDGET, str(error))
            except ModelError as error:
                await self._failed(error)
            except JournalError as error:
                self._session.fail(error)
                await self._refuse(ErrorKind.BUDGET, f"journal write failed: {error}")
            except Exception as error:  # noqa: BLE001 - a bug in the gateway ends the job, with its traceback
                self._session.fail(error)
                await self._refuse(ErrorKind.GIVEN_UP, "the gateway failed; see the run's log")
        if scope.cancelled_caught:
            self._log_reply(499, error="abandoned" if self._model.cap else "abandoned before it was sent")
        self._output.close()

    async def _answer(self) -> None:
        session, client_request, wire = self._session, self._request, self._request.wire
        request_line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "side_call": not self._is_turn,
            "model": client_request.model.id,
            "requested_model": wire.model,
            "effect": self._name,
            "stream": wire.stream,
            "max_output_tokens": wire.cap,
        }
        session.transcript.add_request(self._number, self._parts, request_line)
        self._bound = bound = PartBound(
            self._parts,
            wire.protocol,
            [*(client_request.headers.get(name, "") for name in _COUNTING_HEADERS), client_request.query],
            session.token_counts_for(client_request.model),
            client_request.model.metered.bound.overhead_tokens,
        )
        self._parts = ()
        metered = client_request.model.metered.with_backend(self._model, bound)
        if metered.price is not None:
            extra_usd = client_request.findings.extra_usd
            metered = replace(metered, price=metered.price.with_extra(extra_usd))
        reply = await metered.complete(wire.request, ctx=session.ctx, name=self._name)
        session.usage.count_reply(reply, is_agent_turn=self._is_turn)
        if self._is_turn:
            session.ctx.note(format_turn(session.usage.turns, reply))
        messages = raw_reply_messages(reply) if self._forwarded else await self._send_reply(reply)
        usage, price = reply.usage, metered.price
        self._log_reply(
            200,
            messages,
            stop=reply.stop.value,
            usage=None if usage is None else usage.counts(),
            cost_usd=None if usage is None or price is None else str(price.cost_usd(usage)),
            model=reply.model,
            request_id=reply.request_id,
        )

    def _body(self, parts: Sequence[PromptPart], request: Request) -> bytes:
        """Return the body sent to the provider: the client's own, with model, cap and priced options set."""
        wire, model = self._request.wire, self._request.model
        caps = () if model.upstream is None else model.upstream.caps
        body = SERVERS[wire.protocol].capped_body(wire, request.max_output_tokens, caps)
        if self._bound is not None and _type_of_thinking(body) != _type_of_thinking(wire.body):
            # Without thinking a provider does not count that of earlier replies, but with it again.
            self._bound.ignore_count()
        sent = {**body, "model": model.name, **model.fixed_options}
        return encode_body(wire.protocol, wire.body, parts, sent)

    async def _send_reply(self, reply: Reply) -> list[Any]:
        """Send a model's reply in the client's protocol; return it as messages of that protocol."""
        wire, server = self._request.wire, SERVERS[self._request.wire.protocol]
        name = f"{self._session.ctx.attempt}-{self._number}"
        head = {PROTOCOLS[wire.protocol].request_id_header: f"req_{name}", "cache-control": "no-store"}
        whole = server.write_reply(reply, wire, name=name)
        if wire.stream:
            self._output.start(200, {"content-type": "text/event-stream", **head})
            for event in server.stream_reply(reply, wire, name=name):
                await self._output.write(event)
        else:
            body = json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")
            await self._output.respond(200, {"content-type": "application/json", **head}, body)
        return server.reply_messages(whole)

    async def _failed(self, error: ModelError) -> None:
        """Report a provider's failure to the client in a way that stops it from retrying."""
        usage = self._session.usage
        if self._request.model.metered.limiter.unanswered.error_of(self._session.ctx.key) is not None:
            usage.give_up(error)
        elif not self._output.abandoned or not usage.replies:
            usage.end_request(error, is_agent_turn=self._is_turn)
        own = getattr(error, PROVIDER_ERROR, None)
        if isinstance(error, ModelRefused) and own is not None and own[0] in _REQUEST_ERRORS:
            status, kind, body = own
            await self._output.respond(status, {"content-type": kind, "x-should-retry": "false"}, body)
            self._log_reply(status, error=str(error))
            return
        # A reply that broke off may succeed when retried; otherwise the retries are used up.
        kind = ErrorKind.UNAVAILABLE if self._output.started.is_set() else ErrorKind.GIVEN_UP
        await self._refuse(kind, f"the model is unavailable: {error}")

    async def _refuse(self, kind: ErrorKind, message: str) -> None:
        started = self._output.started.is_set()
        answer = error_response(
            self._request.wire.protocol, kind, one_line(message), retry=False, stream_started=started
        )
        if not started:
            await self._output.respond(answer.status, answer.headers, answer.body)
        elif self._forwarded is None or not self._forwarded.end_delivered:
            await self._output.write(answer.body)
        self._log_reply(answer.status, error=message)

    def _log_reply(self, status: int, messages: list[Any] | None = None, **line: Any) -> None:  # noqa: ANN401 - JSON
        duration_s = round(time.monotonic() - self._began_s, 3)
        known = {name: value for name, value in line.items() if value != ""}
        cap = {"max_output_tokens": self._model.cap} if self._model.cap else {}
        self._session.transcript.add_reply(
            self._number,
            reply_parts(messages or []),
            {"status": status, **known, **cap, "duration_s": duration_s},
        )


def _type_of_thinking(body: Mapping[str, Any]) -> object:
    thinking = body.get("thinking")
    return thinking.get("type") if isinstance(thinking, dict) else None


def format_turn(number: int, reply: Reply) -> str:
    """Format turn ``number`` (from 1), e.g. "turn 3: Edit /testbed/one.py, Bash git status"."""
    calls = reply.message.tool_calls
    if not calls:
        return f"turn {number}: {one_line(reply.message.text, _MAX_CHARS)}"
    shown = []
    for call in calls[:_MAX_CALLS]:
        found = next((call.arguments[name] for name in _MAIN_ARGUMENTS if name in call.arguments), "")
        words = found if isinstance(found, list) else [found]
        argument = one_line(" ".join(str(word) for word in words), _MAX_CHARS)
        shown.append(f"{call.name} {argument}".rstrip())
    more = f", and {len(calls) - _MAX_CALLS} more" if len(calls) > _MAX_CALLS else ""
    return f"turn {number}: {', '.join(shown)}{more}"
