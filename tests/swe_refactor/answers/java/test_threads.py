"""Texts are parsed in several threads at once: tree-sitter's parsers must not be shared by threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from codetaste.codebleu.score import codebleu
from codetaste.evaluation.activity.shell_parser import parse_shell
from codetaste.swe_refactor.answers.java.syntax import parse_java


def read(number: int) -> tuple[int, float, int]:
    methods = "\n".join(f"int m{number}_{each}(int a) {{ return a + {each}; }}" for each in range(60))
    unit = parse_java(f"class C{number} {{\n{methods}\n}}".encode())
    assert unit is not None
    score = codebleu(methods, methods).score
    script = parse_shell("\n".join(f"echo {number} | cat > f{each}" for each in range(60)))
    return len(unit.types[0].members), round(score, 6), len(script.commands)


def test_threads_do_not_meet_in_a_parser() -> None:
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read, range(96))) == {(60, 1.0, 120)}
