"""``codetaste swe-refactor review``: decide about a random subset of the instances of a file."""

from __future__ import annotations

import difflib
import secrets
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from cyclopts import Parameter
from cyclopts.validators import Number

from codetaste.cli.commands.swe_refactor.show import describe_facts
from codetaste.cli.options import AsJson, Flag
from codetaste.cli.questions import ask, default_reviewer
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import colour, is_coloured, notify, print_result
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.review import (
    InstanceReview,
    InstanceVerdict,
    ReviewSample,
    instance_reviews_path,
    new_instance_review,
    read_instance_reviews,
    usual_sample_size,
    write_instance_review,
    write_sample,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.dataset.review import InstanceReviews

_QUESTION = "[c]orrect, [w]rong, [u]nsure, [n]ote, [b]ack or [q]uit? "
_WORDS = {"correct": "c", "wrong": "w", "unsure": "u", "note": "n", "back": "b", "quit": "q"}
_VERDICTS = {verdict.value[0]: verdict for verdict in InstanceVerdict}
_NOTE = "Note: "
_RULE = "─" * 72
_MAX_LINE, _MAX_CONTEXT, _TAB = 2_000, 20, 4
_CONTEXT_LINES = 8
"""Of the diff of a file."""
_HUGE = 2**32


@command
def review(
    file: Path,
    /,
    *,
    sample: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    seed: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    by: str = "",
    summary: Flag = False,
    json_: AsJson = False,
) -> int:
    """Show each instance of the subset, and ask whether it is correct; continue where the reviewer stopped.

    Args:
        file: A file in the published shape. Decisions are beside it, in NAME.reviews.jsonl.
        sample: The size of the subset; default that of the last review, else as many as show the share of
            correct instances to ± 10 points.
        seed: Decides which instances are in the subset; default that of the last review, else a random one.
        by: Who decides; default git's user.name, else $USER.
        summary: Only print what was decided, and how far reviewers agree; ask nothing.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the file cannot be read, or there is no terminal.
        JournalError: the decisions cannot be read or written.
    """
    instances = read_instances(file)
    decided, reviewer = 0, by or default_reviewer()
    if not summary:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfigError("review asks in a terminal, and there is none; --summary prints the decisions")
        drawn = _sample(file, len(instances), sample, seed, reviewer).draw(instances)
        decided = _Session(file, drawn, reviewer).decide()
    reviews = read_instance_reviews(file)
    if json_:
        print_result(json_document(_to_json(file, instances, reviews, decided)))
    elif summary:
        for line in _describe(file, instances, reviews):
            print_result(printable(line))
    else:  # not what others decided: reviewers are independent
        left = sum(reviews.of(each, reviewer) is None for each in drawn)
        print_result(f"{plural(decided, 'decision')}; {left} of {plural(len(drawn), 'instance')} left")
    return 0


def _sample(file: Path, count: int, size: int | None, seed: int | None, by: str) -> ReviewSample:
    """Return the subset, which is recorded if it is not that of the last review."""
    last = read_instance_reviews(file).sample
    if last is not None:
        wanted = ReviewSample(last.seed if seed is None else seed, last.size if size is None else size)
    else:
        wanted = ReviewSample(
            secrets.randbelow(_HUGE) if seed is None else seed,
            usual_sample_size(count) if size is None else size,
        )
    if wanted != last:
        anyio.run(partial(write_sample, file, wanted, by))
    return wanted


@dataclass
class _Session:
    """One reviewer's way through the subset."""

    file: Path
    instances: Sequence[RefactoringInstance]
    by: str

    def decide(self) -> int:
        """Ask about each instance without a decision; return how many decisions were written."""
        decided, place = 0, self._next(0)
        if place is None:
            notify("nothing to decide: you decided about each instance of the subset (--sample enlarges it)")
        while place is not None:
            answer = self._ask_about(place)
            if answer is None:
                break
            if answer == "b":
                place -= 1
                continue
            decided += 1
            place = self._next(place + 1)
        return decided

    def _next(self, start: int) -> int | None:
        """Return the first place from ``start`` on, then from the beginning, that has no decision."""
        reviews = read_instance_reviews(self.file)
        places = [*range(start, len(self.instances)), *range(start)]
        return next((each for each in places if reviews.of(self.instances[each], self.by) is None), None)

    def _ask_about(self, place: int) -> str | None:
        """Show an instance, and ask until a decision is written, or for "b"; None to stop."""
        instance = self.instances[place]
        reviews = read_instance_reviews(self.file)
        before = reviews.of(instance, self.by)
        _show(instance, f"{place + 1} of {len(self.instances)}", before)
        if reviews.changed(instance, self.by):
            notify("The instance has changed since you decided about it.")
        note = "" if before is None else before.note
        while True:
            answer = ask(_QUESTION, _WORDS)
            if answer is None or answer == "q":
                return None
            if answer in _VERDICTS:
                made = new_instance_review(instance, _VERDICTS[answer], note, self.by)
                anyio.run(partial(write_instance_review, self.file, made))
                return answer
            if answer == "n":
                note = ask(_NOTE) or ""
            elif answer == "b" and place:
                return answer
            elif answer == "b":
                notify("this is the first one")
            else:
                notify(f"{printable(answer)!r} is none of {', '.join(_WORDS.values())}")


def _show(instance: RefactoringInstance, place: str, before: InstanceReview | None) -> None:
    """Write an instance to standard error: facts, context, and the code of both sides."""
    lines = [_RULE, f"{instance.type} ({place})", *describe_facts(instance), *_context(instance)]
    lines += _code(instance)
    if before is not None:
        note = f": {before.note}" if before.note else ""
        lines += ["", f"you decided: {before.verdict}{note}"]
    coloured = is_coloured(sys.stderr)
    for line in [*lines, ""]:
        text = printable(line.expandtabs(_TAB), _MAX_LINE)
        shade = {"+": "green", "-": "red"}.get(text[:1]) if coloured else None
        sys.stderr.write(f"{text if shade is None else colour(text, shade)}\n")


def _context(instance: RefactoringInstance) -> Iterator[str]:
    """Yield the callers and callees of the target, if the instance has them."""
    if (context := instance.context) is None:
        return
    callers = [
        f"caller       {each.member}, {each.path}: {', '.join(map(str, each.lines))} ({each.relation})"
        for each in context.callers
    ]
    callees = [f"callee       {each.owner or '?'}#{each.name} ({each.origin})" for each in context.callees]
    for found in (callers, callees):
        yield from found[:_MAX_CONTEXT]
        if len(found) > _MAX_CONTEXT:
            yield f"             … and {len(found) - _MAX_CONTEXT} more"


def _code(instance: RefactoringInstance) -> Iterator[str]:
    """Yield the target, what becomes of it, and the diff of its file, if it stays in it."""
    target, after = instance.source_code_before_refactoring, instance.source_code_after_refactoring
    if instance.file_path_before == instance.file_path_after:
        yield "── target, before"
        yield from target.splitlines()
        yield f"── {instance.file_path_before}, before and after"
        before, whole = instance.source_code_before_for_whole, instance.source_code_after_for_whole
        yield from _diff(before, whole)
        yield "── method, after"
        yield from after.splitlines()
    else:
        yield f"── method before ({instance.file_path_before}) and after ({instance.file_path_after})"
        yield from _diff(target, after, max(target.count("\n"), after.count("\n")))


def _diff(before: str, after: str, context: int = _CONTEXT_LINES) -> Iterator[str]:
    """Yield the lines of a unified diff without its head."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
    return (line for number, line in enumerate(lines) if number > 1)


def _describe(
    file: Path, instances: Sequence[RefactoringInstance], reviews: InstanceReviews
) -> Iterator[str]:
    if reviews.sample is None:
        yield f"{file}: not reviewed yet"
        return
    drawn = reviews.sample.draw(instances)
    found = reviews.about(drawn)
    size = f"{len(drawn)} of {plural(len(instances), 'instance')}"
    yield f"subset: {size}, seed {reviews.sample.seed}; {instance_reviews_path(file)}"
    for by in reviews.reviewers:
        counts = Counter(each.verdict for each in found if each.by == by)
        numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in InstanceVerdict)
        yield f"{by}: {numbers}, {len(drawn) - counts.total()} left{_share(counts)}"
    for each in reviews.agreements(drawn):
        kappa = "undefined" if each.kappa is None else f"{each.kappa:.2f}"
        names = " and ".join(each.reviewers)
        yield f"{names}: the same about {each.equal} of {each.both}, Cohen's kappa {kappa}"
    for made in found:
        if made.verdict is not InstanceVerdict.CORRECT or made.note:
            note = f": {made.note}" if made.note else ""
            yield f"{made.instance}: {made.verdict} ({made.by}){note}"


def _share(counts: Counter[InstanceVerdict]) -> str:
    """Describe the share of correct ones among those that are correct or wrong, with Wilson's interval."""
    correct = counts[InstanceVerdict.CORRECT]
    sure = correct + counts[InstanceVerdict.WRONG]
    if not sure:
        return ""
    from codetaste.report.statistics.numerics import wilson_interval  # noqa: PLC0415 - imports scipy

    low, high = wilson_interval(correct / sure, sure)
    return f"; {correct / sure:.1%} correct (95 % interval {low:.1%} to {high:.1%})"


def _to_json(
    file: Path, instances: Sequence[RefactoringInstance], reviews: InstanceReviews, decided: int
) -> dict[str, Any]:
    sample = reviews.sample
    drawn = () if sample is None else sample.draw(instances)
    found = reviews.about(drawn)
    return {
        "file": str(instance_reviews_path(file)),
        "seed": None if sample is None else sample.seed,
        "subset": [each.unique_id for each in drawn],
        "decided": decided,
        "reviewers": [
            {
                "by": by,
                **{each: sum(r.by == by and r.verdict is each for r in found) for each in InstanceVerdict},
                "left": len(drawn) - sum(r.by == by for r in found),
            }
            for by in reviews.reviewers
        ],
        "agreements": [asdict(each) for each in reviews.agreements(drawn)],
        "reviews": [asdict(each) for each in found],
    }
