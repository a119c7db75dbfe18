"""``TrialResult``: one row for each trial, of CodeTaste and of SWE-Refactor."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.results.rows.schema import SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One attempt of an agent at an instance.

    Columns that exist in one benchmark alone are None in the other one. Fractions are 0 to 1.

    Attributes:
        schema_version: version of the schema of rows.
        run: name of the run; its path if several runs have one name.
        folder: folder of its files, relative to that of the run; None if it has none.
        benchmark: "codetaste" or "swe-refactor".
        agent: what is compared: the agent's id; in SWE-Refactor strategy and model.
        strategy: strategy of SWE-Refactor, such as "rag".
        model: name of the model.
        harness: name of the agent's program, "codetaste" for the own loop.
        harness_version: its version.
        source: program that wrote the files: "codetaste" or "published".
        scripted: whether the model is scripted, so that costs are not real.
        pseudo: whether it is the golden or the null agent, which enter no mean of agents.
        track: "instructed" or "open".
        mode: "direct", "plan" or "multiplan".
        instance: id of the instance.
        repository: "owner/repo"; in SWE-Refactor the project.
        language: language of the instance.
        category: category of the instance; in SWE-Refactor the type of the refactoring.
        attempt: number of the attempt, from 1.
        outcome: what became of it: one of the outcomes, which are the same for both benchmarks.
        status: in CodeTaste "scored", "not_scored", "failed", "infrastructure", "refused", "does_not_apply",
            "partial" or "unreadable"; in SWE-Refactor the outcome of its own tables, such as "tests_fail".
        reason: why it ended like that, or why a value is missing, in one line.
        finish_reason: how the agent's run ended, as published: "success", "timeout", "budget_exceeded", …
        cause: cause of the fault that ended it, from the journal, such as "rate_limit".
        passed: PASS: no test fails that may not, and enough pass.
        alignment: A = PASS x IFR.
        alignment_plus: A⁺ = PASS x IFR⁺.
        alignment_minus: A⁻ = PASS x IFR⁻.
        strict_success: 1 if PASS and IFR are 1, else 0.
        f1: harmonic mean of PREC and IFR, 0 without PASS.
        ifr: share of the rules that are satisfied.
        ifr_plus: share of the additive rules that match.
        ifr_minus: share of the reductive rules that do not match.
        ifr_unflagged: IFR as if flagged rules did not match.
        prec: share of the changed lines that rules match.
        prec_plus: share of the added lines that additive rules match.
        prec_minus: share of the removed lines that reductive rules match.
        strict_passed: PASS as the strict tables average it: 0 of a trial that failed.
        strict_alignment: A as the strict tables average it.
        strict_alignment_plus: A⁺ as the strict tables average it.
        strict_alignment_minus: A⁻ as the strict tables average it.
        strict_strict_success: strict success as the strict tables average it.
        strict_f1: F₁ as the strict tables average it.
        strict_ifr: IFR as the strict tables average it.
        strict_ifr_plus: IFR⁺ as the strict tables average it.
        strict_ifr_minus: IFR⁻ as the strict tables average it.
        strict_prec: PREC as the strict tables average it.
        strict_prec_plus: PREC⁺ as the strict tables average it.
        strict_prec_minus: PREC⁻ as the strict tables average it.
        published_passed: PASS as the published harness averages it; None if it drops the trial.
        published_alignment: A as the published harness averages it.
        published_alignment_plus: A⁺ as the published harness averages it.
        published_alignment_minus: A⁻ as the published harness averages it.
        published_strict_success: strict success as the published harness averages it.
        published_f1: F₁ as the published harness averages it.
        published_ifr: IFR as the published harness averages it.
        published_ifr_plus: IFR⁺ as the published harness averages it.
        published_ifr_minus: IFR⁻ as the published harness averages it.
        published_prec: PREC as the published harness averages it.
        published_prec_plus: PREC⁺ as the published harness averages it.
        published_prec_minus: PREC⁻ as the published harness averages it.
        published_cost_usd: cost as the published harness averages it, US dollars.
        additive_rules: number of additive rules.
        reductive_rules: number of reductive rules.
        flagged_rules: additive rules that match only code without effect.
        edited: number of lines that it added and removed.
        added: lines that it added, with the published exclusions.
        removed: lines that it removed, with the published exclusions.
        tests_passed: tests that passed.
        tests_failed: tests that failed.
        tests_skipped: tests that did not run.
        tests_total: all tests of the run.
        tests_error: why the test run gave no counts.
        tests_min_passed: least number of passed tests for PASS.
        tests_max_failed: greatest number of failed tests for PASS.
        test_flags: signs that something else than the code made tests pass.
        test_flag_kinds: kinds of these signs.
        refactorings_human: refactorings of the human, by RefactoringMiner.
        refactorings_agent: refactorings of the agent.
        refactorings_agreed: refactorings of both, equal in type and element.
        refactorings_same_result: of these, with the same new element.
        refactorings_recall: share of the human's that the agent did, too.
        refactorings_precision: share of the agent's that the human did, too.
        refactorings_purity: share of the agent's judged ones that are pure.
        compiles: whether the answer compiles.
        compiles_and_passes: whether it compiles and no test fails because of it.
        verified: whether it is the intended refactoring on the intended method, and nothing else.
        published_check: whether the type occurs in the edited files, which is the published check.
        codebleu: CodeBLEU beside the developers' code.
        codebleu_ngram: its part by words.
        codebleu_weighted_ngram: its part by words in which keywords count more.
        codebleu_syntax: its part by syntax.
        codebleu_data_flow: its part by data flow; None if the developers' code has none.
        failure: category of the failure, such as "missing symbol".
        turns: replies of the model.
        tool_calls: calls of tools.
        refusals: requests that the model, or a policy or filter of its provider, refused; missing for none.
        ran_tests: whether the agent ran tests at least once.
        test_runs: commands of the agent that run tests.
        made_bulk_edits: whether the agent replaced text in bulk at least once.
        bulk_edits: commands of the agent that replace text in bulk.
        cost_usd: cost of all steps, US dollars; None if one of them is unknown.
        known_cost_usd: sum of the known costs, US dollars.
        settled_usd: measured cost of its model calls, from the journal.
        unknown_usd: reserved for model calls whose cost is unknown, from the journal.
        calls: model calls that were sent, from the journal.
        tokens_input: tokens of prompts that no cache had.
        tokens_cache_read: tokens of prompts read from a cache.
        tokens_cache_write: tokens of prompts written to a cache.
        tokens_output: tokens of replies, reasoning included.
        tokens_reasoning: tokens of reasoning.
        time_s: seconds from its start to its end, all steps together.
        started_at: when its first job began, ISO 8601, UTC, from the journal.
        ended_at: when its last job ended, from the journal.
        queued_s: seconds that its jobs were queued, for jobs that they need and for resources.
        retry_s: seconds between attempts of its jobs that failed and the next ones.
        working_s: seconds in which its jobs ran and waited for nothing.
        waiting_s: seconds in which its jobs ran and waited, as for a rate limit.
        scored_by: programs that made the scores.
        rules_sha256: hash of the rules that it was scored with.
        notes: remarks about its scores.
        failure_labels: failure labels that agents gave it (CodeTaste §4.4), in words, each once.
    """

    schema_version: int = SCHEMA_VERSION
    run: str
    folder: str | None
    benchmark: str
    agent: str
    strategy: str | None = None
    model: str | None
    harness: str | None = None
    harness_version: str | None = None
    source: str | None = None
    scripted: bool | None = None
    pseudo: bool = False
    track: str | None = None
    mode: str | None = None
    instance: str
    repository: str | None
    language: str | None
    category: str | None
    attempt: int
    outcome: str
    status: str
    reason: str | None
    finish_reason: str | None = None
    cause: str | None = None
    passed: bool | None = None
    alignment: float | None = None
    alignment_plus: float | None = None
    alignment_minus: float | None = None
    strict_success: float | None = None
    f1: float | None = None
    ifr: float | None = None
    ifr_plus: float | None = None
    ifr_minus: float | None = None
    ifr_unflagged: float | None = None
    prec: float | None = None
    prec_plus: float | None = None
    prec_minus: float | None = None
    strict_passed: float | None = None
    strict_alignment: float | None = None
    strict_alignment_plus: float | None = None
    strict_alignment_minus: float | None = None
    strict_strict_success: float | None = None
    strict_f1: float | None = None
    strict_ifr: float | None = None
    strict_ifr_plus: float | None = None
    strict_ifr_minus: float | None = None
    strict_prec: float | None = None
    strict_prec_plus: float | None = None
    strict_prec_minus: float | None = None
    published_passed: float | None = None
    published_alignment: float | None = None
    published_alignment_plus: float | None = None
    published_alignment_minus: float | None = None
    published_strict_success: float | None = None
    published_f1: float | None = None
    published_ifr: float | None = None
    published_ifr_plus: float | None = None
    published_ifr_minus: float | None = None
    published_prec: float | None = None
    published_prec_plus: float | None = None
    published_prec_minus: float | None = None
    published_cost_usd: float | None = None
    additive_rules: int | None = None
    reductive_rules: int | None = None
    flagged_rules: int | None = None
    edited: int | None = None
    added: int | None = None
    removed: int | None = None
    tests_passed: int | None = None
    tests_failed: int | None = None
    tests_skipped: int | None = None
    tests_total: int | None = None
    tests_error: str | None = None
    tests_min_passed: int | None = None
    tests_max_failed: int | None = None
    test_flags: int | None = None
    test_flag_kinds: tuple[str, ...] = ()
    refactorings_human: int | None = None
    refactorings_agent: int | None = None
    refactorings_agreed: int | None = None
    refactorings_same_result: int | None = None
    refactorings_recall: float | None = None
    refactorings_precision: float | None = None
    refactorings_purity: float | None = None
    compiles: bool | None = None
    compiles_and_passes: bool | None = None
    verified: bool | None = None
    published_check: bool | None = None
    codebleu: float | None = None
    codebleu_ngram: float | None = None
    codebleu_weighted_ngram: float | None = None
    codebleu_syntax: float | None = None
    codebleu_data_flow: float | None = None
    failure: str | None = None
    turns: int | None = None
    tool_calls: int | None = None
    refusals: int | None = None
    ran_tests: bool | None = None
    test_runs: int | None = None
    made_bulk_edits: bool | None = None
    bulk_edits: int | None = None
    cost_usd: float | None = None
    known_cost_usd: float | None = None
    settled_usd: float | None = None
    unknown_usd: float | None = None
    calls: int | None = None
    tokens_input: int | None = None
    tokens_cache_read: int | None = None
    tokens_cache_write: int | None = None
    tokens_output: int | None = None
    tokens_reasoning: int | None = None
    time_s: float | None = None
    started_at: str | None = None
    ended_at: str | None = None
    queued_s: float | None = None
    retry_s: float | None = None
    working_s: float | None = None
    waiting_s: float | None = None
    scored_by: str | None = None
    rules_sha256: str | None = None
    notes: tuple[str, ...] = ()
    failure_labels: tuple[str, ...] = ()
