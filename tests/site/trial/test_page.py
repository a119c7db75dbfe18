"""The page of a trial: its numbers, what is hostile or missing in its files, and the data beside it."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codetaste.results.read import read_results
from codetaste.site.build import open_site
from codetaste.site.site import Site, trial_folder
from codetaste.site.trial.facts import trial_facts
from codetaste.site.trial.page import trial_files
from support.site.hostile import harmful_parts, write_hostile_run
from support.site.results import site_texts
from support.site.synthetic import Size, write_results


def written(site: Site) -> dict[str, bytes]:
    """Return the content of every file of all trials' pages, by address."""
    return {file.address: file.make() for whole in trial_files(site) for file in whole.with_parts()}


def received(script: bytes) -> Any:
    """Return what a data script hands over."""
    return json.loads(f"[{script.decode('ascii')[len('codetaste.receive(') : -len(');') - 1]}]")[1]


def unpacked(script: bytes) -> bytes:
    return gzip.decompress(b64decode(received(script)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("made")
    _, run = write_results(folder, Size(instances=2, agents=2, settings=2))
    return open_site(read_results([run]), "made")


@pytest.fixture(scope="module")
def files(site: Site) -> dict[str, bytes]:
    return written(site)


def test_scores_are_those_of_the_report(site: Site, files: dict[str, bytes]) -> None:
    shown = 0
    for trial in site.trials:
        page = files[f"{trial_folder(trial)}/index.html"].decode()
        for name in ("ifr", "prec"):
            value = getattr(trial.scores, name)
            cell = re.search(rf'id="score-{name}">([^<]*)<', page)
            assert cell is not None
            assert cell[1] == ("–" if value is None else f"{value * 100:.1f}")
            shown += value is not None
    assert shown


def test_facts_have_their_units_where_they_are_written(site: Site) -> None:
    [trial, *_] = site.trials
    metadata = replace(trial.metadata, cost_usd=0.114, time_s=1.5, turns=3)
    facts = dict(
        trial_facts(replace(trial, metadata=metadata, scores=replace(trial.scores, flagged_rules=1)))
    )
    assert (facts["Cost"], facts["Time"], facts["Turns"]) == ("$0.11", "0.03 min", "3")
    assert facts["Flags"] == "1 rule satisfied by code without effect"


def test_marks_are_counted_as_the_evaluation_counted_them(site: Site, files: dict[str, bytes]) -> None:
    scored = 0
    for trial in site.trials:
        scores_file = trial.folder / "evaluation/scores.json"
        hits = json.loads(scores_file.read_text()).get("hits") if scores_file.is_file() else None
        if hits is None:
            continue
        data = json.loads(files[f"{trial_folder(trial)}/trial.json"])
        assert sum(file["added_covered"] for file in data["files"]) == hits["hits_added"]
        scored += 1
    assert scored


def test_the_patch_is_beside_the_page_as_it_was(site: Site, files: dict[str, bytes]) -> None:
    for trial in site.trials:
        patch = trial.folder / "prediction.diff"
        content = patch.read_bytes() if patch.is_file() else b""
        folder = trial_folder(trial)
        pieces = b"".join(
            unpacked(content)
            for address, content in sorted(files.items())
            if address.startswith(f"{folder}/patch-")
        )
        assert pieces == content
        if content:
            assert gzip.decompress(files[f"{folder}/prediction.diff.gz"]) == content


def test_the_transcript_is_beside_the_page_with_every_event(site: Site, files: dict[str, bytes]) -> None:
    events = 0
    for trial in site.trials:
        folder = trial_folder(trial)
        for number, conversation in enumerate(received(files[f"{folder}/transcript.js"])):
            for piece, (first, count, _) in enumerate(conversation["pieces"]):
                found = json.loads(unpacked(files[f"{folder}/transcript-{number}-{piece}.js"]))
                assert [event["n"] for event in found] == list(range(first, first + count))
                events += count
    assert events


def test_the_same_run_makes_the_same_files(site: Site, files: dict[str, bytes]) -> None:
    assert written(open_site(read_results(site.results.roots), "made")) == files


def test_addresses_of_trials_differ_and_each_is_written_once(site: Site) -> None:
    addresses = [file.address for whole in trial_files(site) for file in whole.with_parts()]
    assert len(addresses) == len(set(addresses))


def test_a_hostile_trial_is_text(tmp_path: Path) -> None:
    site = open_site(read_results([write_hostile_run(tmp_path)]), "<b>hostile</b>")
    files = written(site)
    (page,) = (content.decode() for address, content in files.items() if address.endswith("index.html"))
    assert harmful_parts(page) == []
    assert "alert(1)" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", page)
    assert "⟨U+202E⟩" in page
    for address, content in files.items():
        if address.endswith(".js"):
            assert content.isascii()
            assert b"<" not in content
            received(content)
        if address.endswith(".json"):
            json.loads(content)


def test_a_trial_of_which_files_are_missing_or_half_copied_has_a_page(tmp_path: Path) -> None:
    run = write_hostile_run(tmp_path)
    paths = sorted(path for path in run.rglob("*") if path.is_file())
    for path in paths:
        content = path.read_bytes()
        for changed in (content[: len(content) // 2], b"", b"\xff\x00[[["):
            path.write_bytes(changed)
            assert any(address.endswith("index.html") for address in written(_site(run)))
        path.unlink()
        written(_site(run))
        path.write_bytes(content)


def _site(run: Path) -> Site:
    return open_site(read_results([run]), "half")


def test_a_patch_that_is_too_long_is_cut_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetaste.site.trial.patch.marked_patch.MAX_READ_BYTES", 100_000)
    run = write_hostile_run(tmp_path)
    path = next(run.rglob("prediction.diff"))
    path.write_bytes(path.read_bytes() + b"x" * 10_000_000)
    files = written(_site(run))
    page = next(content.decode() for address, content in files.items() if address.endswith("index.html"))
    size = f"{path.stat().st_size:,}"
    assert f"it has {size} bytes; more than 100,000 are not shown line by line" in page
    assert len(page) < 200_000


def test_a_trial_that_is_evaluated_later_has_another_page(tmp_path: Path) -> None:
    run = write_hostile_run(tmp_path)
    evaluation = next(run.rglob("evaluation"))
    hidden = evaluation.rename(evaluation.with_name("later"))
    assert b"No scan of this patch is recorded" in b"".join(written(_site(run)).values())
    hidden.rename(evaluation)
    (evaluation / "scores.json").write_text("{}")
    assert b"No scan of this patch is recorded" not in b"".join(written(_site(run)).values())


def test_thousands_of_rules_are_cut_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetaste.site.trial.page._MAX_RULE_ROWS", 1)
    made = written(_site(write_hostile_run(tmp_path)))
    (page,) = (content.decode() for name, content in made.items() if name.endswith("/index.html"))
    assert page.count('<tr id="rule-') == 1
    assert re.search(r"[1-9] more rules are in trial\.json", page)


def test_rules_with_one_id_in_both_directions_have_a_row_and_an_address_each(tmp_path: Path) -> None:
    run = write_hostile_run(tmp_path)
    evaluation = next(run.rglob("agent/evaluation"))
    for sign in ("positive", "negative"):
        sarif = (evaluation / f"rules_{sign}.sarif").read_text().replace(f"rules.{sign}", "rules.both")
        (evaluation / f"rules_{sign}.sarif").write_text(sarif)
        (evaluation / f"rules_{sign}.yml").write_text(
            "rules:\n- id: both\n  languages: [python]\n  pattern: old\n  severity: INFO\n"
            f"  message: {sign}\n"
        )
    (evaluation / "scores.json").write_text('{"unmet_additive": [], "unmet_reductive": ["both"]}')
    files = written(_site(run))
    page = next(content.decode() for address, content in files.items() if address.endswith("/index.html"))
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(set(ids)) == len(ids)
    data = next(received(content) for address, content in files.items() if address.endswith("/data.js"))
    rules = {rule["anchor"]: rule for rule in data["rules"] if rule["id"] == "both"}
    assert {anchor: rule["outcome"] for anchor, rule in rules.items()} == {
        "rule-both": "satisfied",
        "rule-both.reductive": "not satisfied",
    }
    texts = next(received(content) for address, content in files.items() if "/rules-" in address)
    assert {anchor: text.split()[-1] for anchor, text in texts.items()} == {
        "rule-both": "positive",
        "rule-both.reductive": "negative",
    }
    marks = {mark: data["patch"]["files"][0][mark] for mark in "al" if mark in data["patch"]["files"][0]}
    named = {mark: {data["rules"][rule]["direction"] for *_, rule in spans} for mark, spans in marks.items()}
    assert named == {"a": {"additive"}, "l": {"reductive"}}
    assert re.search(r'href="#rule-both">▲ additive: both<', page)
    assert re.search(r'href="#rule-both\.reductive">◆ left: both<', page)
    (evaluation / "scores.json").unlink()
    texts = site_texts(_site(run))
    (instance,) = (
        page for address, page in texts.items() if re.fullmatch("instances/.*/index.html", address)
    )
    for anchor, text in (("rule-both", "positive"), ("rule-both.reductive", "negative")):
        assert re.search(f'<tr id="{re.escape(anchor)}">.*\n(.*\n){{3}}  message: {text}<', instance)
        assert f'#{anchor}"' in texts["rules/index.html"]
        assert f"#{anchor}," in texts["rules/rules.csv"]
        assert f'#{anchor}"' in texts["search/documents.js"]
