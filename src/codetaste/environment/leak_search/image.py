"""Search an image in a container engine."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import from_thread, to_thread

from codetaste.environment.leak_search.layers import ImageArchive, search_config, search_folder
from codetaste.environment.leak_search.search import LeakSearch
from codetaste.environment.leak_search.secrets import NO_SECRETS, Secrets
from codetaste.errors import SandboxError
from codetaste.sandbox.docker.engine import engine_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from codetaste.environment.leak_search.golden import GoldenTraces
    from codetaste.environment.leak_search.report import LeakReport
    from codetaste.sandbox.docker.engine import ContainerEngine

WITHIN_S = 900.0
_CHUNK_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class LeakTerms:
    """What is searched for: a golden state, and secrets."""

    golden: GoldenTraces | None = None
    secrets: Secrets = NO_SECRETS


async def image_layers(engine: ContainerEngine, image: str) -> tuple[str, ...]:
    """Return the ids of the layers of an image, the lowest first.

    Raises:
        SandboxMissing: there is no such image.
        SandboxError: the engine failed.
    """
    with engine_errors(engine, f"list the layers of {image}"):
        return _layers(await engine.client.images.inspect(image))


async def search_image(
    engine: ContainerEngine,
    image: str,
    terms: LeakTerms,
    *,
    leave_out: Collection[str] = (),
    within_s: float = WITHIN_S,
) -> LeakReport:
    """Search config, history and layers of an image.

    Where the engine's folders can be read, files are read there: writing an archive takes an engine seconds a
    gigabyte, of layers that are left out, too.

    Args:
        engine: that has it.
        image: name or id.
        terms: what is searched for.
        leave_out: ids of layers that do not count: those of its base image.
        within_s: seconds.

    Raises:
        SandboxMissing: there is no such image.
        SandboxError: the engine failed, or the time was over before all was searched.
    """
    with engine_errors(engine, f"inspect {image}"):
        config = await engine.client.images.inspect(image)
        history = await engine.client.images.history(image)
    folders = await to_thread.run_sync(_layer_folders, config)
    if folders is None:
        return await search_archive(
            _saved(engine, image, within_s), terms, leave_out=leave_out, within_s=within_s
        )
    layers = [pair for pair in zip(_layers(config), folders, strict=True) if pair[0] not in set(leave_out)]
    search = LeakSearch(terms.golden, terms.secrets, _checker(within_s))
    texts = {key: value for key, value in config.items() if key not in {"GraphDriver", "RootFS"}}
    await to_thread.run_sync(search_config, search, {**texts, "history": history})
    for layer, folder in layers:
        search.begin_layer()
        await to_thread.run_sync(search_folder, search, folder)
        search.end_layer(layer)
    return search.report()


async def search_archive(
    archive: AsyncIterator[bytes],
    terms: LeakTerms,
    *,
    leave_out: Collection[str] = (),
    within_s: float = WITHIN_S,
) -> LeakReport:
    """Search an archive of an image, as ``docker save`` writes it; arguments as of ``search_image``.

    Raises:
        SandboxError: it is not one, a layer is missing, or the time was over.
    """
    search = LeakSearch(terms.golden, terms.secrets, _checker(within_s))
    reader = ImageArchive(search, leave_out)
    async for piece in archive:
        if piece:
            await to_thread.run_sync(reader.feed, piece)
    await to_thread.run_sync(reader.finish)
    return search.report()


async def _saved(engine: ContainerEngine, image: str, within_s: float) -> AsyncIterator[bytes]:
    with engine_errors(engine, f"save {image}", within_s):
        async with engine.stream("GET", f"images/{image}/get", params={}) as answer:
            piece = bytearray()
            async for chunk in answer.content.iter_any():
                piece += chunk
                if len(piece) >= _CHUNK_BYTES:
                    yield bytes(piece)
                    piece.clear()
            yield bytes(piece)


def _checker(within_s: float) -> Any:  # noqa: ANN401 - a function
    """Return a function that raises if the calling task is cancelled, or ``within_s`` are over."""
    deadline = time.monotonic() + within_s

    def check() -> None:
        from_thread.check_cancelled()
        if time.monotonic() > deadline:
            raise SandboxError(f"searching an image took more than {within_s:g} s")

    return check


def _layers(config: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, config["RootFS"]["Layers"]))


def _layer_folders(config: Mapping[str, Any]) -> list[Path] | None:
    """Return the folders of the layers, the lowest first; None if the engine has no readable ones."""
    driver = config.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    if not str(driver.get("Name", "")).startswith("overlay") or not data.get("UpperDir"):
        return None
    lower = str(data.get("LowerDir") or "")
    folders = [Path(data["UpperDir"]), *map(Path, filter(None, lower.split(":")))]
    if len(folders) != len(_layers(config)):
        return None
    readable = all(folder.is_dir() and os.access(folder, os.R_OK | os.X_OK) for folder in folders)
    return folders[::-1] if readable else None
