"""By what the golden state is recognised: what R has is no trace of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.environment.leak_search.content import content_of
from codetaste.environment.leak_search.golden import GoldenTraces, blob_id, golden_traces, is_distinctive
from codetaste.environment.leak_search.search import LeakSearch
from support.environment.golden import BASE, COMMIT, GOLDEN, NEW_FILE, write_tree
from support.source.repositories import ENVIRONMENT


def test_lines_of_the_base_are_not_distinctive(golden: GoldenTraces) -> None:
    lines = b"\n".join(golden.of_line)
    assert b"self.metal, self.step_degrees = metal, step_degrees" in lines
    assert b"def heat_metal_until" not in lines


def test_imports_and_comments_are_not_distinctive(golden: GoldenTraces) -> None:
    assert not [line for line in golden.of_line if line.startswith((b"from ", b"#"))]


@pytest.mark.parametrize(
    "line",
    [
        b"from concurrent.futures import ThreadPoolExecutor, as_completed",
        b"const { createServer, IncomingMessage } = require('node:http')",
        b"export { TemperatureController } from './temperature_controller'",
        b'#include "temperature_controller_internal.h"',
        b"// Licensed under the Apache License, Version 2.0 (the License)",
        b"* distributed under the License is distributed on an AS IS BASIS",
        b"if not found:",
        b"def __eq__(self, other: object) -> bool:",
        b"except ImportError:",
        b"fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {",
        b"public boolean equals(Object obj) {",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"x = " + b"'abc', " * 100,
    ],
)
def test_idiomatic_line_is_not_distinctive(line: bytes) -> None:
    assert not is_distinctive(line)


def test_dependency_lists_copies_of_others_and_licences_are_left_out(tmp_path: Path) -> None:
    added = b"a_line_that_says(enough, to_be_distinctive)\n" * 3
    paths = ["go.sum", "web/yarn.lock", "requirements-dev.txt", "vendor/lib/x.go", "LICENSE.md", "src/own.go"]
    base = write_tree(tmp_path / "base", {"a": b"\n"})
    made = golden_traces(base, write_tree(tmp_path / "golden", dict.fromkeys(paths, added)), COMMIT)
    assert {reason: sorted(found) for reason, found in made.left_out.items()} == {
        "lists dependencies": [b"go.sum", b"requirements-dev.txt", b"web/yarn.lock"],
        "is a copy of another project's": [b"vendor/lib/x.go"],
        "is a licence": [b"LICENSE.md"],
    }
    assert [file.path for file in made.files] == [b"src/own.go"]


def test_moved_file_is_no_trace(tmp_path: Path) -> None:
    base = write_tree(tmp_path / "base", BASE)
    moved = {name.replace("heat.py", "moved.py"): content for name, content in BASE.items()}
    made = golden_traces(base, write_tree(tmp_path / "golden", moved), COMMIT)
    assert made.contents == {}
    assert made.of_line == {}


def test_id_of_a_content_is_that_of_git(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOLDEN[NEW_FILE])
    git = ["git", "hash-object", "--no-filters", str(tmp_path / "file")]
    hashed = subprocess.run(git, capture_output=True, check=True, env=ENVIRONMENT).stdout
    assert blob_id(GOLDEN[NEW_FILE]).hex() == hashed.decode().strip()


def test_reading_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    def cancel() -> None:
        raise InterruptedError

    base, golden = write_tree(tmp_path / "base", BASE), write_tree(tmp_path / "golden", GOLDEN)
    with pytest.raises(InterruptedError):
        golden_traces(base, golden, COMMIT, cancel)


WORDS = [b"steel", b"anvil_hammer", b"forge", b"(", b"x = y", b"\t", b" ", b"+", b"return", b"\r"]
LINES = st.lists(st.sampled_from(WORDS), max_size=8).map(b"".join)
CONTENTS = st.dictionaries(
    st.sampled_from(["a.py", "b/c.py", "d.go", "e.java"]),
    st.lists(LINES, max_size=12).map(b"\n".join),
    min_size=1,
)


@given(base=CONTENTS, golden=CONTENTS)
def test_no_file_of_the_base_is_a_hit(
    base: dict[str, bytes], golden: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("trees")
    made = golden_traces(write_tree(folder / "base", base), write_tree(folder / "golden", golden), COMMIT)
    search = LeakSearch(made)
    search.begin_layer()
    for name, content in base.items():
        search.search_file(name.encode(), content_of(content))
    search.search_file(b"all", content_of(b"\n".join(base.values())))
    search.end_layer("sha256:0")
    assert search.report().leaks == ()
