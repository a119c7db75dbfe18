"""CodeBLEU of whole texts: its range, its limits, and where it differs from what was published."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.codebleu import limits
from codetaste.codebleu.limits import MAX_BYTES, MAX_OPEN_ANGLES, CodeTooLarge
from codetaste.codebleu.score import CodeBleu, codebleu

METHOD = """
/** Adds up. */
public int sum(int[] values) {
    int total = 0; // starts here
    for (int value : values) {
        if (value > 0) {
            total = total + value;
        }
    }
    return total;
}
"""
GETTER = "public boolean isEmpty() { return true; }"
pieces = st.sampled_from(
    [*"(){};=+.,<>'\"\\/*", "int ", "a ", "if ", "for ", "é", "\r\n", "\n", "日", "1", "//"]
)
texts = st.lists(pieces, max_size=40).map("".join)


def parts(score: CodeBleu) -> list[float]:
    return [
        each
        for each in (score.ngram, score.weighted_ngram, score.syntax, score.data_flow)
        if each is not None
    ]


def test_equal_code_with_data_flow_has_one_in_each_part() -> None:
    score = codebleu(METHOD, METHOD)
    assert (*parts(score), score.score) == pytest.approx((1, 1, 1, 1, 1), abs=1e-12)
    assert codebleu(METHOD, METHOD, as_published=True).score == pytest.approx(1, abs=1e-12)


@given(texts, texts, st.booleans())
@settings(max_examples=200)
def test_every_part_is_between_zero_and_one(candidate: str, reference: str, as_published: bool) -> None:
    score = codebleu(candidate, reference, as_published=as_published)
    assert all(0 <= each <= 1 + 1e-12 for each in (*parts(score), score.score))
    assert score == codebleu(candidate, reference, as_published=as_published)


@given(texts)
def test_no_candidate_is_nearer_than_the_reference_itself(candidate: str) -> None:
    score, own = codebleu(candidate, METHOD), codebleu(METHOD, METHOD)
    assert all(each <= best + 1e-12 for each, best in zip(parts(score), parts(own), strict=True))


@pytest.mark.parametrize("empty", ["", " \r\n\t "])
def test_an_empty_answer_has_zero_and_as_published_a_quarter(empty: str) -> None:
    assert codebleu(empty, METHOD) == CodeBleu(0, 0, 0, 0, 0)
    assert codebleu(empty, METHOD, as_published=True) == CodeBleu(0, 0, 0, 0, 0.25)
    assert codebleu(METHOD, empty).score == codebleu(empty, empty).score == 0
    assert codebleu(METHOD, empty, as_published=True).score == 0.25


def test_a_candidate_without_any_of_the_data_flow_gets_nothing_for_it() -> None:
    candidate = "public int sum(int[] values) { return 0; }"
    score, published = codebleu(candidate, METHOD), codebleu(candidate, METHOD, as_published=True)
    assert score.data_flow == published.data_flow == 0
    assert published.score == pytest.approx(score.score + 0.25)


def test_without_data_flow_in_the_reference_the_other_parts_count() -> None:
    score, published = codebleu("return true;", GETTER), codebleu("return true;", GETTER, as_published=True)
    assert score.data_flow is None
    assert score.score == pytest.approx((score.ngram + score.weighted_ngram + score.syntax) / 3)
    assert published.data_flow == 0
    assert published.score == pytest.approx(0.75 * score.score + 0.25)
    assert codebleu(GETTER, GETTER).score == pytest.approx(1)
    assert codebleu(GETTER, GETTER, weights=(0, 0, 0, 1)).score == 0


def test_characters_beyond_ascii_do_not_shift_the_data_flow() -> None:
    reference = 'int f(int a) { String s = "größe"; use(s, a); a = a + 1; return a; }'
    ascii_only = reference.replace("größe", "grosse")
    assert codebleu(ascii_only, reference).data_flow == codebleu(ascii_only, ascii_only).data_flow == 1
    published = codebleu(ascii_only, reference, as_published=True)
    assert published.data_flow is not None
    assert published.data_flow < 1


def test_line_ends_and_comments_count_only_as_words() -> None:
    windows = codebleu(METHOD.replace("\n", "\r\n"), METHOD)
    assert parts(windows) == pytest.approx([1, 1, 1, 1])
    bare = codebleu(METHOD.replace("// starts here", "").replace("/** Adds up. */", ""), METHOD)
    assert (bare.syntax, bare.data_flow) == (1, 1)
    assert bare.ngram < 1


def test_faults_of_syntax_are_compared_as_they_are() -> None:
    broken = METHOD.replace("total = 0", "total = ")
    assert codebleu(broken, broken).score == pytest.approx(1)
    assert 0.3 < codebleu(METHOD.replace("}", ""), METHOD).score < 1
    assert codebleu("This method is fine.", METHOD).score < 0.1


def test_weights_choose_the_parts() -> None:
    candidate = METHOD.replace("total + value", "value")
    score = codebleu(candidate, METHOD)
    assert score.data_flow is not None
    assert codebleu(candidate, METHOD, weights=(0, 0, 1, 0)).score == score.syntax
    half = codebleu(candidate, METHOD, weights=(0.5, 0, 0, 0.5)).score
    assert half == pytest.approx((score.ngram + score.data_flow) / 2)


def test_several_references_are_counted_together() -> None:
    both = codebleu(METHOD, [METHOD, GETTER])
    assert both.ngram == pytest.approx(1)
    assert codebleu(METHOD, [GETTER]) == codebleu(METHOD, GETTER)
    assert codebleu(METHOD, GETTER).syntax < both.syntax < 1
    assert both.data_flow == 1


@pytest.mark.parametrize("weights", [(1, 1, 1), (0, 0, 0, 0), (1, 1, 1, -1), (float("nan"), 1, 1, 1)])
def test_impossible_weights_are_refused(weights: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="four numbers"):
        codebleu(METHOD, METHOD, weights=weights)


def test_other_languages_and_no_reference_are_refused() -> None:
    with pytest.raises(ValueError, match="only of 'java'"):
        codebleu(METHOD, METHOD, "python")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a reference"):
        codebleu(METHOD, [])


def test_a_text_of_megabytes_is_refused_with_its_name() -> None:
    with pytest.raises(CodeTooLarge, match="the candidate has no CodeBLEU: it has 5,000,000 bytes"):
        codebleu("x" * 5_000_000, METHOD)
    with pytest.raises(CodeTooLarge, match="reference 2 has no CodeBLEU: it has 250,001 bytes"):
        codebleu(METHOD, [METHOD, "é" * (MAX_BYTES // 2) + "x"])


def test_what_the_parser_cannot_bear_is_refused() -> None:
    few = "a <" * MAX_OPEN_ANGLES
    assert codebleu(few, METHOD).score < 0.2
    with pytest.raises(CodeTooLarge, match="more than 1,000 `<`"):
        codebleu(few + "/**/ b <", METHOD)


def test_loops_nested_without_measure_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetaste.codebleu.data_flow.MAX_STEPS", 20_000)
    assert limits.MAX_STEPS > 20_000

    def nested(depth: int) -> str:
        loops = (f"for (int i{level} = 0; i{level} < a; i{level}++) " for level in range(depth))
        return f"void f(int a) {{ {''.join(loops)} a = a + 1; }}"

    assert codebleu(nested(5), METHOD).score > 0
    with pytest.raises(CodeTooLarge, match="more than 20,000 steps"):
        codebleu(nested(20), METHOD)


def test_code_may_be_nested_to_any_depth() -> None:
    depth = 20_000
    deep = f"int f() {{ int a = b; return {'(' * depth}a{')' * depth}; }}"
    score = codebleu(deep, METHOD)
    assert 0 < score.score < 0.3
    assert codebleu("(" * depth, METHOD).score < 0.1


def test_any_characters_can_be_scored() -> None:
    for text in ("\ud800 int a;", "int \0 a;", "\ufeffint a = '\ud83d';", "int \x85 a \u2028;", "\r"):
        assert 0 <= codebleu(text, METHOD).score <= codebleu(METHOD, text).score + 1
