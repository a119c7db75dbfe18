"""A dry run imports what reads and plans a config, and nothing that executes the plan."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLANS = {"quickstart": "discover/scripted/", "compare": "open/multiplan plan by thorough"}
"""Examples, and a part of their plan."""
NOT_FOR_PLANNING = (
    "aiodocker",
    "anthropic",
    "asyncio",
    "concurrent.futures",
    "email.parser",
    "genai_prices",
    "httpx",
    "httpx2",
    "jinja2",
    "logging",
    "multiprocessing",
    "numpy",
    "openai",
    "pypi_simple",
    "rich",
    "ruamel",
    "scipy",
    "sqlite3",
    "starlette",
    "tarfile",
    "tree_sitter",
    "uvicorn",
    "codetaste.agent.loop",
    "codetaste.flows.discover.jobs",
    "codetaste.flows.infer.jobs",
    "codetaste.gateway.gateway",
    "codetaste.harness.run",
    "codetaste.llm.metering.metered",
    "codetaste.llm.wire.codecs",
    "codetaste.llm.wire.common.http",
    "codetaste.llm.wire.common.request",
    "codetaste.orchestration.scheduler.scheduler",
    "codetaste.report.live.display",
    "codetaste.report.summary",
    "codetaste.rules.engine.opengrep",
    "codetaste.sandbox.provider",
    "codetaste.sandbox.containment.engine",
    "codetaste.source.repository",
    "codetaste.source.checkout",
    "codetaste.run.execute",
)
PROGRAM = """
import sys
sys.argv = ["codetaste", *sys.argv[1:]]
try:
    from {module} import main
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, sep="\\n", file=sys.stderr)
"""


@pytest.mark.parametrize("example", PLANS)
@pytest.mark.parametrize(
    ("module", "words"), [("codetaste.cli.app", ["run"]), ("codetaste.run.__main__", [])]
)
def test_dry_run_imports_nothing_that_executes(
    module: str, words: list[str], example: str, tmp_path: Path
) -> None:
    config, new = EXAMPLES / f"{example}.toml", ("--set", f"run.out={tmp_path}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module), *words, str(config), "--dry-run", *new],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert PLANS[example] in done.stdout
    loaded = set(done.stderr.split())
    assert "codetaste.run.config" in loaded
    assert not loaded & set(NOT_FOR_PLANNING)
    assert list(tmp_path.iterdir()) == []


def test_every_module_not_for_planning_exists(tmp_path: Path) -> None:
    """A misspelt or moved name would guard nothing."""
    ours = [name for name in NOT_FOR_PLANNING if name.startswith("codetaste.")]
    program = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    subprocess.run([sys.executable, "-c", program, *ours], cwd=tmp_path, check=True)
