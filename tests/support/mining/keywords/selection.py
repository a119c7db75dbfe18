"""Choose keyword sets on commits: which words published candidates have more often than other large commits.

The *lift* of a word is its share among the candidates over its share among the others, where every repository
has the same weight. The shares are smoothed, so that a word which neither side has counts as three times as
frequent among candidates. A word of K+ needs a lift of 1 if a published list has it, and of
``Setting.general_lift`` otherwise; it is strong if it is published and its lift is 2.5 or more. A word of K-
weak needs the inverse lift ``Setting.minus_lift`` among the commits that K+ keeps. K- strong is what the
paper names; the words that the paper names in K+ keep their sets, too.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tomli
from numpy.typing import NDArray

from codetaste.mining.keywords.count import fold_case
from codetaste.mining.keywords.keyword import Keyword, parse_keyword
from codetaste.mining.keywords.message import pull_request_text
from support.mining.keywords.commits import Commit

STRONG_MINUS = ("^fix", "^lint")
STRONG_PLUS, WEAK_PLUS = "deduplicat*", "reorganiz*"
PUBLISHED_LIFT, STRONG_LIFT = 1.0, 2.5
MIN_SHARE = 0.005
"""A word of K- weak is in so many of the others that K+ keeps."""
MIN_RECALL = 0.95
FOLDS = 10

Rows = NDArray[np.bool_]


class Pool(NamedTuple):
    """The keywords that are chosen from; the first ``published`` of K+ are in published lists."""

    plus: list[Keyword]
    published: int
    minus: list[Keyword]


class Table(NamedTuple):
    """How often each commit (a row) has each keyword of the pool (a column)."""

    plus: NDArray[np.int16]
    minus: NDArray[np.int16]
    candidate: Rows
    repository: NDArray[np.str_]
    weight: NDArray[np.float64]
    """Of a commit that is no candidate: the others of each repository weigh 1 together."""


class Setting(NamedTuple):
    general_lift: float
    minus_lift: float


SETTINGS = list(itertools.starmap(Setting, itertools.product((1.5, 1.75, 2.0, 2.25), (4, 6))))
"""With a greater ``minus_lift`` K- weak would be empty, and the ratio of stage 1 without effect."""


class Choice(NamedTuple):
    """Columns of the pool."""

    strong_plus: list[int]
    weak_plus: list[int]
    weak_minus: list[int]


class Score(NamedTuple):
    recall: float
    """Share of the candidates that are kept."""
    others: float
    """Share of the other commits that are kept, mean over repositories."""
    pooled: float
    """The same over all commits."""


def read_pool() -> Pool:
    data = tomli.loads(Path(__file__).with_name("candidates.toml").read_text("utf-8"))
    plus = [parse_keyword(text) for text in [*data["published"], *data["general"]]]
    return Pool(plus, len(data["published"]), list(map(parse_keyword, data["minus"])))


def select_commits(commits: Sequence[Commit]) -> list[Commit]:
    """Leave out all but the first commit with a text in a repository."""
    seen: set[tuple[str, str]] = set()
    selected = []
    for commit in sorted(commits, key=lambda each: not each.candidate):
        key = commit.repository, pull_request_text(commit.message)
        if commit.candidate or key not in seen:
            selected.append(commit)
        seen.add(key)
    return selected


def make_table(commits: Sequence[Commit], pool: Pool) -> Table:
    texts = [fold_case(pull_request_text(commit.message)) for commit in commits]
    others = Counter(commit.repository for commit in commits if not commit.candidate)
    return Table(
        count_each(texts, pool.plus),
        count_each(texts, pool.minus),
        np.array([commit.candidate for commit in commits]),
        np.array([commit.repository for commit in commits]),
        np.array([0.0 if commit.candidate else 1 / others[commit.repository] for commit in commits]),
    )


def count_each(texts: Sequence[str], keywords: Sequence[Keyword]) -> NDArray[np.int16]:
    regexes = [re.compile(keyword.pattern, re.ASCII) for keyword in keywords]
    single = [i for i, keyword in enumerate(keywords) if keyword.text.rstrip("~*").isalnum()]
    rest = [i for i in range(len(keywords)) if i not in single]
    columns: dict[str, list[int]] = {}
    table = np.zeros((len(texts), len(keywords)), np.int16)
    for row, text in zip(table, texts, strict=True):
        for word in re.findall(r"\w+", text, re.ASCII):
            if word not in columns:
                columns[word] = [i for i in single if regexes[i].fullmatch(word)]
            row[columns[word]] += 1
        for i in rest:
            row[i] = len(regexes[i].findall(text))
    return table


def choose(table: Table, pool: Pool, train: Rows, setting: Setting) -> Choice:
    """Choose on the rows ``train`` alone."""
    positive = train & table.candidate
    count = positive.sum()
    strong_minus = [i for i, keyword in enumerate(pool.minus) if keyword.text in STRONG_MINUS]
    weight = table.weight * train * (table.minus[:, strong_minus].sum(1) == 0)
    lift = ((table.plus[positive] > 0).sum(0) + 1) / (count * share_with(table.plus, weight) + 1 / 3)
    needed = [PUBLISHED_LIFT] * pool.published + [setting.general_lift] * (len(pool.plus) - pool.published)
    names = {keyword.text: i for i, keyword in enumerate(pool.plus)}
    named = names[STRONG_PLUS], names[WEAK_PLUS]
    plus = [i for i, bound in enumerate(needed) if lift[i] >= bound or i in named]
    strong = [
        i for i in plus if (i < pool.published and lift[i] >= STRONG_LIFT and i != named[1]) or i == named[0]
    ]
    weight = weight * (table.plus[:, plus].sum(1) > 0)
    share = share_with(table.minus, weight)
    inverse = share / (((table.minus[positive] > 0).sum(0) + 0.5) / (count + 2))
    weak_minus = [
        i
        for i, value in enumerate(inverse)
        if i not in strong_minus and value >= setting.minus_lift and share[i] >= MIN_SHARE
    ]
    return Choice(strong, [i for i in plus if i not in strong], weak_minus)


def share_with(counts: NDArray[np.int16], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    share: NDArray[np.float64] = weight @ (counts > 0) / weight.sum()
    return share


def passing_rows(table: Table, pool: Pool, choice: Choice) -> Rows:
    """Return the rows that pass the conditions of stage 1."""
    strong_minus = [i for i, keyword in enumerate(pool.minus) if keyword.text in STRONG_MINUS]
    plus = table.plus[:, choice.strong_plus + choice.weak_plus].sum(1)
    weak_minus = table.minus[:, choice.weak_minus].sum(1)
    passing: Rows = (table.minus[:, strong_minus].sum(1) == 0) & (plus >= 1) & (plus >= 2 * weak_minus)
    return passing


def measure(table: Table, passing: Rows, rows: Rows) -> Score:
    others = rows & ~table.candidate
    weight = table.weight * rows
    return Score(
        float(passing[rows & table.candidate].mean()),
        float((weight * passing).sum() / weight.sum()),
        float(passing[others].mean()),
    )


def mean_score(scores: Sequence[Score]) -> Score:
    return Score(*(float(np.mean(values)) for values in zip(*scores, strict=True)))


def split(table: Table, rows: Rows, seed: int) -> list[Rows]:
    """Return folds of ``rows``: each repository is in one of them."""
    names = np.unique(table.repository[rows])
    np.random.default_rng(seed).shuffle(names)
    return [rows & np.isin(table.repository, names[i::FOLDS]) for i in range(FOLDS)]


def cross_validate(table: Table, pool: Pool, rows: Rows, setting: Setting, seed: int) -> Score:
    """Choose on nine folds, measure on the tenth, and so on."""
    passing = np.zeros(len(rows), bool)
    for fold in split(table, rows, seed):
        passing |= fold & passing_rows(table, pool, choose(table, pool, rows & ~fold, setting))
    return measure(table, passing, rows)


def choose_setting(table: Table, pool: Pool, rows: Rows, seeds: Sequence[int]) -> Setting:
    """Return the setting that keeps fewest others among those whose recall is enough in cross-validation."""
    scores = {
        setting: mean_score([cross_validate(table, pool, rows, setting, seed) for seed in seeds])
        for setting in SETTINGS
    }
    enough = {setting: score for setting, score in scores.items() if score.recall >= MIN_RECALL}
    if not enough:
        return max(scores, key=lambda setting: scores[setting].recall)
    return min(enough, key=lambda setting: enough[setting].others)
