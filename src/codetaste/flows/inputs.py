"""The named inputs that decide the result of a job that calls a model: config keys, prompts, tasks.

A job whose inputs have changed is done again; a dry run names the changed ones as the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.llm.prompts import Prompts

Inputs: TypeAlias = "Mapping[str, str]"
"""The text of each input by its name."""
CODETASTE = "codetaste"
"""The name of what codetaste itself decides, such as its tools and the version of a flow."""
_DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class InputSource:
    """What inputs are taken from; ``models`` are hashes of what determines the models' replies, by id."""

    benchmark: Benchmark
    prompts: Prompts
    models: Mapping[str, str]

    def of_prompts(self, names: Iterable[str]) -> Inputs:
        """Return the texts of prompts, each under the path of its file."""
        return {f"prompts/{name}.md": self.prompts.load(name).text for name in names}


def digest_of_inputs(inputs: Inputs) -> str:
    """Return the hash of all inputs, a job's fingerprint."""
    return _digest("\0".join(f"{name}\0{inputs[name]}" for name in sorted(inputs)))


def digests_of_inputs(inputs: Inputs) -> dict[str, str]:
    """Return a short hash of each input, by which a changed one is recognised."""
    return {name: _digest(text)[:_DIGEST_CHARS] for name, text in inputs.items()}


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
