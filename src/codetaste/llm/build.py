"""Build models from the config's ``[[models]]`` entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.core.jsonl import JsonlFile
from codetaste.errors import ConfigError, JournalError
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.metering.prompt_bound import PromptBound
from codetaste.llm.price_table import context_window_of, price_mismatch_checker, price_of
from codetaste.llm.providers.cassette import Cassette
from codetaste.llm.providers.replay import ReplayModel
from codetaste.llm.providers.scripted import ScriptedModel, load_script
from codetaste.llm.ratelimit.registry import LimiterRegistry

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.model import Model


def build_model(config: ModelConfig, *, base_dir: Path, record_dir: Path) -> Model:
    """Build the model that ``config`` describes; the caller closes it.

    Args:
        config: one entry of ``[[models]]``.
        base_dir: the folder of the config file; paths in the config are relative to it.
        record_dir: the folder for the ledger of a scripted or replayed model in this run.

    Raises:
        ConfigError: a script or a cassette does not exist or cannot be used, or a key is not set.
    """
    if config.cassette is not None:
        inner = None if config.mode == "replay" else _build_live(config, base_dir, record_dir)
        cassette = Cassette.at(base_dir / config.cassette, config.id)
        try:
            cassette.check(recorded=config.mode == "replay")
        except ConfigError as error:
            raise ConfigError(f"models[{config.id}].cassette: {error}") from error
        return ReplayModel(
            config.id,
            config.model,
            cassette,
            inner=inner,
            mode=config.mode,
            ledger=record_dir / f"{config.id}.replay.jsonl",
        )
    return _build_live(config, base_dir, record_dir)


def _build_live(config: ModelConfig, base_dir: Path, record_dir: Path) -> Model:
    if config.protocol is not None:
        from codetaste.llm.providers.remote import RemoteModel  # noqa: PLC0415 - HTTP is slow to import

        return RemoteModel(config.protocol, config)
    script = load_script(config.model, base_dir=base_dir, model_id=config.id)
    ledger = record_dir / f"{config.id}.ledger.jsonl"
    return ScriptedModel(config.id, script, price=price_of(config), ledger=ledger)


def build_metered_model(
    config: ModelConfig, *, base_dir: Path, record_dir: Path, limiters: LimiterRegistry | None = None
) -> MeteredModel:
    """Build the metered model of one ``[[models]]`` entry; the caller closes it.

    ``limiters`` are those of the run: models with the same provider, address, key and name share one.

    Raises:
        ConfigError: as ``build_model``.
    """
    return MeteredModel(
        build_model(config, base_dir=base_dir, record_dir=record_dir),
        price_of(config),
        (limiters or LimiterRegistry()).limiter_for(config),
        options=config.options,
        max_output_tokens=config.max_output_tokens,
        context_window=context_window_of(config),
        price_mismatch=price_mismatch_checker(config),
        bound=PromptBound(config.prompt_overhead_tokens),
    )


def check_ledgers(record_dir: Path, calls: Container[str]) -> None:
    """Check that the journal has every call that the ledgers of a run have; does blocking I/O.

    Args:
        record_dir: the folder of the ledgers.
        calls: the names of the calls that the journal has.

    Raises:
        JournalError: it has lost one, so that what the run has spent is unknown; or a ledger cannot be read.
    """
    for path in sorted(record_dir.glob("*.jsonl")):

        def check(line: dict[str, Any], path: Path = path) -> None:
            if line["call"] not in calls:
                raise JournalError(
                    f"{path} has the call {line['call']!r}, which the journal has lost, so what the run has "
                    "spent is unknown; restore the journal, or start a new run under another name"
                )

        JsonlFile(path).read_into(check)
