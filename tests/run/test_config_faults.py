"""A config file that is wrong in any way: one line for each mistake, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ConfigError
from codetaste.run.config import Config, read_config

GOOD = (Path(__file__).resolve().parents[2] / "examples/quickstart.toml").read_bytes()


def read(content: bytes, folder: Path, *settings: str) -> Config:
    path = folder / "config.toml"
    path.write_bytes(content)
    return read_config(path, settings)


def problems(content: bytes, folder: Path, *settings: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read(content, folder, *settings)
    assert len(str(caught.value).splitlines()) == len(caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize("content", [b"\x00\x01\xff", b"a=" + b"[" * 100_000, b"run.name", b"\xff\xfe[\x00"])
def test_what_is_no_toml_is_one_problem(content: bytes, tmp_path: Path) -> None:
    (problem,) = problems(content, tmp_path)
    assert problem.startswith(f"{tmp_path}/config.toml: ")


def test_files_of_other_editors_are_read_alike(tmp_path: Path) -> None:
    expected = read(GOOD, tmp_path)
    assert read(b"\xef\xbb\xbf" + GOOD, tmp_path) == expected
    assert read(GOOD.replace(b"\n", b"\r\n"), tmp_path) == expected


def test_a_key_with_a_line_break_stays_in_its_line(tmp_path: Path) -> None:
    assert problems(GOOD + b'"a\\nb" = 1\n', tmp_path)
    assert problems(GOOD.replace(b'id = "scripted"', b'id = "a\\nb"'), tmp_path)


@pytest.mark.parametrize("amount", ["nan", "inf", "-0.01", "1e99999999", "1e-99999999", "true", "'x'", "[]"])
def test_what_is_no_amount_of_money_is_no_budget(amount: str, tmp_path: Path) -> None:
    (problem,) = problems(GOOD, tmp_path, f"run.budget_usd={amount}")
    assert "run.budget_usd: " in problem
    assert "is not an amount of US dollars" in problem


def test_a_value_nested_beyond_reason_is_no_value(tmp_path: Path) -> None:
    assert problems(GOOD, tmp_path, "run.budget_usd=" + "[" * 100_000)
