"""The prompt of an instance: the template of its type (Appendix E), its slots filled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from codetaste.core.text import plural
from codetaste.llm.messages import Message, TextBlock
from codetaste.swe_refactor.answers.answer_format import PARTS
from codetaste.swe_refactor.answers.place import TARGET_BEFORE, caller_name, is_inlining, location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.java.jdt.model import MethodContext
    from codetaste.llm.prompts import Prompt, Prompts
    from codetaste.swe_refactor.answers.problem import AnswerProblem
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

TEMPLATES: Final[Mapping[str, str]] = {
    "Extract Method": "swe_refactor/extract_inline",
    "Inline Method": "swe_refactor/extract_inline",
    "Move Method": "swe_refactor/move",
    "Move And Rename Method": "swe_refactor/move",
    "Move And Inline Method": "swe_refactor/move_inline",
    "Extract And Move Method": "swe_refactor/extract_move",
}
"""The prompt of each type of refactoring."""
FEEDBACK_PROMPT = "swe_refactor/answer_again"
_MAX_RELATION_CHARS = 40_000
_MAX_STRUCTURE_CHARS = 60_000


@dataclass(frozen=True, slots=True)
class PromptExample:
    """A refactoring that a prompt shows: its type, the code before and after, perhaps a description."""

    refactoring: str
    before: str
    after: str
    description: str = ""


def render_prompt(
    instance: RefactoringInstance,
    prompts: Prompts,
    examples: Sequence[PromptExample] = (),
    java_files: Sequence[str] = (),
) -> list[Message]:
    """Return the messages that ask a model for an instance; what the developers did is not in them.

    ``java_files`` are the files of the project, for an instance that has no structure of its own.

    Raises:
        ConfigError: a template of the user's own is not valid.
    """
    values = {"examples": examples, **prompt_values(instance, java_files)}
    return render_message(prompts.load(TEMPLATES[instance.type]), values)


def prompt_values(instance: RefactoringInstance, java_files: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the slots of an instance's prompts are filled with."""
    structure = instance.structure
    files = structure.java_files if structure else tuple(java_files)
    return {
        "code_to_refactor": instance.source_code_before_refactoring,
        "class_content": instance.source_code_before_for_whole,
        "refactoring_operation": _operation(instance),
        "call_relationship": _call_relationship(instance),
        "project_structure": _project_structure(files, instance.file_path_before),
        "file_path_before_refactoring": instance.file_path_before,
        "new_file": instance.move_file_exist is False,
        "rename": instance.type == "Move And Rename Method",
    }


def render_message(prompt: Prompt, values: Mapping[str, Any]) -> list[Message]:
    """Return the message of a prompt, filled with those of the values that it has slots for."""
    used = prompt.names()
    text = prompt.render(**{name: value for name, value in values.items() if name in used})
    return [Message("user", (TextBlock(text),))]


def render_feedback(problem: AnswerProblem, instance: RefactoringInstance, prompts: Prompts) -> Message:
    """Return the message that tells a model what is wrong with its answer, and asks again.

    Raises:
        ConfigError: a template of the user's own is not valid.
    """
    parts = [str(name) for name in PARTS[instance.type]]
    text = prompts.load(FEEDBACK_PROMPT).render(problem=problem.sentence, parts=parts)
    return Message("user", (TextBlock(text),))


def _operation(instance: RefactoringInstance) -> str:
    """Return the type with the method; of an inlining also the method that takes the code in."""
    target = f"{instance.type} on the method {instance.method_name} of the class {instance.class_name_before}"
    if not is_inlining(instance):
        return target
    caller = caller_name(instance)
    lines = location(instance, TARGET_BEFORE)
    line = f", line {lines.start_line}" if lines else ""
    return f"{target}, into the method {caller or 'that calls it'} in {instance.file_path_before}{line}"


def _call_relationship(instance: RefactoringInstance) -> str:
    context = instance.context
    found = (
        list(_relations(context)) if context else [f"Callee:\n{each}" for each in instance.invoked_method_set]
    )
    shown, chars = list[str](), 0
    for each in found:
        chars += len(each)
        if chars > _MAX_RELATION_CHARS:
            break
        shown.append(each)
    if len(shown) < len(found):
        shown.append(f"({plural(len(found) - len(shown), 'further method')} left out)")
    return "\n\n".join(shown) or "(none is known)"


def _relations(context: MethodContext) -> Iterator[str]:
    for caller in context.callers:
        code = f":\n{caller.method.source}" if caller.method else ""
        yield f"Caller {caller.member} in {caller.path}{code}"
    for callee in context.callees:
        name = f"{callee.owner}#{callee.name}" if callee.owner else callee.name
        code = f":\n{callee.method.source}" if callee.method else f" ({callee.origin})"
        yield f"Callee {name}{code}"


def _project_structure(files: Sequence[str], path: str) -> str:
    """Return the files in order; of too many those that are nearest to ``path``."""
    if sum(map(len, files)) + len(files) < _MAX_STRUCTURE_CHARS:
        return "\n".join(sorted(files)) or f"(only {path} is known)"
    near = sorted(files, key=lambda each: (-_common(each, path), each))
    chars, count = 0, 0
    while count < len(near) and chars + len(near[count]) < _MAX_STRUCTURE_CHARS:
        chars += len(near[count]) + 1
        count += 1
    lines = sorted(near[:count])
    if count < len(near):
        lines.append(f"({plural(len(near) - count, 'further Java file')} left out)")
    return "\n".join(lines)


def _common(path: str, other: str) -> int:
    """Return how many folders two paths have in common from the top."""
    pairs = zip(path.split("/"), other.split("/"), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
