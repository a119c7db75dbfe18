"""CodeBLEU of a candidate beside its references: the weighted mean of four parts (CodeBLEU §3)."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from codetaste.codebleu.bleu import bleu, weighted_bleu
from codetaste.codebleu.data_flow import data_flow
from codetaste.codebleu.data_flow_match import data_flow_match
from codetaste.codebleu.java import KEYWORDS, remove_comments
from codetaste.codebleu.limits import CodeTooLarge, check_angles, check_size
from codetaste.codebleu.syntax_match import syntax_match
from codetaste.codebleu.syntax_tree import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.codebleu.data_flow import Flow
    from codetaste.codebleu.syntax_tree import Node, SyntaxTree

Language = Literal["java"]
Weights = tuple[float, float, float, float]

EQUAL_WEIGHTS: Weights = (0.25, 0.25, 0.25, 0.25)


@dataclass(frozen=True, slots=True)
class CodeBleu:
    """CodeBLEU and its parts, each 0 to 1.

    Attributes:
        ngram: BLEU of the words between white space.
        weighted_ngram: BLEU in which keywords count five times as much as other words.
        syntax: the share of the references' sub-trees that the candidate has.
        data_flow: the share of the references' data flow that the candidate has; None if they have none.
        score: the mean of the parts by their weights; without data flow, of the other three.
    """

    ngram: float
    weighted_ngram: float
    syntax: float
    data_flow: float | None
    score: float


@dataclass(frozen=True, slots=True)
class _Code:
    """A text as the parts need it: its words with comments, tree and data flow without."""

    words: tuple[str, ...]
    root: Node
    flows: list[Flow]


def codebleu(
    candidate: str,
    reference: str | Sequence[str],
    language: Language = "java",
    weights: Weights = EQUAL_WEIGHTS,
    *,
    as_published: bool = False,
) -> CodeBleu:
    """Return CodeBLEU of ``candidate`` beside one or more references. Blocking: milliseconds for a method.

    An empty candidate, or a candidate beside empty references only, has 0 in each part. Faults of syntax are
    no fault here: their trees are compared as they are.

    Args:
        candidate: the code to be scored.
        reference: the code of the human, or several versions of it.
        language: the language of all texts.
        weights: of ``ngram``, ``weighted_ngram``, ``syntax`` and ``data_flow``; not negative, one above 0.
        as_published: give what the package ``codebleu`` 0.7.0 gives, with its faults: a data flow of 0, or
            none in the references, counts as 1; so an empty candidate has 0.25. Characters beyond ASCII
            shift the tokens of their lines.

    Raises:
        CodeTooLarge: a text exceeds a limit of ``codetaste.codebleu.limits``.
        ValueError: the weights or the language are impossible, or there is no reference.
    """
    references = (reference,) if isinstance(reference, str) else tuple(reference)
    _check(references, language, weights)
    texts = [text.strip() for text in (candidate, *references)]
    if not as_published and (not texts[0] or not any(texts[1:])):
        return CodeBleu(0.0, 0.0, 0.0, 0.0, 0.0)
    names = ("the candidate", *(f"reference {number}" for number in range(1, len(texts))))
    made, *others = (
        _read(text, name, as_published=as_published) for text, name in zip(texts, names, strict=True)
    )
    words = [each.words for each in others]
    parts = (
        bleu(made.words, words),
        weighted_bleu(made.words, words, KEYWORDS),
        syntax_match(made.root, [each.root for each in others]),
    )
    flow = data_flow_match(made.flows, [each.flows for each in others])
    if as_published:
        flow = flow or 0.0
        return CodeBleu(*parts, flow, _weighted_sum((*parts, flow or 1.0), weights))
    known = parts if flow is None else (*parts, flow)
    total = math.fsum(weights[: len(known)])
    return CodeBleu(*parts, flow, _weighted_sum(known, weights) / total if total else 0.0)


def _check(references: Sequence[str], language: str, weights: Weights) -> None:
    if language != "java":
        raise ValueError(f"CodeBLEU of {language!r} is not supported: only of 'java'")
    if not references:
        raise ValueError("CodeBLEU needs a reference")
    if (
        len(weights) != len(EQUAL_WEIGHTS)
        or not all(0 <= each < math.inf for each in weights)
        or not any(weights)
    ):
        raise ValueError(
            f"the weights of CodeBLEU are four numbers of 0 or more, one above 0, not {weights!r}"
        )


def _read(text: str, name: str, *, as_published: bool) -> _Code:
    try:
        check_size(text)
        bare = remove_comments(text)
        check_angles(bare)
        tree = parse(code := bare.encode("utf-8", "surrogatepass"))
        tokens = (
            _published_texts(bare, code, tree) if as_published and not bare.isascii() else _texts(code, tree)
        )
        return _Code(tuple(text.split()), tree.root, data_flow(tree, tokens))
    except CodeTooLarge as error:
        raise CodeTooLarge(f"{name} has no CodeBLEU: {error}") from None


def _texts(code: bytes, tree: SyntaxTree) -> list[str]:
    return [code[each.start : each.end].decode("utf-8", "replace") for each in tree.tokens]


def _published_texts(text: str, code: bytes, tree: SyntaxTree) -> list[str]:
    """Return the texts of the tokens as published: columns in bytes are taken for columns in characters."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in code.split(b"\n"))]
    found = []
    for token in tree.tokens:
        first, last = (bisect_right(starts, place) - 1 for place in (token.start, token.end))
        from_column, to_column = token.start - starts[first], token.end - starts[last]
        if first == last:
            found.append(lines[first][from_column:to_column])
        else:
            between = (lines[first][from_column:], *lines[first + 1 : last], lines[last][:to_column])
            found.append("".join(between))
    return found


def _weighted_sum(parts: Sequence[float], weights: Weights) -> float:
    return math.fsum(part * weight for part, weight in zip(parts, weights, strict=False))
