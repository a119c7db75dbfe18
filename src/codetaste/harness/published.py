"""Adapters from agent folders in the published harness' format.

Such a folder has ``agent_config.json`` (id, agent, model); ``run_agent``, which reads
``/task_description/description.md``, works in ``/testbed`` and writes its result to
``/output/inference_metadata.json``; and optionally ``setup_system.sh``. The scripts in the folder beside this
module run them as the published harness' container does.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import AGENT_CONFIG_FILE, FinishReason
from codetaste.core.files import read_text_file
from codetaste.errors import ConfigError
from codetaste.harness.manifest import VERSION_PATTERN, AgentManifest
from codetaste.llm.wire.protocols import OPENAI_CHAT

if TYPE_CHECKING:
    from codetaste.harness.manifest import AgentProtocol

SCRIPT_FOLDER = Path(__file__).with_name("published_scripts")
RUN_AGENT, SETUP_SCRIPT = "run_agent", "setup_system.sh"
AGENT_MOUNT = "/agent"
"""The path at which such an agent expects its folder."""
_PROTOCOLS: dict[str, AgentProtocol] = {"anthropic": "anthropic", "openai": "openai", "local": "none"}
_OUTCOMES = {
    **{reason.value: reason.value for reason in FinishReason},
    FinishReason.BUDGET_EXCEEDED.value: "budget",
    "error_max_budget_usd": "budget",
}
"""What each finish reason of ``inference_metadata.json`` means; any other is an error."""
_METADATA_EVENT = {"codetaste": "metadata"}
"""How run.sh marks the line with the agent's ``inference_metadata.json``."""


def published_manifest(folder: Path) -> AgentManifest:
    """Read ``agent_config.json`` and return the equivalent of an agent.toml.

    Raises:
        ConfigError: one line for each mistake.
    """
    path = folder / AGENT_CONFIG_FILE
    try:
        config = json.loads(read_text_file(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON: {error}") from None
    wrong = [f"{path}: {problem}" for problem in _config_problems(config)]
    if not (folder / RUN_AGENT).is_file():
        wrong.append(f"{folder}: contains no {RUN_AGENT}")
    if wrong:
        raise ConfigError(*wrong)
    agent = config["agent"]
    version = re.sub(r"[^A-Za-z0-9._+-]", "-", str(agent.get("version") or "published"))
    if not re.fullmatch(VERSION_PATTERN, version):
        version = "published"
    return AgentManifest.model_validate(
        {
            "protocol": _PROTOCOLS.get(agent["provider"].lower(), OPENAI_CHAT.name),
            "versions": (version,),
            "default": version,
            "about": f"{config['id']}, an agent of the published harness",
            "install": "install.sh" if (folder / SETUP_SCRIPT).is_file() else "",
            "end_events": (
                *(
                    {
                        "when": _METADATA_EVENT | {"finish_reason": reason},
                        "outcome": outcome,
                        **({} if outcome == "success" else {"message": "finish_reason"}),
                    }
                    for reason, outcome in _OUTCOMES.items()
                ),
                {"when": _METADATA_EVENT, "outcome": "error", "message": "finish_reason"},
            ),
            "numbers": {"cost_usd": "cost_usd"},
        }
    )


def _config_problems(config: Any) -> list[str]:  # noqa: ANN401 - JSON
    if not isinstance(config, dict):
        return ["not an object"]
    wrong = [] if isinstance(config.get("id"), str) and config["id"] else ["id: missing"]
    for name in ("agent", "model"):
        part = config.get(name)
        if not isinstance(part, dict):
            wrong.append(f"{name}: missing")
            continue
        wrong += [
            f"{name}.{key}: missing" for key in ("name", "provider") if not isinstance(part.get(key), str)
        ]
    return wrong
