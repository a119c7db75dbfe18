"""The metering gateway: one model server per run, for CLI agents in sandboxes.

Each job gets its own token, which is valid until the job ends. Each request is reserved in the job's budget
before it is sent, settled from the provider's token counts, and written to the job's transcript. Provider
keys never leave the host.
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
from codetaste.gateway.session import GatewaySession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.gateway.app import GatewayApp
    from codetaste.gateway.upstream import GatewayModel
    from codetaste.llm.wire.protocols import ProtocolName
    from codetaste.orchestration.job import JobContext

__all__ = ["Gateway", "GatewaySession", "open_gateway"]

_FOLDER, _SOCKET = "gateway", "gateway.sock"
_CALL_PREFIX = "gateway/"
_RESERVED_SHARE = 0.5


class Gateway:
    """A running gateway.

    Attributes:
        socket: the Unix socket, in a folder of its own.
        port: the port at 127.0.0.1, 0 without ``loopback``.
    """

    def __init__(self, app: GatewayApp, models: Mapping[str, GatewayModel], socket: Path, port: int) -> None:
        self.socket, self.port = socket, port
        self._app, self._models = app, dict(models)
        self._calls: Counter[tuple[str, int]] = Counter()

    @asynccontextmanager
    async def admit(
        self, ctx: JobContext, *, models: Sequence[str], protocol: ProtocolName, transcript: Path
    ) -> AsyncIterator[GatewaySession]:
        """Open a session for a job's CLI agent until the end of the block.

        At the end, replies in flight are read to their end within half of the clean-up grace; calls still in
        flight after that stay charged as unknown. One job may open several sessions, also at the same time.

        Args:
            ctx: the job's context.
            models: ids of the models that it may use; the first one answers a request for an unknown model.
            protocol: the protocol of the CLI agent.
            transcript: the file to which requests and replies are written.

        Raises:
            ConfigError: there is no such model, or its provider uses another protocol than the agent.
            JournalError: the journal or the transcript cannot be written; the agent was stopped.
        """
        chosen = [self._model(name, protocol) for name in models]
        others = frozenset(self._models) - set(models)

        def name_call() -> str:
            """Return a name for a call that is unique within the job, over all its attempts."""
            self._calls[ctx.key, ctx.attempt] += 1
            return f"{_CALL_PREFIX}attempt-{ctx.attempt}/call-{self._calls[ctx.key, ctx.attempt]}"

        await self._settle_unsettled(ctx)
        session = GatewaySession(
            ctx, chosen, others, protocol=protocol, transcript=transcript, name_call=name_call
        )
        session.transcript.begin(protocol)
        error: Exception | None = None
        async with anyio.create_task_group() as tasks:
            session.open(tasks)
            self._app.tokens.add(session)
            try:
                yield session
            except Exception as raised:  # noqa: BLE001 - raised again below, not wrapped into a group
                error = raised
            finally:
                self._app.tokens.remove(session)
                with ctx.cleanup_scope() as grace:
                    # The rest of the grace is for the job's other clean-up: the patch is extracted then.
                    grace.deadline -= _RESERVED_SHARE * (grace.deadline - anyio.current_time())
                    await session.finish()
                session.transcript.close()
        if error is not None or session.failure is not None:
            raise error or session.failure or JournalError("unreachable")

    def _model(self, name: str, protocol: ProtocolName) -> GatewayModel:
        model = self._models.get(name)
        if model is None:
            known = ", ".join(self._models)
            raise ConfigError(f"model {name!r}: the gateway does not serve it; it serves {known}")
        if model.upstream is not None and model.upstream.protocol.name != protocol:
            raise ConfigError(
                f"model {name!r}: its provider uses the protocol {model.upstream.protocol.name}, the agent "
                f"{protocol}; choose a model whose provider uses the agent's protocol"
            )
        return model

    async def _settle_unsettled(self, ctx: JobContext) -> None:
        """Settle unsettled calls of earlier attempts, if the model has a ledger; replies are not replayed."""
        for name in ctx.unsettled_effects():
            notes = [call.note for call in ctx.unsettled_calls(name)] if name.startswith(_CALL_PREFIX) else []
            ids = {note["model"] for note in notes if isinstance(note, dict)}
            for model in self._models.values():
                if model.id in ids:
                    await model.metered.recover(ctx, name)


@asynccontextmanager
async def open_gateway(
    models: Mapping[str, GatewayModel], folder: Path, *, loopback: bool = False
) -> AsyncIterator[Gateway]:
    """Serve ``models`` until the end of the block.

    Args:
        models: by id; their provider connections are closed at the end, the metered models are not.
        folder: the run's folder, in which the socket's folder is created, and removed at the end.
        loopback: serve at a port of 127.0.0.1 as well, for CLI agents on the host.

    Raises:
        JournalError: the socket cannot be created.
    """
    from codetaste.gateway.app import GatewayApp  # noqa: PLC0415 - heavy
    from codetaste.gateway.server import close_on_exit, loopback_socket, open_server, unix_socket  # noqa: PLC0415 - heavy

    async with AsyncExitStack() as stack:
        for model in models.values():
            if model.upstream is not None:
                stack.push_async_callback(model.upstream.aclose)
        socket_folder = await anyio.to_thread.run_sync(_make_folder, folder)
        stack.push_async_callback(
            anyio.to_thread.run_sync, partial(rmtree, socket_folder, ignore_errors=True)
        )
        try:
            sockets = [unix_socket(socket_folder / _SOCKET)]
        except OSError as error:
            raise JournalError(
                f"{socket_folder / _SOCKET}: cannot be created: {error.strerror or error}"
            ) from error
        stack.enter_context(close_on_exit(sockets))
        if loopback:
            sockets.append(loopback_socket())
        port = sockets[-1].getsockname()[1] if loopback else 0
        app = GatewayApp()
        await stack.enter_async_context(open_server(app, sockets))
        yield Gateway(app, models, socket_folder / _SOCKET, port)


def _make_folder(folder: Path) -> Path:
    """Create a folder that other users may enter; replace one that a killed process left."""
    socket_folder = folder / _FOLDER
    rmtree(socket_folder, ignore_errors=True)
    try:
        socket_folder.mkdir(parents=True)
        socket_folder.chmod(0o755)
    except OSError as error:
        raise JournalError(f"{socket_folder}: cannot be created: {error.strerror or error}") from error
    return socket_folder
