"""The prompt of an agent: what the simple prompt says of an instance, and that the repository is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.prompt import prompt_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.llm.prompts import Prompts
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.trials.agent.project import ProjectAccess

AGENT_PROMPT = "swe_refactor/agent"


def render_agent_prompt(
    instance: RefactoringInstance,
    prompts: Prompts,
    java_files: Sequence[str] = (),
    access: ProjectAccess | None = None,
) -> str:
    """Return the whole prompt of an agent; what the developers did is not in it.

    Args:
        instance: the instance.
        prompts: the prompts.
        java_files: those of the project, for an instance that has no structure of its own.
        access: how the project is built; without it the prompt is a shorter one, to estimate a cost.

    Raises:
        ConfigError: a template of the user's own is not valid.
    """
    prompt = prompts.load(AGENT_PROMPT)
    values = {
        **prompt_values(instance, java_files),
        "type": instance.type,
        "test_command": access.test_command if access else "",
        "folder": access.folder if access else "",
    }
    used = prompt.names()
    return prompt.render(**{name: value for name, value in values.items() if name in used})
