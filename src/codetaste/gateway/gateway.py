"""The metering gateway: a model server for agents that are programs of others, one for a run.

Each job is admitted with a token of its own, which dies with it. What its program asks for is paid from the
job's budget before it is sent, settled from what the provider counts, and written into the job's transcript.
The providers' keys stay here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from shutil import rmtree
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from codetaste.errors import ConfigError, JournalError
from codetaste.gateway.access import Access

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.gateway.app import App
    from codetaste.gateway.served import Served
    from codetaste.llm.wire.request import Protocol
    from codetaste.orchestration.job import JobContext

__all__ = ["Access", "Gateway", "open_gateway"]

_FOLDER, _SOCKET = "gateway", "gateway.sock"
_EFFECTS = "gateway/"
_OTHERS_SHARE = 0.5


class Gateway:
    """A gateway that runs.

    Attributes:
        socket: the Unix socket; it lies in a folder of its own.
        port: at 127.0.0.1, where that was asked for; 0 otherwise.
    """

    def __init__(self, app: App, models: Mapping[str, Served], socket: Path, port: int) -> None:
        self.socket, self.port = socket, port
        self._app, self._models = app, dict(models)
        self._calls: Counter[tuple[str, int]] = Counter()

    @asynccontextmanager
    async def admit(
        self, ctx: JobContext, *, models: Sequence[str], protocol: Protocol, transcript: Path
    ) -> AsyncIterator[Access]:
        """Let the program of a job in for as long as the block lasts.

        At the end, what is in flight is read to its end within half the grace of clean-up; what is in flight
        after that stays charged as unknown. May be called again and again by one job, also at the same time.

        Args:
            ctx: the job's.
            models: ids of those that it may use; the first one answers wherever it names none of them.
            protocol: which the program speaks.
            transcript: the file for all that it says and is told.

        Raises:
            ConfigError: there is no such model, or its provider speaks another protocol than the program.
            JournalError: something could not be recorded; the program was told to stop.
        """
        chosen = [self._model(name, protocol) for name in models]
        others = frozenset(self._models) - set(models)
        name_call = partial(self._name_call, ctx)
        await self._settle_lost(ctx)
        access = Access(ctx, chosen, others, protocol=protocol, transcript=transcript, name_call=name_call)
        access.transcript.begin(protocol)
        error: Exception | None = None
        async with anyio.create_task_group() as tasks:
            access.open(tasks)
            self._app.open(access)
            try:
                yield access
            except Exception as raised:  # noqa: BLE001 - raised again below, not wrapped into a group
                error = raised
            finally:
                self._app.close(access)
                with ctx.cleaning_up() as grace:
                    # The rest of it is for what else the job has to do: the work's fruits are taken then.
                    grace.deadline -= _OTHERS_SHARE * (grace.deadline - anyio.current_time())
                    await access.finish()
                access.transcript.close()
        if error is not None or access.failure is not None:
            raise error or access.failure or JournalError("unreachable")

    def _model(self, name: str, protocol: Protocol) -> Served:
        model = self._models.get(name)
        if model is None:
            served = ", ".join(self._models)
            raise ConfigError(f"model {name!r}: the gateway does not serve it; it serves {served}")
        if model.upstream is not None and model.upstream.protocol != protocol:
            raise ConfigError(
                f"model {name!r}: its provider speaks {model.upstream.protocol}, the agent {protocol}; "
                "choose a model of a provider that speaks as the agent does"
            )
        return model

    def _name_call(self, ctx: JobContext) -> str:
        """Return a name for a call that no other call of the job has, in this attempt or an earlier one."""
        self._calls[ctx.key, ctx.attempt] += 1
        return f"{_EFFECTS}attempt-{ctx.attempt}/call-{self._calls[ctx.key, ctx.attempt]}"

    async def _settle_lost(self, ctx: JobContext) -> None:
        """Settle what earlier attempts lost, where the model keeps a record; it is replayed to nobody."""
        for name in ctx.unsettled():
            notes = [call.note for call in ctx.dangling(name)] if name.startswith(_EFFECTS) else []
            ids = {note["model"] for note in notes if isinstance(note, dict)}
            for model in self._models.values():
                if model.id in ids:
                    await model.metered.settle_lost(ctx, name)


@asynccontextmanager
async def open_gateway(
    models: Mapping[str, Served], folder: Path, *, loopback: bool = False
) -> AsyncIterator[Gateway]:
    """Serve ``models`` until the end of the block.

    Args:
        models: by id; their ways to providers are closed at the end, the metered models are not.
        folder: where a folder for the socket is made, and removed at the end; the run's own.
        loopback: serve at a port of 127.0.0.1 as well, for programs that run on this machine.

    Raises:
        JournalError: the socket cannot be made.
    """
    from codetaste.gateway.app import App  # noqa: PLC0415 - heavy
    from codetaste.gateway.server import closing, loopback_socket, serving, unix_socket  # noqa: PLC0415 - heavy

    async with AsyncExitStack() as stack:
        for model in models.values():
            if model.upstream is not None:
                stack.push_async_callback(model.upstream.aclose)
        place = await anyio.to_thread.run_sync(_make_folder, folder)
        stack.push_async_callback(anyio.to_thread.run_sync, partial(rmtree, place, ignore_errors=True))
        try:
            sockets = [unix_socket(place / _SOCKET)]
        except OSError as error:
            raise JournalError(f"{place / _SOCKET}: cannot be made: {error.strerror or error}") from error
        stack.enter_context(closing(sockets))
        if loopback:
            sockets.append(loopback_socket())
        port = sockets[-1].getsockname()[1] if loopback else 0
        app = App()
        await stack.enter_async_context(serving(app, sockets))
        yield Gateway(app, models, place / _SOCKET, port)


def _make_folder(folder: Path) -> Path:
    """Make a folder that others may go into, if they come so far; what a killed process left there goes."""
    place = folder / _FOLDER
    rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True)
        place.chmod(0o755)
    except OSError as error:
        raise JournalError(f"{place}: cannot be made: {error.strerror or error}") from error
    return place
