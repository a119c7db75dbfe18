"""Write the state of an agent loop as a JSON-lines file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import TRANSCRIPTS_FOLDER
from codetaste.core.files import write_atomically
from codetaste.llm.codec import message_to_json

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.agent.loop import AgentState, LoopSettings


def transcript_path(key: str) -> str:
    """Return the path of the transcript of the job ``key`` in the run's folder."""
    return f"{TRANSCRIPTS_FOLDER}/{key}.jsonl"


async def write_transcript(
    out: Path, key: str, model: str, settings: LoopSettings, state: AgentState
) -> Path:
    """Write ``transcripts/<job key>.jsonl``: model and system prompt, then one message a line."""
    lines = [
        json.dumps(
            {"model": model, "system": settings.system, "tools": [tool.spec.name for tool in settings.tools]}
        ),
        *(json.dumps(message_to_json(message)) for message in state.messages),
    ]
    path = out / transcript_path(key)
    await to_thread.run_sync(lambda: write_atomically(path, "".join(f"{line}\n" for line in lines)))
    return path
