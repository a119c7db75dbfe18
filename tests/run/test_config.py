"""Each mistake in a config is one line with file, key and nearest valid name; all are reported at once."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.run.config import Config, read_config, runs_folder
from codetaste.run.resolve import resolve_config

VALID: dict[str, Any] = {
    "run": {"name": "r", "budget_usd": 2.0, "time_limit": "30m", "concurrency": 8},
    "benchmark": {"path": "quickstart", "instances": ["pytest*"]},
    "sandbox": {"engine": "auto", "max": 4, "memory": "2GiB"},
    "rules": {"scan_timeout": "15m", "processes": 2},
    "models": [
        {
            "id": "one",
            "provider": "scripted",
            "model": "quickstart_model.py:reply",
            "max_concurrency": 4,
            "price": {"input": 3.0, "output": 15.0},
            "options": {"temperature": 0.5},
        },
        {
            "id": "two",
            "provider": "anthropic",
            "model": "some-model",
            "base_url": "http://127.0.0.1:1",
            "api_key_env": "SOME_KEY",
            "price": {"input": 3.0, "output": 15.0},
        },
    ],
    "discover": {"models": ["one", "two"], "budget_usd": 1.0, "time_limit": "15m", "max_turns": 30},
}


def toml(value: Any) -> str:
    """Return a value as TOML, with inline tables."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float() | Decimal():
            return str(value)
        case str():
            return json.dumps(value)
        case list():
            return f"[{', '.join(toml(item) for item in value)}]"
        case dict():
            return "{ " + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + " }"
    raise TypeError(value)


def write_config(folder: Path, raw: dict[str, Any]) -> Path:
    path = folder / "c.toml"
    path.write_text("".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in raw.items()), "utf-8")
    return path


def with_change(where: str, value: Any) -> dict[str, Any]:
    """Return VALID with one key set, or removed if ``value`` is ``...``."""
    raw: Any = copy.deepcopy(VALID)
    *parents, last = where.split(".")
    node = raw
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return dict(raw)


def problems(path: Path, *given_settings: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read_config(path, given_settings)
    for problem in caught.value.problems:
        assert "\n" not in problem
    return caught.value.problems


@pytest.mark.parametrize(
    ("config", "out", "expected"),
    [
        ("a/c.toml", "runs", "a/runs"),
        ("c.toml", "runs", "runs"),
        ("a/c.toml", "../runs", "runs"),
        ("link/c.toml", "../runs", "deep/runs"),
        ("{cwd}/a/c.toml", "runs", "a/runs"),
        ("../c.toml", "runs", "{above}/runs"),
        ("a/c.toml", "/elsewhere", "/elsewhere"),
    ],
)
def test_runs_are_beside_the_config_wherever_the_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, out: str, expected: str
) -> None:
    here = tmp_path / "here"
    (here / "deep/er").mkdir(parents=True)
    (here / "link").symlink_to("deep/er")
    monkeypatch.chdir(here)
    found = runs_folder(Path(config.format(cwd=here)), Path(out))
    assert str(found) == expected.format(above=tmp_path)


def test_runs_folder_of_a_removed_working_directory_is_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert runs_folder(tmp_path / "c.toml", Path("runs")) == tmp_path / "runs"


def test_valid_config_is_read_and_money_is_exact(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, with_change("run.budget_usd", Decimal("0.1"))))
    assert config.run.budget_usd == Decimal("0.1")
    assert config.run.time_limit == 1800
    assert config.sandbox.memory == 2 * 1024**3
    assert config.model_by_id("two").base_url == "http://127.0.0.1:1"


FAULTS: list[tuple[str, Any, list[str]]] = [
    ("run.nam", "x", ["run.nam: unknown key", "did you mean 'name'"]),
    ("runn", {"name": "x"}, ["runn: unknown key", "did you mean 'run'"]),
    ("models.0.pric", {}, ["models[one].pric: unknown key", "did you mean 'price'"]),
    ("models.0.price.outputs", 1.0, ["models[one].price.outputs: unknown key", "did you mean 'output'"]),
    ("discover.modles", ["one"], ["discover.modles: unknown key", "did you mean 'models'"]),
    ("sandbox.engin", "auto", ["sandbox.engin: unknown key", "did you mean 'engine'"]),
    ("rules.scantimeout", "1m", ["rules.scantimeout: unknown key", "did you mean 'scan_timeout'"]),
    ("benchmark.repo", "x", ["benchmark.repo: unknown key", "did you mean 'repos'"]),
    ("zzz", 1, ["zzz: unknown key", "known: ", "benchmark", "discover"]),
    ("run.name", ..., ["run.name: missing"]),
    ("run", ..., ["run: missing"]),
    ("models.0.model", ..., ["models[one].model: missing"]),
    ("models.1.id", ..., ["models[1].id: missing"]),
    ("run.name", "../up", ["run.name: "]),
    ("run.name", 7, ["run.name: "]),
    ("run.budget_usd", "much", ["run.budget_usd: ", "'much'"]),
    ("run.budget_usd", -1.0, ["run.budget_usd: "]),
    ("run.budget_usd", True, ["run.budget_usd: "]),
    ("run.time_limit", "soon", ["run.time_limit: ", "soon", "1h30m"]),
    ("run.time_limit", 0, ["run.time_limit: "]),
    ("run.time_limit", 10**400, ["run.time_limit: "]),
    ("run.concurrency", 0, ["run.concurrency: "]),
    ("run.concurrency", 1.5, ["run.concurrency: "]),
    ("run", "r", ["run: "]),
    ("models", {"id": "one"}, ["models: "]),
    ("sandbox.memory", "8 GB RAM", ["sandbox.memory: ", "8GiB"]),
    ("sandbox.engine", "dokker", ["sandbox.engine: ", "bubblewrap"]),
    ("models.0.provider", "antropic", ["models[one].provider: ", "anthropic"]),
    ("models.1.base_url", "ftp://x", ["models[two].base_url: "]),
    ("models.0.price.input", -3, ["models[one].price.input: "]),
    ("models.0.options", {"max_tokens": 5}, ["models[one].options: ", "models[].max_output_tokens"]),
    ("models.0.id", "a b", ["models[a b].id: "]),
    ("models.1.id", "one", ["models[one].id: used twice"]),
    ("discover.models", [], ["discover.models: "]),
    ("discover.models", "one", ["discover.models: "]),
    ("discover.models", ["onne"], ["discover.models: ", "'onne'", "did you mean 'one'"]),
    ("discover.max_output_tokens", 10, ["discover.max_output_tokens: "]),
]


@pytest.mark.parametrize(("where", "value", "expected"), FAULTS, ids=lambda value: str(value)[:40])
def test_mistake_is_named_with_file_key_and_correction(
    tmp_path: Path, where: str, value: Any, expected: list[str]
) -> None:
    path = write_config(tmp_path, with_change(where, value))
    messages = problems(path)
    (line,) = [line for line in messages if expected[0] in line]
    assert line.startswith(f"{path}: {expected[0]}")
    for part in expected[1:]:
        assert part in line


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    raw = with_change("run.nam", "x")
    raw["models"][0]["price"]["output"] = "expensive"
    raw["discover"]["max_turns"] = 0
    raw["sandbox"]["max"] = "many"
    del raw["benchmark"]
    messages = problems(write_config(tmp_path, raw))
    keys = ("run.nam", "models[one].price.output", "discover.max_turns", "sandbox.max", "benchmark")
    assert len(messages) == len(keys)
    for key in keys:
        assert any(f": {key}: " in line for line in messages), key


def test_api_key_in_the_config_is_not_printed(tmp_path: Path) -> None:
    messages = problems(write_config(tmp_path, with_change("models.1.api_key_env", "sk-ant-not-a-real-key")))
    assert "environment variable" in messages[0]
    assert "sk-ant" not in "".join(messages)


def test_missing_file_error_suggests_the_nearest_name(tmp_path: Path) -> None:
    write_config(tmp_path, VALID).rename(tmp_path / "quickstart.toml")
    (line,) = problems(tmp_path / "quickstrat.toml")
    assert "no such file (did you mean 'quickstart.toml'?)" in line
    assert "cannot be read" in problems(tmp_path)[0]


@pytest.mark.parametrize(
    ("setting", "read"),
    [
        ("run.budget_usd=5", lambda c: c.run.budget_usd == 5),
        ("run.name=other", lambda c: c.run.name == "other"),
        ('run.name="other"', lambda c: c.run.name == "other"),
        ("run.time_limit=2h", lambda c: c.run.time_limit == 7200),
        ("run.out=some folder with spaces", lambda c: str(c.run.out) == "some folder with spaces"),
        ("models.one.max_concurrency=7", lambda c: c.models[0].max_concurrency == 7),
        ("models.1.max_concurrency=7", lambda c: c.models[1].max_concurrency == 7),
        ("models.one.price.output=9.5", lambda c: c.models[0].price.output == Decimal("9.5")),
        (
            "models.one.options.thinking.budget_tokens=9",
            lambda c: c.models[0].options["thinking"] == {"budget_tokens": 9},
        ),
        ('discover.models=["two"]', lambda c: c.discover.models == ("two",)),
        ('benchmark.instances=["a*", "b c"]', lambda c: c.benchmark.instances == ("a*", "b c")),
        ("run.out=a=b", lambda c: str(c.run.out) == "a=b"),
        (" sandbox.max =3", lambda c: c.sandbox.max == 3),
    ],
)
def test_settings_override_the_file(tmp_path: Path, setting: str, read: Any) -> None:
    assert read(read_config(write_config(tmp_path, VALID), [setting]))


def test_setting_may_create_a_section_and_the_last_one_wins(tmp_path: Path) -> None:
    path = write_config(tmp_path, with_change("sandbox", ...))
    config = read_config(path, ["sandbox.max=3", "sandbox.max=5"])
    assert config.sandbox.max == 5


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("run.budget_usd", "write it as section.key=value"),
        ("=5", "write it as section.key=value"),
        ("", "write it as section.key=value"),
        ("run..name=5", "write it as section.key=value"),
        ("models.thre.model=x", "no table 'thre'"),
        ("models.onne.model=x", "did you mean 'one'"),
        ("models.9.model=x", "no table '9'"),
        ("run.name.first=x", "run.name"),
        ("models=x", "models"),
        ("models.one=x", "models"),
        ("run.nome=x", "did you mean 'name'"),
        ("run.budget_usd=lots", "'lots'"),
    ],
)
def test_invalid_setting_is_a_one_line_error(tmp_path: Path, setting: str, expected: str) -> None:
    messages = problems(write_config(tmp_path, VALID), setting)
    assert any(expected in line for line in messages), messages


def test_all_missing_references_are_reported(tmp_path: Path) -> None:
    raw = with_change("benchmark.path", "nowhere")
    raw["discover"]["tools"] = ["codetaste.agent.rule_tools:finsh", "no_such_module:x", "mine.py:x"]
    raw["models"][1].pop("price")
    path = write_config(tmp_path, raw)
    with pytest.raises(ConfigError) as caught:
        resolve_config(read_config(path), tmp_path)
    messages = "\n".join(caught.value.problems)
    for part in ("nowhere", "finsh", "no_such_module", "mine.py", "models[two]"):
        assert part in messages, part
    assert len(caught.value.problems) == 5


KEYS = [
    "run",
    "name",
    "models",
    "id",
    "price",
    "input",
    "budget_usd",
    "tools",
    "x",
    "",
    "a.b",
    "options",
    "é",
]
scalars = (
    st.none().map(lambda _: "x")
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "1h", "8GiB", "one", "two", "quickstart", "\u202e", "a\tb", "*", "../..", "0"])
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated_configs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw VALID with some random values replaced, removed or added."""
    raw = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 4))):
        node: Any = raw
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(node[key], dict | list) and node[key] and draw(st.booleans()):
                node = node[key]
                continue
            match draw(st.sampled_from(["replace", "remove", "add"])):
                case "replace":
                    node[key] = draw(values)
                case "remove":
                    del node[key]
                case _ if isinstance(node, dict):
                    node[draw(st.sampled_from(KEYS))] = draw(values)
                case _:
                    node.append(draw(values))
            break
    return raw


def read_or_problems(path: Path, *given_settings: str) -> Config | tuple[str, ...]:
    try:
        return read_config(path, given_settings)
    except ConfigError as error:
        messages = error.problems
    assert messages
    for problem in messages:
        assert "\n" not in problem
        assert problem.startswith((f"{path}: ", "--set "))
    return messages


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=mutated_configs())
def test_mutated_config_is_read_or_reported_in_lines(tmp_path: Path, raw: dict[str, Any]) -> None:
    result = read_or_problems(write_config(tmp_path, raw))
    if isinstance(result, Config):
        result.model_dump_json()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.lists(st.sampled_from([*KEYS, "one", "0", "discover", "sandbox"]), min_size=1, max_size=4).map(
        ".".join
    )
    | st.text(max_size=12),
    value=values.map(toml) | st.text(max_size=12),
)
def test_any_setting_is_read_or_reported_in_lines(tmp_path: Path, key: str, value: str) -> None:
    read_or_problems(write_config(tmp_path, VALID), f"{key}={value}")


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=mutated_configs())
def test_many_mutated_configs_are_read_or_reported_in_lines(tmp_path: Path, raw: dict[str, Any]) -> None:
    read_or_problems(write_config(tmp_path, raw))


def test_a_config_of_swe_refactor_names_no_benchmark_and_no_other_flow(tmp_path: Path) -> None:
    path = tmp_path / "build.toml"
    path.write_text("""
[run]
name = "build"
[swe_refactor.build]
repositories = ["junit4"]
types = ["Move Method"]
""")
    config = read_config(path)
    assert config.swe_refactor is not None
    assert config.swe_refactor.build.types == ("Move Method",)
    with pytest.raises(ConfigError) as caught:
        read_config(path, ["evaluate.tests=false"])
    assert [line.partition(": ")[2] for line in caught.value.problems] == [
        "evaluate: [swe_refactor] is for a config of its own; remove one of both"
    ]
    with pytest.raises(ConfigError, match="types"):
        read_config(path, ["swe_refactor.build.types=['Rename Method']"])
