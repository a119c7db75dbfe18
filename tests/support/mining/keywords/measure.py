"""Choose the keyword sets on clones and measure them: the figures of ``docs/reproduction.md``.

``PYTHONPATH=tests .venv/bin/python -m support.mining.keywords.measure COMMITS.jsonl [UNSEEN.jsonl]`` prints
the chosen sets, their recall and selectivity in cross-validation over repositories, and those of the sets in
the package, also on the commits in UNSEEN.jsonl, which nothing is chosen on. ``commits.py`` makes both files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from codetaste.mining.keywords.count import KeywordCounts, count_keywords, keyword_results
from codetaste.mining.keywords.message import MERGE_LINE, pull_request_text
from codetaste.mining.keywords.sets import load_keyword_sets
from support.mining.keywords.commits import Commit, load_commits
from support.mining.keywords.selection import (
    Choice,
    Pool,
    Rows,
    Score,
    Setting,
    Table,
    choose,
    choose_setting,
    cross_validate,
    make_table,
    mean_score,
    measure,
    passing_rows,
    read_pool,
    select_commits,
    split,
)

SEEDS = range(5)
FIRST_PULL_REQUEST_YEAR = "2023"
"""Candidates before it come from GitHub Activity Data, later ones from GitHub Archive."""


def show(name: str, score: Score) -> None:
    cells = " | ".join(f"{100 * value:.1f} %" for value in score)
    sys.stdout.write(f"| {name} | {cells} |\n")


def show_choice(pool: Pool, choice: Choice) -> None:
    for name, columns, keywords in [
        ("strong_plus", choice.strong_plus, pool.plus),
        ("weak_plus", choice.weak_plus, pool.plus),
        ("weak_minus", choice.weak_minus, pool.minus),
    ]:
        sys.stdout.write(f"{name}: {[keywords[i].text for i in columns]}\n")


def nested_score(table: Table, pool: Pool, rows: Rows, seed: int) -> Score:
    """Cross-validate with the setting, too, chosen on the nine folds alone."""
    passing = np.zeros(len(rows), bool)
    for fold in split(table, rows, seed):
        train = rows & ~fold
        setting = choose_setting(table, pool, train, [seed + 1])
        passing |= fold & passing_rows(table, pool, choose(table, pool, train, setting))
    return measure(table, passing, rows)


def apply_package_sets(
    commits: Sequence[Commit], text_of: Callable[[str], str] = pull_request_text
) -> tuple[Rows, list[KeywordCounts]]:
    """Return which commits the sets of the package keep, and the counts."""
    sets = load_keyword_sets()
    counts = [count_keywords(text_of(commit.message), sets) for commit in commits]
    passing = np.array([all(result.passed for result in keyword_results(each)) for each in counts])
    return passing, counts


def order_lines(table: Table, passing: Rows, counts: Sequence[KeywordCounts]) -> Iterator[str]:
    """Yield how much of the order of stage 1, which starts with the counts, holds the passing candidates."""
    keys = [(each.strong_plus, each.weak_plus) for each in counts]
    strong = np.array([each.strong_plus > 0 for each in counts])
    yield f"with a word of K+ strong: {measure(table, passing & strong, np.ones(len(passing), bool))}\n"
    ranks = sorted((i for i in range(len(passing)) if passing[i]), key=lambda i: keys[i], reverse=True)
    found = np.cumsum([table.candidate[i] for i in ranks])
    for part in (0.1, 0.25, 0.5):
        first = found[int(part * len(ranks)) - 1]
        yield f"in the first {part:.0%} of those that pass: {first} of {found[-1]} candidates\n"


def show_package(commits: Sequence[Commit], table: Table) -> None:
    """Print what the sets of the package keep, also of parts of the commits, and which candidates not."""
    passing, counts = apply_package_sets(commits)
    early = np.array([commit.date < FIRST_PULL_REQUEST_YEAR for commit in commits])
    merge = np.array([commit.merge for commit in commits])
    pull_request = np.array([bool(re.match(MERGE_LINE, commit.message)) for commit in commits])
    parts = {
        "package": early | ~early,
        "package, before 2023": early,
        "package, from 2023": ~early,
        "package, no merges": ~merge,
        "package, merges of pull requests": merge & pull_request,
        "package, other merges": merge & ~pull_request,
    }
    for name, part in parts.items():
        candidates = part & table.candidate
        if not candidates.any():
            continue
        show(f"{name}: {(candidates & passing).sum()} of {candidates.sum()}", measure(table, passing, part))
    whole = apply_package_sets(commits, str)[0]
    show(f"package, whole message: {(whole & table.candidate).sum()}", measure(table, whole, early | ~early))
    sys.stdout.writelines(order_lines(table, passing, counts))
    lost = [
        commit for commit, passes in zip(commits, passing, strict=True) if commit.candidate and not passes
    ]
    sys.stdout.writelines(f"lost: {each.repository}@{each.hash[:10]}\n" for each in lost)


def load_table(path: Path, pool: Pool) -> tuple[list[Commit], Table]:
    """Return the commits of a file without repeated texts, and their keywords."""
    loaded = load_commits(path)
    commits = select_commits(loaded)
    table = make_table(commits, pool)
    sys.stdout.write(
        f"{path.name}: {len(loaded)} large commits, {len(commits)} without repeated texts; "
        f"{len(np.unique(table.repository))} repositories, {table.candidate.sum()} candidates\n"
    )
    return commits, table


def main(path: Path, unseen: Iterable[Path]) -> None:
    pool = read_pool()
    for each in unseen:
        show_package(*load_table(each, pool))
    commits, table = load_table(path, pool)
    show_package(commits, table)
    rows = np.ones(len(commits), bool)
    setting = choose_setting(table, pool, rows, SEEDS)
    choice = choose(table, pool, rows, setting)
    sys.stdout.write(f"{setting}\n")
    show_choice(pool, choice)
    for general_lift in (1.5, 2.25, 3.0, np.inf):
        other = Setting(general_lift, setting.minus_lift)
        show(f"held out, {other}", mean_score([cross_validate(table, pool, rows, other, s) for s in SEEDS]))
    show("held out", mean_score([cross_validate(table, pool, rows, setting, seed) for seed in SEEDS]))
    show("held out, setting chosen too", nested_score(table, pool, rows, 0))
    show("all data", measure(table, passing_rows(table, pool, choice), rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), map(Path, sys.argv[2:]))
