"""The two averages of the scores of a model's answers."""

from __future__ import annotations

from codetaste.codebleu.average import CodeBleuAverages, average_codebleu


def test_an_answer_without_score_counts_as_zero_among_all() -> None:
    answers = [(0.75, True), (0.25, True), (0.5, False), (None, False)]
    averages = average_codebleu(answers)
    assert averages == CodeBleuAverages(1.5 / 4, 1 / 2, 4, 2)


def test_there_is_no_mean_of_nothing() -> None:
    assert average_codebleu([]) == CodeBleuAverages(None, None, 0, 0)
    assert average_codebleu([(0.5, False)]) == CodeBleuAverages(0.5, None, 1, 0)
