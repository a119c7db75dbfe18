"""A run that is watched in a browser, from before its beginning to its end."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.flows.tiny_benchmark import Bench, TinyBenchmark, Workspace, kill
from support.flows.trial_runs import make_trial_workspace
from support.site.browser import axe_findings, watched_page
from support.site.live_models import GATE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.heavy
END_S = 5.0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Iterator[Workspace]:
    """A workspace with one trial whose model waits in the middle until the file ``gate`` is there."""
    require("git")
    require("bwrap")
    folder = tmp_path_factory.mktemp("watched")
    bench = Bench(folder / "bench")
    bench.add()
    made = make_trial_workspace(folder, TinyBenchmark(bench, folder / "cache"), coder="slowly")
    config = made.config.read_text()
    tests = Path(__file__).parents[2]
    models = tests / "support" / "site" / "live_models.py"
    made.env["PYTHONPATH"] = str(tests)
    made.env[GATE] = str(folder / "gate")
    lines = [
        f'model = "{models}:coder"' if line.startswith('model = "/') else line for line in config.splitlines()
    ]
    made.config.write_text("\n".join(lines))
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def start_view(workspace: Workspace, *runs: str) -> tuple[subprocess.Popen[str], str]:
    """Start the server; return it with the address that it prints."""
    process = workspace.start_cli("view", *runs, "--port", "0", "--json")
    assert process.stdout is not None
    document = ""
    while not document.endswith("}\n") or not document.strip().endswith("}"):
        line = process.stdout.readline()
        assert line, process.stderr and process.stderr.read()
        document += line
    return process, json.loads(document)["address"]


def summary(page: Page) -> str:
    return page.inner_text("#live-summary")


def test_run_is_watched_from_before_its_beginning_to_its_end(workspace: Workspace, browser: Browser) -> None:
    view, address = start_view(workspace, "runs/r")
    run = None
    try:
        with watched_page(browser) as page:
            page.goto(address)
            assert "not begun" in summary(page)
            run = workspace.start("--json")
            key = "infer/a/open/direct"
            page.wait_for_selector(f'#live-jobs tr:has-text("{key}") .chip:has-text("running")')
            assert "running" in summary(page)
            assert page.locator("#live-jobs a:has-text('result')").count() == 0
            # Spending appears while the job still works.
            spent = page.locator("#live-summary dd").get_by_text(re.compile(r"^\$0\.\d*[1-9]"))
            spent.first.wait_for()
            before = page.inner_text("#live-events")
            assert "settled" in before
            assert run.poll() is None
            Path(workspace.env[GATE]).touch()
            page.wait_for_selector("#live-jobs a:has-text('result')")
            page.wait_for_selector("#live-summary .chip:has-text('ended')")
            run.communicate(timeout=60)
            assert run.returncode == 0
            assert not axe_findings(page)
            page.click("#live-jobs a:has-text('result')")
            page.wait_for_url("**/trials/r/a/open-direct/*/1/index.html")
            assert re.search("a, Open Direct: tiny__alpha", page.inner_text("h1"))
            page.goto(address)
            page.fill("#live-filter", "no such job")
            assert page.locator("#live-jobs tbody tr:not([hidden])").count() == 0
            assert "q=no" in page.url
            page.click("nav[aria-label=Site] a:has-text('Leaderboard')")
            page.wait_for_selector("h1:text-is('Leaderboard')")
    finally:
        if run is not None and run.poll() is None:
            kill(run)
        began = time.monotonic()
        view.send_signal(signal.SIGINT)
        out, err = view.communicate(timeout=30)
    assert time.monotonic() - began < END_S
    assert (view.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_page_is_complete_and_current_without_javascript(workspace: Workspace, browser: Browser) -> None:
    Path(workspace.env[GATE]).touch()
    if not workspace.out.is_dir():
        assert workspace.run("--json").code == 0
    view, address = start_view(workspace, "runs/r")
    try:
        with watched_page(browser, javascript=False, width=480, dark=True) as page:
            page.goto(address)
            assert "infer/a/open/direct" in page.inner_text("#live-jobs")
            assert "ended" in summary(page)
            page.click("#live-jobs a[data-main] >> nth=0")
            page.wait_for_url("**/job.html?key=*")
            assert "Attempts" in page.inner_text("main")
            assert "Log" in page.inner_text("main")
    finally:
        view.send_signal(signal.SIGINT)
        view.communicate(timeout=30)
