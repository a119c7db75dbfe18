"""The servers of gateway.py, each in a separate process: a provider, our gateway, and a plain proxy.

``python gateway_sides.py SIDE [ADDRESS]`` prints its port (ours: and the token). After a line on standard
input, it prints what it has counted and ends.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request  # noqa: TC002 - starlette reads the annotation
from starlette.responses import StreamingResponse
from starlette.routing import Route

from codetaste.gateway.gateway import open_gateway
from codetaste.gateway.upstream import gateway_model
from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.session import open_session

EVENTS = 40
RATES = {"input": Decimal(3), "output": Decimal(15)}


async def provider() -> None:
    """Stream replies of ``EVENTS`` pieces with random usages, and print the bill at the end.

    A prompt has as many tokens each time it is sent.
    """
    rng, bill = random.Random(1), Decimal(0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal bill
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0])
                request = json.loads(await reader.readexactly(length))
            except (asyncio.IncompleteReadError, ConnectionError, ValueError):
                break
            prompt = request["messages"][0]["content"]
            pause_s = float(prompt.split(maxsplit=2)[1])
            read = random.Random(prompt).randrange(1, 20_000)
            written = rng.randrange(1, min(1000, request["max_tokens"]))
            bill += (read * RATES["input"] + written * RATES["output"]) / 1_000_000
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            began = time.monotonic()
            for number in range(EVENTS):
                # Pauses follow the clock, so that a busy machine does not lengthen them.
                await asyncio.sleep(max(0.0, began + number * pause_s - time.monotonic()))
                await _send(writer, {"delta": {"role": "assistant", "content": f"word {number} " * 4}})
            await _send(writer, {"delta": {}, "finish_reason": "stop"})
            usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
            await _send(writer, None, usage=usage)
            end = b"data: [DONE]\n\n"
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 24, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(bill, flush=True)


async def _send(writer: asyncio.StreamWriter, choice: dict[str, object] | None, **more: object) -> None:
    event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **more}
    event["choices"] = [] if choice is None else [{"index": 0, "finish_reason": None, **choice}]
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()


async def ours(address: str) -> None:
    """Serve the gateway in a job with a budget and a journal, and print the settled cost."""
    config = ModelConfig.model_validate(
        {
            "id": "m",
            "provider": "openai-chat",
            "model": "m",
            "base_url": f"{address}/v1",
            "price": RATES,
            "max_concurrency": 1000,
        }
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = build_metered_model(config, base_dir=folder, record_dir=folder)
        async with (
            open_session(folder / "run", BudgetLimits(usd=Decimal(10_000)), retries={}) as session,
            open_gateway({"m": gateway_model(config, model)}, folder / "run", loopback=True) as gateway,
        ):

            async def work(_job: Job, ctx: JobContext) -> str:
                transcript = folder / "transcript.jsonl"
                async with gateway.admit(
                    ctx, models=["m"], protocol="openai-chat", transcript=transcript
                ) as access:
                    print(gateway.port, access.token, flush=True)
                    await asyncio.to_thread(sys.stdin.readline)
                return str(access.usage.settled_usd + access.usage.unknown.usd)

            session.add_handlers({"work": work})
            outcomes = await session.run([Job("job", "work", (), "f")])
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(outcomes["job"].value or outcomes["job"].error, used.ru_maxrss, flush=True)
        await model.aclose()


async def plain(address: str) -> None:
    """Forward requests with starlette and httpx without metering, as a minimal proxy in Python."""
    client = httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60.0)

    async def relay(request: Request) -> StreamingResponse:
        body = await request.body()
        sent = client.build_request("POST", address + request.url.path, content=body)
        answer = await client.send(sent, stream=True)
        return StreamingResponse(
            answer.aiter_raw(), answer.status_code, {"content-type": "text/event-stream"}
        )

    app = Starlette(routes=[Route("/v1/chat/completions", relay, methods=["POST"])])
    config = uvicorn.Config(
        app, port=0, log_level="critical", access_log=False, http="h11", loop="asyncio", backlog=1024
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], "none", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    side, *address = sys.argv[1:]
    asyncio.run({"provider": provider, "ours": ours, "plain": plain}[side](*address))
