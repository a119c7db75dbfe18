"""The open models of a run, as all flows use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metering.metered import MeteredModel


@dataclass(frozen=True, slots=True)
class ModelSet:
    """The open models of a run, their configs, and hashes of what determines their replies; all by id."""

    models: Mapping[str, MeteredModel]
    configs: Mapping[str, ModelConfig]
    fingerprints: Mapping[str, str]
