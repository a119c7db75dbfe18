"""A method that a model describes, of an example or of an instance, with the code around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.java.jdt.model import MethodContext
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.examples.example import RefactoringExample


@dataclass(frozen=True, slots=True)
class DescribedMethod:
    """What a description is made of; all of it is code before the refactoring.

    Attributes:
        id: of the example or the instance.
        title: for people.
        code: the method.
        related: methods that call it or that it calls; "" if none is known.
        class_code: the file of its class.
    """

    id: str
    title: str
    code: str
    related: str
    class_code: str


def method_of_example(example: RefactoringExample) -> DescribedMethod:
    """Return the method of an example before its refactoring."""
    return DescribedMethod(
        example.id,
        f"{example.name} {example.commit_id[:12]}",
        example.source_code_before_refactoring,
        example.related_code,
        example.source_code_before_for_whole,
    )


def method_of_instance(instance: RefactoringInstance) -> DescribedMethod:
    """Return the target of an instance, with its callers and callees as far as the instance knows them."""
    related = _related(instance.context) if instance.context else instance.invoked_method_set
    return DescribedMethod(
        instance.unique_id,
        f"{instance.method_name_before} {instance.commit_id[:12]}",
        instance.source_code_before_refactoring,
        "\n\n".join(dict.fromkeys(related)),
        instance.source_code_before_for_whole,
    )


def _related(context: MethodContext) -> Iterator[str]:
    found = [*(each.method for each in context.callers), *(each.method for each in context.callees)]
    return (each.source for each in found if each is not None and each.source)
