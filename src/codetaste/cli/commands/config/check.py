"""``codetaste config check``: check a config file and what it names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.cli.options import AsJson, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import plural
from codetaste.run.config import read_config
from codetaste.run.mined.dispatch import plan_without_benchmark
from codetaste.run.plan import resolve_and_select

if TYPE_CHECKING:
    from codetaste.run.resolve import ResolvedConfig


@command
def check(
    config: Path,
    /,
    *,
    set_: Several = (),
    json_: AsJson = False,
) -> int:
    """Check the config, and print what it selects; keys that are not set are noted.

    Args:
        config: The TOML file.
        set_: Override a value: section.key=value.
        json_: Print the result as JSON.

    Raises:
        ConfigError: one line for each mistake, with file and key.
    """
    base = read_config(config, set_)
    if not base.makes_benchmark:
        resolved, _ = resolve_and_select(config, base)
    else:
        resolved = plan_without_benchmark(base, config).resolved
    for model in resolved.used_models():
        if model.key_env is not None and not os.environ.get(model.key_env):
            notify(f"{config}: models[{model.id}] needs {model.key_env}, which is not set")
    for note in resolved.model_notes():
        notify(f"{config}: {note}")
    found = _selected_to_json(resolved)
    described = "; ".join(["no mistakes", *_describe(found)])
    print_result(json_document(found) if json_ else f"{config}: {described}")
    return 0


def _selected_to_json(resolved: ResolvedConfig) -> dict[str, list[str]]:
    section = resolved.config.swe_refactor
    clones = (
        ()
        if section is None
        else section.repositories
        if section.build is None
        else section.build.repositories
    )
    return {
        "instances": [
            *(instance.id for instance in resolved.instances),
            *dict.fromkeys(trial.instance.unique_id for trial in resolved.trials),
        ],
        "models": [model.id for model in resolved.used_models()],
        "agents": [agent.id for agent in resolved.config.used_agents()],
        "tools": [tool.spec.name for tool in resolved.tools],
        "clones": [str(path) for path in clones],
    }


def _describe(found: dict[str, list[str]]) -> list[str]:
    counted = [plural(len(names), what.removesuffix("s")) for what, names in found.items() if names]
    return [", ".join(counted)] if counted else []
