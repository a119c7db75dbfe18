"""An invalid config file gives one line for each mistake, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ConfigError
from codetaste.run.config import Config, read_config

VALID = (Path(__file__).resolve().parents[2] / "examples/quickstart.toml").read_bytes()


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
def test_invalid_toml_is_one_problem(content: bytes, tmp_path: Path) -> None:
    (problem,) = problems(content, tmp_path)
    assert problem.startswith(f"{tmp_path}/config.toml: ")


def test_byte_order_mark_and_cr_lf_make_no_difference(tmp_path: Path) -> None:
    expected = read(VALID, tmp_path)
    assert read(b"\xef\xbb\xbf" + VALID, tmp_path) == expected
    assert read(VALID.replace(b"\n", b"\r\n"), tmp_path) == expected


def test_key_with_a_line_break_is_reported_in_one_line(tmp_path: Path) -> None:
    assert problems(VALID + b'"a\\nb" = 1\n', tmp_path)
    assert problems(VALID.replace(b'id = "scripted"', b'id = "a\\nb"'), tmp_path)


@pytest.mark.parametrize("amount", ["nan", "inf", "-0.01", "1e99999999", "1e-99999999", "true", "'x'", "[]"])
def test_invalid_budget_is_one_problem(amount: str, tmp_path: Path) -> None:
    (problem,) = problems(VALID, tmp_path, f"run.budget_usd={amount}")
    assert "run.budget_usd: " in problem
    assert "is not an amount of US dollars" in problem
    assert "Decimal" not in problem


def test_number_out_of_range_is_shown_as_written(tmp_path: Path) -> None:
    (problem,) = problems(VALID, tmp_path, "run.concurrency=2.5")
    assert problem.endswith("(it is 2.5)")
    (problem,) = problems(VALID, tmp_path, "run.time_limit=-1.5")
    assert "run.time_limit: -1.5 is not a duration" in problem


def test_earlier_name_beside_the_new_one_is_named(tmp_path: Path) -> None:
    settings = ("models.scripted.silence=2m", "models.scripted.read_timeout=3m")
    (problem,) = problems(VALID, tmp_path, *settings)
    assert problem.endswith(
        "models[scripted].silence: earlier name of 'read_timeout', which is there, too: remove one of them"
    )


@pytest.mark.parametrize(
    "key",
    [
        "run.out",
        "benchmark.path",
        "benchmark.repos",
        "rules.cache",
        "rules.opengrep",
        "sandbox.socket",
        "sandbox.ca_bundle",
        "models.scripted.cassette",
    ],
)
def test_impossible_path_is_named_with_its_key(key: str, tmp_path: Path) -> None:
    shown = key.replace("models.scripted", "models[scripted]")
    not_text = "Input should be a valid string" if key == "benchmark.path" else "must be a path, in quotes"
    for value, reason in {
        '"a\\u0000b"': r"it has a NUL character, which no path, address or name can have (it is 'a\x00b')",
        '""': "must not be empty (it is '')",
        "5": not_text,
        '"~nobody-is-here/x"': "there is no home folder ~nobody-is-here",
        f'"{"x" * 300}"': "longer than a path can be",
    }.items():
        (problem,) = problems(VALID, tmp_path, f"{key}={value}")
        assert problem.startswith(f"{tmp_path}/config.toml: {shown}: {reason}")


def test_types_are_named_as_in_the_file(tmp_path: Path) -> None:
    for setting, problem in {
        'benchmark.instances="x"': "benchmark.instances: must be a list (it is 'x')",
        "models.scripted.options=5": "models[scripted].options: must be a table (it is 5)",
        "benchmark.instances=[1]": "benchmark.instances[0]: Input should be a valid string (it is 1)",
        "benchmark.instances=[]": "benchmark.instances: the list should have at least 1 item, not 0",
        'run.budget_usd="1_0"': "run.budget_usd: '1_0' is not an amount of US dollars",
    }.items():
        assert problems(VALID, tmp_path, setting) == (f"{tmp_path}/config.toml: {problem}",)


def test_too_deeply_nested_setting_is_refused(tmp_path: Path) -> None:
    assert problems(VALID, tmp_path, "run.budget_usd=" + "[" * 100_000)


@pytest.mark.parametrize(
    "key", ["run.name", "benchmark.path", "benchmark.repos", "rules.cache", "models.scripted.model"]
)
def test_nul_in_a_text_is_named_with_its_key(key: str, tmp_path: Path) -> None:
    (problem,) = problems(VALID, tmp_path, f'{key}="a\\u0000b"')
    assert key.rsplit(".", maxsplit=1)[-1] in problem
    assert "NUL" in problem


def test_list_is_called_a_list(tmp_path: Path) -> None:
    (problem,) = problems(VALID, tmp_path, "benchmark.instances=7")
    assert "list" in problem
    assert "tuple" not in problem
