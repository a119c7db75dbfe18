"""``codetaste review``: decide about the task descriptions of a benchmark in the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.facts.facts import describe_benchmark
from codetaste.benchmark.layout import Track
from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.cli.questions import ask, default_reviewer
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import read_text_file, write_atomically
from codetaste.core.text import one_line, plural, printable
from codetaste.errors import ConfigError
from codetaste.flows.describe.plan import ExistingDescriptions
from codetaste.flows.describe.reviews import Verdict, new_review, read_reviews, write_review

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.describe.reviews import Review

_MAX_TEXT_BYTES = 4 * 1024**2
_MAX_LINE = 20_000
_QUESTION = "[a]ccept, [e]dit, [r]eject, [s]kip or [q]uit? "
_WORDS = {"accept": "a", "edit": "e", "reject": "r", "skip": "s", "quit": "q"}
_WHY = "Why (a model that tries again reads it)? "
_RULE = "─" * 72


@dataclass(frozen=True, slots=True)
class _Description:
    """A description, and the decision about it; None where there is none."""

    instance: Instance
    track: Track
    text: str
    review: Review | None

    @property
    def title(self) -> str:
        return f"{self.track} description of {self.instance.id}"


@command
def review(
    folder: Path,
    /,
    *,
    instances: Several = (),
    all_: Flag = False,
    list_: Flag = False,
    by: str = "",
    repos: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Show each description beside facts of its instance, and ask for a decision.

    Answers are read from standard input, one a line. An edit opens the editor that $VISUAL or $EDITOR names.

    Args:
        folder: A benchmark, such as runs/NAME/describe. Decisions are kept in its reviews.jsonl.
        instances: Only these: globs on ids; may be given several times.
        all_: Also those that were decided about before.
        list_: Only list the descriptions and the decisions; ask nothing.
        by: Who decides; default git's user.name, else $USER.
        repos: A folder of clones OWNER/REPO, for facts of instances.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the benchmark or an instance does not exist, or there is no editor.
        JournalError: the decisions cannot be read or written.
    """
    benchmark = open_benchmark(folder, repos=repos)
    chosen = benchmark.select(instances)
    decided: list[Review] = []
    if not list_:
        found = [each for each in _descriptions(benchmark, chosen) if all_ or each.review is None]
        reviewer = by or default_reviewer()
        decided.extend(_decide_all(benchmark, found, reviewer))
    after = list(_descriptions(open_benchmark(folder), chosen))
    data = _to_json(folder, after, decided)
    print_result(json_document(data) if json_ else _format(after, decided, listed=list_))
    return 0


def _descriptions(benchmark: Benchmark, instances: Sequence[Instance]) -> Iterator[_Description]:
    existing = ExistingDescriptions(benchmark, read_reviews(benchmark.root))
    for instance in instances:
        for track in Track:
            text = existing.text(instance, track)
            if text is not None:
                yield _Description(instance, track, text, existing.review(instance, track))


def _decide_all(benchmark: Benchmark, found: Sequence[_Description], reviewer: str) -> Iterator[Review]:
    """Ask about each description, and yield the decisions, which are written by then; stop where asked to."""
    if not found:
        notify("nothing to decide: every description that is there has a decision (--all shows them again)")
    for number, each in enumerate(found, 1):
        _show(benchmark, each, f"{number} of {len(found)}")
        while True:
            answer = ask(_QUESTION, _WORDS)
            if answer is None or answer == "q":
                return
            if answer == "s":
                break
            made = _take(benchmark, each, answer, reviewer)
            if made is not None:
                yield made
                break
            current = _current(benchmark, each)
            if current != each:
                each = current  # noqa: PLW2901 - asked about again
                _show(benchmark, each, f"{number} of {len(found)}, changed meanwhile")


def _take(benchmark: Benchmark, each: _Description, answer: str, reviewer: str) -> Review | None:
    """Write the decision that an answer means; None if it means none."""
    text, comment = each.text, ""
    match answer:
        case "a":
            verdict = Verdict.ACCEPTED
        case "r":
            verdict, comment = Verdict.REJECTED, ask(_WHY) or ""
        case "e":
            edited = _edit(each)
            if edited is None:
                return None
            verdict, text = Verdict.EDITED, edited
        case _:
            notify(f"{printable(answer)!r} is none of a, e, r, s, q")
            return None
    if _current(benchmark, each) != each:
        where = f"; your text is in {_save_aside(text)}" if verdict is Verdict.EDITED else ""
        notify(f"the {each.title} was changed or decided about meanwhile: nothing was written{where}")
        return None
    if verdict is Verdict.EDITED:
        write_atomically(benchmark.description_path(each.instance, each.track), text)
    made = replace(new_review(each.instance, each.track, verdict, text, reviewer), comment=comment)
    anyio.run(partial(write_review, benchmark.root, made))
    return made


def _current(benchmark: Benchmark, each: _Description) -> _Description:
    """Return a description and the decision about it as they are now: another reviewer may be at work."""
    existing = ExistingDescriptions(Benchmark(benchmark.root, ()), read_reviews(benchmark.root))
    text = existing.text(each.instance, each.track) or ""
    return replace(each, text=text, review=existing.review(each.instance, each.track))


def _save_aside(text: str) -> Path:
    """Write a text to a new file that stays, and return its path."""
    descriptor, name = tempfile.mkstemp(prefix="codetaste-review-", suffix=".md")
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(text)
    return Path(name)


def _edit(each: _Description) -> str | None:
    """Return a description as an editor leaves it; None if it is unchanged, empty, or the editor fails.

    Raises:
        ConfigError: no editor is named, or it cannot be started.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise ConfigError(
            "no editor: set $EDITOR, such as EDITOR=nano; nothing of this description was changed"
        )
    with tempfile.TemporaryDirectory(prefix="codetaste-review-") as folder:
        path = Path(folder) / f"{each.track}_description.md"
        path.write_text(each.text, "utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False, stdout=sys.stderr)
        except (OSError, ValueError) as error:
            raise ConfigError(f"$EDITOR {editor!r} cannot be started: {error}") from None
        if done.returncode:
            notify(f"the editor ended with {done.returncode}: nothing was changed")
            return None
        try:
            text = read_text_file(path, _MAX_TEXT_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            notify(f"what the editor left cannot be read: {error}")
            return None
    if not text or text == each.text.strip():
        notify("nothing was changed" if text else "an empty description is none: nothing was changed")
        return None
    return f"{text}\n"


def _show(benchmark: Benchmark, each: _Description, place: str) -> None:
    """Write a description, the facts of its instance and its other descriptions to standard error."""
    (facts,) = describe_benchmark(benchmark, [each.instance]).instances
    size = "size of the golden patch unknown"
    if facts.golden is not None:
        size = (
            f"golden patch +{facts.golden.added} -{facts.golden.removed} lines in {facts.golden.files} files"
        )
    about = [
        each.instance.language,
        each.instance.category,
        size,
        f"golden {each.instance.golden_commit_hash[:12]}",
    ]
    lines = [_RULE, f"{each.title} ({place})", "; ".join(filter(None, about))]
    lines += [] if each.review is None else [_describe_review(each.review)]
    texts = ExistingDescriptions(benchmark, read_reviews())
    for track in Track:
        text = each.text if track is each.track else texts.text(each.instance, track)
        if text is not None:
            mark = ">" if track is each.track else " "
            chars = f", {len(text.strip())} characters" if track is Track.OPEN else ""
            lines += [
                "",
                f"{track}{chars}:",
                *(f"{mark} {line}".rstrip() for line in text.strip().splitlines()),
            ]
    notify("\n".join(printable(line, _MAX_LINE) for line in [*lines, ""]))


def _describe_review(made: Review) -> str:
    why = f": {made.comment}" if made.comment else ""
    return f"{made.verdict} by {made.by} at {made.at}{why}"


def _to_json(folder: Path, found: Sequence[_Description], decided: Sequence[Review]) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "decided": len(decided),
        "descriptions": [
            {
                "instance": each.instance.id,
                "track": each.track.value,
                "text": each.text.strip(),
                "verdict": None if each.review is None else each.review.verdict.value,
                "by": None if each.review is None else each.review.by,
                "at": None if each.review is None else each.review.at,
                "comment": None if each.review is None else each.review.comment,
            }
            for each in found
        ],
    }


def _format(found: Sequence[_Description], decided: Sequence[Review], *, listed: bool) -> str:
    if not listed:
        left = sum(each.review is None for each in found)
        return f"{plural(len(decided), 'decision')}; {plural(left, 'description')} without one"
    lines = []
    for each in found:
        state = "not reviewed" if each.review is None else _describe_review(each.review)
        lines.append(f"{each.instance.id} {each.track}: {state}")
        if each.track is Track.OPEN:
            lines.append(f"  {one_line(each.text)}")
    return "\n".join(printable(line, _MAX_LINE) for line in lines) or "there are no descriptions"
