"""Trials of a CLI agent of 25 lines, which calls its model through the gateway."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.environment.leak_search.secrets import GATEWAY_TOKEN
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import TinyBenchmark, Workspace
from support.flows.trial_runs import (
    agent_table,
    apply_prediction,
    make_trial_workspace,
    output_folder,
    published_cost,
    read_metadata,
)

MANIFEST = """
protocol = "anthropic"
versions = ["1.0"]
default = "1.0"
install = ""
run = "run.py"

[[end_events]]
when = { type = "end" }
outcome = "success"

[turns]
when = { type = "turn" }

[numbers]
cost_usd = "cost"
"""
PROGRAM = r"""#!/usr/bin/python3
import json, os, subprocess, sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("1.0"))
tool = {"name": "bash", "description": "d", "input_schema": {"type": "object", "properties": {}}}
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    body = {"model": os.environ["CODETASTE_MODEL"], "max_tokens": 1024, "messages": messages}
    body["tools"] = [tool]
    request = urllib.request.Request(
        os.environ["CODETASTE_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["CODETASTE_TOKEN"]},
    )
    content = json.load(urllib.request.urlopen(request))["content"]
    print(json.dumps({"type": "turn"}), flush=True)
    calls = [block for block in content if block["type"] == "tool_use"]
    if not calls:
        sys.exit(print(json.dumps({"type": "end", "cost": 0.5})))
    messages.append({"role": "assistant", "content": content})
    commands = [["sh", "-c", call["input"]["command"]] for call in calls]
    done = [subprocess.run(command, capture_output=True, text=True) for command in commands]
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"], "content": one.stdout or "nothing"}
        for call, one in zip(calls, done)
    ]})
"""


@pytest.fixture(autouse=True)
def sandboxes(require: Callable[..., None], bubblewrap: Path, tools: None) -> None:
    require("python3", ok=Path("/usr/bin/python3").exists(), reason="no python3 for agents in sandboxes")


def make_program_workspace(
    folder: Path,
    alpha: TinyBenchmark,
    coder: str,
    track: str = "open/direct",
    agent: str = "",
    manifest: str = MANIFEST,
    program: str = PROGRAM,
) -> Workspace:
    workspace = make_trial_workspace(folder, alpha, (track,), coder=coder)
    shutil.rmtree(folder / "prog", ignore_errors=True)
    (folder / "prog").mkdir()
    (folder / "prog" / "agent.toml").write_text(manifest)
    (folder / "prog" / "run.py").write_text(program)
    (folder / "prog" / "run.py").chmod(0o755)
    own = agent_table("a", "m", "budget_usd = 2.0\ntime_limit = '5m'")
    text = workspace.config.read_text()
    assert own in text
    workspace.config.write_text(text.replace(own, agent_table("a", "m", agent, harness="prog")))
    return workspace


def test_cli_agent_multiplan_trial_has_metered_cost(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell", "open/multiplan")
    result = workspace.run("--json")
    assert result.code == 0, result.err
    folder = output_folder(workspace, alpha, "open/multiplan")
    metadata = read_metadata(folder)
    assert metadata["finish_reason"] == "success"
    ledgers = [*workspace.ledger("m"), *workspace.ledger("judge")]
    assert published_cost(folder) == pytest.approx(sum(float(line["cost_usd"]) for line in ledgers))
    assert (metadata["additional"]["turns"], metadata["additional"]["harness_version"]) == (5, "1.0")
    assert metadata["additional"]["steps"]["execute"]["reported_cost_usd"] == "0.5"
    assert "the agent reports a cost of $0.5" in result.err
    assert "the agent reports a cost of $0.5" in metadata["additional"]["steps"]["execute"]["cost_mismatch"]
    assert apply_prediction(alpha, folder, tmp_path / "applied")["pack/seen.txt"].count("marker-2") == 1
    assert "install/a" in [line["key"] for line in workspace.journal() if line["event"] == "ended"]
    records = sorted(path.name for path in (workspace.out / "events").rglob("*.jsonl"))
    assert records == ["execute.attempt-1.jsonl", "plan.plan-attempt-1.attempt-1.jsonl"]


def test_cli_agent_stopped_by_budget_keeps_patch(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell_endless", agent="budget_usd = 0.05")
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "budget_exceeded"
    assert 0.02 < metadata["cost_usd"] <= 0.05
    files = apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")
    assert (
        1
        < len([name for name in files if name.startswith("pack/more")])
        == metadata["additional"]["patch_files"]
    )
    tiny_benchmark.fold_journal(
        workspace.journal(), {("infer", f"a/open/direct/{alpha.row.id}"): Decimal("0.05")}
    )


@pytest.mark.heavy
def test_cli_agent_killed_with_run_restarts_and_keeps_earlier_cost(
    tmp_path: Path, alpha: TinyBenchmark
) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell_slowly")
    process = workspace.start("--json")
    tiny_benchmark.wait_for_progress(process, workspace.out, 4)
    while len(workspace.ledger("m")) < 3:  # the third request is billed and has no reply yet
        time.sleep(0.01)
    tiny_benchmark.kill(process)
    before = len(workspace.ledger("m"))
    result = workspace.run("--json")
    assert result.code == 0, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "success"
    assert len(workspace.ledger("m")) == before + 5
    costs = [float(line["cost_usd"]) for line in workspace.ledger("m")]
    assert metadata["cost_usd"] == pytest.approx(sum(costs))
    own = metadata["additional"]["steps"]["execute"]["cost_usd"]
    assert float(own) == pytest.approx(sum(costs[before:]))
    assert list(tiny_benchmark.leftover_processes(str(workspace.out))) == []


@pytest.mark.heavy
def test_signal_ends_cli_agent_and_keeps_patch_so_far(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell_slowly")
    process = workspace.start("--json")
    tiny_benchmark.wait_for_progress(process, workspace.out, 4)
    while len(workspace.ledger("m")) < 3:  # the third request is billed and has no reply yet
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert result.code == 130
    metadata = read_metadata(output_folder(workspace, alpha))
    assert (metadata["finish_reason"], metadata["additional"]["interruption"]) == ("unknown", "stopped")
    # The request in flight is counted as well.
    assert float(metadata["additional"]["steps"]["execute"]["cost_usd"]) == metadata["cost_usd"]
    assert "pack/more0.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")


@pytest.mark.heavy
def test_resume_without_budget_keeps_patch_of_stopped_cli_agent(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell_slowly")
    # Its first request costs more than the task alone, so that it is started and refused.
    (tmp_path / "prog" / "run.py").write_text(
        PROGRAM.replace("sys.stdin.read()", "sys.stdin.read() + 'x' * 40_000")
    )
    process = workspace.start("--json")
    tiny_benchmark.wait_for_progress(process, workspace.out, 4)
    while len(workspace.ledger("m")) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert tiny_benchmark.wait_for_result(process, 200).code == 130
    spent = read_metadata(output_folder(workspace, alpha))["cost_usd"]
    requests = len(workspace.ledger("m"))
    result = workspace.run("--json", "--set", f"agents.a.budget_usd={spent + 0.06}")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "budget_exceeded"
    assert len(workspace.ledger("m")) == requests
    assert "pack/more0.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")
    assert any("attempt 1" in note for note in metadata["additional"]["patch_notes"])


def test_failing_provider_is_no_outcome_of_cli_agent(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "fails_later_by_shell")
    result = workspace.run("--json")
    assert result.code == 1
    [job] = [job for job in result.json["jobs"] if job["key"].startswith("infer/")]
    assert job["status"] == "failed"
    assert "the scripted provider is gone" in job["error"]
    assert "pack/more0.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")


REQUEST_LINE = 'content = json.load(urllib.request.urlopen(request))["content"]'
CARELESS = PROGRAM.replace(
    REQUEST_LINE, f"try:\n        {REQUEST_LINE}\n    except OSError:\n        content = []"
)
"""Reports a success whatever becomes of its requests, as Qwen Code 0.7.1 does."""
HONEST = CARELESS.replace("content = []", "sys.exit(7)")
SEARCH = CARELESS.replace('"name": "bash", ', '"type": "web_search_20250305", "name": "web_search", ')
ABSENT = PROGRAM.replace("while True:", "sys.exit(print(json.dumps({'type': 'end'})))\nwhile True:")
TEXT = "it reports a success, but "


@pytest.mark.parametrize("track", ["open/direct", "open/multiplan"])
@pytest.mark.parametrize("coder", ["gone", "fails_later_by_shell"])
def test_failing_provider_is_no_success_of_careless_agent(
    tmp_path: Path, alpha: TinyBenchmark, coder: str, track: str
) -> None:
    workspace = make_program_workspace(tmp_path, alpha, coder, track, program=CARELESS)
    result = workspace.run("--json")
    assert result.code == 1
    [job] = [job for job in result.json["jobs"] if job["key"].startswith("infer/")]
    assert (job["status"], job["cause"]) == ("failed", "setup")
    assert "the scripted provider is gone" in job["error"]


@pytest.mark.parametrize(
    ("coder", "program", "ending", "reason", "refusals"),
    [
        ("by_shell", SEARCH, "no model reply", f"{TEXT}no request was answered: tools[0].type = ", None),
        ("by_shell", ABSENT, "no model reply", f"{TEXT}no request was answered: it sent none", None),
        ("policy_later_by_shell", CARELESS, "refused", f"{TEXT}its last request failed: the prompt was", 1),
        ("policy_later_by_shell", HONEST, "execution error", "it exited with 7", 1),
        ("unsuited_later_by_shell", CARELESS, "execution error", f"{TEXT}its last request failed: ", None),
        ("declines_by_shell", PROGRAM, "done", "", 1),
    ],
    ids=range(6),
)
def test_ending_of_cli_agent_agrees_with_what_the_gateway_saw(
    tmp_path: Path,
    alpha: TinyBenchmark,
    coder: str,
    program: str,
    ending: str,
    reason: str,
    refusals: int | None,
) -> None:
    workspace = make_program_workspace(tmp_path, alpha, coder, program=program)
    result = workspace.run("--json")
    [job] = [job for job in result.json["jobs"] if job["key"].startswith("infer/")]
    assert (job["ending"], result.code) == (ending, int(ending != "done")), job
    assert reason in (job["reason"] or "")
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == ("success" if ending == "done" else "execution_error")
    assert metadata["additional"].get("refusals") == refusals
    assert (f"requests that the model or its provider refused: {refusals}" in result.err) == bool(refusals)


def test_token_and_trial_of_a_session_stand_nowhere(tmp_path: Path, alpha: TinyBenchmark) -> None:
    # The agent's own output has the environment, too.
    telling = PROGRAM.replace('"cost": 0.5', '"cost": 0.5, **os.environ').replace(
        "while True:", "print(dict(os.environ), file=sys.stderr, flush=True)\nwhile True:"
    )
    workspace = make_program_workspace(tmp_path, alpha, "tells_by_shell", "open/plan", program=telling)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    assert (
        "CODETASTE_TOKEN=[redacted]"
        in apply_prediction(alpha, output_folder(workspace, alpha, "open/plan"), tmp_path / "applied")[
            "pack/env.txt"
        ]
    )
    seen = {path: path.read_bytes() for path in workspace.out.rglob("*") if path.is_file()}
    folders = {path.relative_to(workspace.out).parts[0] for path in seen if b"[redacted]" in seen[path]}
    assert folders >= {"events", "outputs", "transcripts", "models"}
    for path, content in seen.items():
        assert not re.search(GATEWAY_TOKEN.encode(), content), path
        assert b"CODETASTE_TRACK" not in content, path
        assert b"CODETASTE_MODE=" not in content, path


@pytest.mark.heavy
def test_failures_that_use_up_the_budget_are_the_ending(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(
        tmp_path, alpha, "malformed_later_by_shell", agent="budget_usd = 0.035"
    )
    # The cost of the failed request is unknown, so that the budget has no money for the next one.
    urlopen, reply = "urllib.request.urlopen(request)", "json.load(urllib.request.urlopen(request))"
    patient = PROGRAM.replace(f"content = {reply}", f"try:\n        content = {reply}").replace(
        '["content"]\n    print',
        f'["content"]\n    except OSError:\n        content = json.load({urlopen})["content"]\n    print',
    )
    (tmp_path / "prog" / "run.py").write_text(patient)
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    [job] = [job for job in result.json["jobs"] if job["key"].startswith("infer/")]
    assert (job["status"], job["cause"]) == ("failed", "malformed")
    assert "this is no reply" in job["error"]
    assert float(metadata["additional"]["unknown_usd"]) > 0
    assert "pack/more0.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")


@pytest.mark.slow  # takes as long as clean-up may
def test_request_outlasting_time_limit_keeps_the_patch(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell_then_slowly", agent="time_limit = '15s'")
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "timeout"
    assert "pack/more1.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")
    assert float(metadata["additional"]["unknown_usd"]) > 0


@pytest.mark.heavy
def test_time_counts_for_agent_with_requests_always_waiting(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "slow_reply", agent="time_limit = '3s'")
    text = workspace.config.read_text()
    workspace.config.write_text(text.replace(':slow_reply"\n', ':slow_reply"\nmax_concurrency = 1\n', 1))
    # Three processes send requests for ever; the model replies to one at a time.
    program = PROGRAM.replace("while True:", "from os import fork\nfork(), fork()\nwhile True:")
    (tmp_path / "prog" / "run.py").write_text(program.replace("    if not calls:", "    if False:"))
    result = workspace.run("--json")
    assert result.code == 1, result.err
    assert read_metadata(output_folder(workspace, alpha))["finish_reason"] == "timeout"


SEARCHING: dict[str, tuple[str, dict[str, Any], str]] = {
    "anthropic": (
        "/v1/messages",
        {
            "max_tokens": 1024,
            "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        },
        'tools[0].type = "web_search_20250305"',
    ),
    "openai": (
        "/v1/responses",
        {"input": "go", "tools": [{"type": "web_search"}]},
        'tools[0].type = "web_search"',
    ),
    "openai-chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "go"}], "web_search_options": {}},
        "web_search_options = {}",
    ),
}
"""A request with a search that the provider runs, and what a refusal names, by protocol."""
ONE_REQUEST = r"""#!/usr/bin/python3
import json, os, sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("1.0"))
request = urllib.request.Request(
    os.environ["CODETASTE_BASE_URL"] + PATH, json.dumps({"model": "m", **BODY}).encode(),
    {"content-type": "application/json", "authorization": "Bearer " + os.environ["CODETASTE_TOKEN"]},
)
urllib.request.urlopen(request)
print(json.dumps({"type": "end"}))
"""


@pytest.mark.parametrize("protocol", SEARCHING)
def test_ending_of_job_names_refused_request_and_the_key_that_opens_it(
    tmp_path: Path, alpha: TinyBenchmark, protocol: str
) -> None:
    path, body, named = SEARCHING[protocol]
    manifest = MANIFEST.replace('"anthropic"', f'"{protocol}"')
    program = ONE_REQUEST.replace("PATH", repr(path)).replace("BODY", repr(body))
    workspace = make_program_workspace(tmp_path, alpha, "slow_reply", manifest=manifest, program=program)
    result = workspace.run()
    assert result.code == 1, result.err
    ending = f"a request was refused: {named} is not allowed under a budget, as the cost is unknown"
    for text in (result.out, result.err, workspace.cli("status", "r").out):
        assert ending in " ".join(text.split()), text
    assert workspace.ledger("m") == []
    opening = re.search(r"allow = \{ .*? = … \}", result.err)
    assert opening is not None
    config, model = workspace.config.read_text(), '[[models]]\nid = "m"\n'
    assert model in config
    workspace.config.write_text(config.replace(model, f"{model}{opening[0].replace('…', '0.05')}\n"))
    opened = workspace.run("--rerun-failed")
    assert opened.code == 0, opened.err
    (call,) = [line for line in workspace.journal() if line["event"] == "settled"]
    assert Decimal(call["usd"]) == Decimal("0.05") + Decimal(workspace.ledger("m")[0]["cost_usd"])
