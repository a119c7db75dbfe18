"""Facts about a benchmark: the counts of Table 1 and the repositories of Table 2, as far as known."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.facts.clones import PatchCounts
from codetaste.benchmark.facts.facts import describe_benchmark
from codetaste.benchmark.facts.licences import recognise
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.instances_csv import format_table
from support.source.release_server import INSTANCES, release_files, write_files

APACHE = """Apache License
                           Version 2.0, January 2004

   TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"""
MIT = """Copyright (c) A. Author

Permission is hereby granted, free of charge, to any person obtaining a copy of this software, to deal in the
Software without restriction, including … THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND"""
BSD2 = """Redistribution and use in source and binary forms, with or without modification, are permitted …
2. Redistributions in binary form must reproduce the above copyright notice"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (APACHE, "Apache-2.0"),
        (MIT, "MIT"),
        (f"# The MIT License\n\n*{MIT}*".replace("\n", "\n// "), "MIT"),
        (BSD2, "BSD-2-Clause"),
        (
            f"{BSD2}\n3. Neither the name of the copyright holder nor the names of its contributors",
            "BSD-3-Clause",
        ),
        ("GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n   Version 2.1, February 1999", "LGPL-2.1"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\n  Version 3, 19 November 2007", "AGPL-3.0"),
        ("Licensed under the Apache License,\n Version 2.0 … except in compliance with it", "Apache-2.0"),
        ("Mozilla Public License Version 2.0\n====", "MPL-2.0"),
        ("Business Source License 1.1\n\nLicensor: x", "BUSL-1.1"),
        ("// SPDX-License-Identifier: EUPL-1.2\n", "EUPL-1.2"),
        ("All rights reserved. Ask our lawyers about the Apache License, Version 2.0.", "unknown"),
        ("", "unknown"),
    ],
)
def test_licence_is_recognised_by_distinctive_words(text: str, name: str) -> None:
    assert recognise(text) == name


def git(folder: Path, *args: str) -> str:
    who = {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **who}
    done = subprocess.run(
        ["git", "-C", str(folder), *args], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    write_files({name: text.encode() for name, text in files.items()}, folder)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


def test_clones_provide_licences_and_golden_patch_sizes(tmp_path: Path, require: Callable[..., None]) -> None:
    require("git")
    clone = tmp_path / "repos/made/one"
    clone.mkdir(parents=True)
    git(clone, "init", "--quiet")
    base = commit(clone, {"COPYING": APACHE, "a.go": "1\n2\n3\n", "b.go": "x\ny\n"})
    golden = commit(clone, {"a.go": "1\n2\n4\n5\n", "c.go": "z\n"})
    rows = (Instance("made", "one", base, golden, None, "api", "go"), INSTANCES[1])
    root = write_files(release_files(rows), tmp_path / "bench")
    facts = describe_benchmark(open_benchmark(root, repos=tmp_path / "repos"))
    one, two = facts.instances
    assert (one.licence, one.golden, one.clone) == ("Apache-2.0", PatchCounts(2, 3, 1), clone / ".git")
    assert (two.licence, two.golden, two.clone) == ("unknown", None, None)
    assert facts.repositories == {"made/one": "Apache-2.0", "made/two": "unknown"}
    assert facts.languages == {"go": 1, "rust": 1}


def test_folder_facts_include_descriptions_rules_tests_and_golden(tmp_path: Path) -> None:
    one = INSTANCES[0].path
    rule = "rules:\n- {id: r, message: m, severity: INFO, languages: [go], pattern: x}\n"
    metadata = b'{"base_metrics": {"passed": 7, "total": 9}, "golden_metrics": {"passed": 8, "total": "8"}}'
    golden = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-1\n+2\n+3\n"
    files = release_files() | {
        f"assets/rules/{one}/rules_positive.yml": rule.encode(),
        f"instance_images/{one}/instance_metadata.json": metadata,
        f"assets/diffs/{one}/golden.diff": golden,
        f"assets/rules/{INSTANCES[1].path}/rules_positive.yml": b"rules: []\n",
        f"assets/rules/{INSTANCES[1].path}/rules_negative.yml": b"\n",
        "golden_reference.csv": f"instance,n_pos,n_neg\n{INSTANCES[1].path},4,5\n".encode(),
    }
    root = write_files(files, tmp_path)
    facts, other = describe_benchmark(open_benchmark(root)).instances
    assert (facts.instructed_bytes, facts.open_bytes) == (3, 4)
    assert (facts.additive_rules, facts.reductive_rules, facts.rules) == (1, None, None)
    assert (facts.tests, facts.golden) == (8, PatchCounts(1, 2, 1))
    assert len(facts.problems) == 1
    assert "rules_negative.yml" in facts.problems[0]
    assert (other.tests, other.golden) == (None, None)
    assert (other.additive_rules, other.reductive_rules, other.problems) == (0, 0, ())


def test_provided_counts_replace_missing_folder_data(tmp_path: Path) -> None:
    (tmp_path / "instances.csv").write_text(format_table(INSTANCES))
    (tmp_path / "golden_reference.csv").write_text(
        "instance,files,naive_added,naive_removed,n_pos,n_neg,golden_passed,golden_failed\n"
        f"{INSTANCES[0].path},3,20,10,4,5,100,2\n{INSTANCES[1].path},,x,1,,5,,\n"
    )
    one, two = describe_benchmark(open_benchmark(tmp_path)).instances
    assert (one.golden, one.rules, one.tests) == (PatchCounts(3, 20, 10), 9, 102)
    assert (two.golden, two.rules, two.tests, two.reductive_rules) == (None, None, None, 5)


def test_published_data_reproduce_table_1(published_data: Path) -> None:
    """The paper's figures, up to known differences of the data: four rules, four lines, skipped tests."""
    facts = describe_benchmark(open_benchmark(published_data)).instances
    golden = [each.golden for each in facts if each.golden is not None]
    additive = [each.additive_rules for each in facts if each.additive_rules is not None]
    reductive = [each.reductive_rules for each in facts if each.reductive_rules is not None]
    rules = [each.rules for each in facts if each.rules is not None]
    tests = [each.tests for each in facts if each.tests is not None]
    assert len(golden) == len(additive) == len(rules) == len(tests) == 100
    assert (fmean(each.files for each in golden), max(each.files for each in golden)) == (91.52, 290)
    assert fmean(each.edited for each in golden) == pytest.approx(2605.39, abs=0.05)
    assert max(each.edited for each in golden) == 18_821
    assert (fmean(additive), max(additive)) == (pytest.approx(29.66, abs=0.05), 87)
    assert (fmean(reductive), max(reductive)) == (63.41, 120)
    assert (fmean(rules), max(rules)) == (pytest.approx(93.07, abs=0.05), 170)
    # The reference counts leave out skipped tests.
    assert (fmean(tests), max(tests)) == (pytest.approx(1638.53, rel=0.02), pytest.approx(12_449, rel=0.001))


def test_clones_of_published_repositories_agree_with_the_reference(
    published_data: Path, clones: Path
) -> None:
    """The line counts of git between two commits equal the reference counts of the golden patches."""
    opened = open_benchmark(published_data, repos=clones)
    cloned = [each for each in opened.instances if (clones / each.owner / each.repo).is_dir()]
    assert cloned
    counted = describe_benchmark(opened, cloned).instances
    reference = describe_benchmark(Benchmark(published_data, opened.instances), cloned).instances
    assert [each.golden for each in counted] == [each.golden for each in reference]
    assert {each.licence for each in counted} <= {"MIT", "Apache-2.0"}
