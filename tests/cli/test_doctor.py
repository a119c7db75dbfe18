"""``codetaste doctor`` tries what works here, explains how to get the rest, and never shows keys."""

from __future__ import annotations

import json
import re
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from codetaste.cli.commands.installation.doctor import (
    DoctorReport,
    Finding,
    doctor_to_json,
    examine_machine,
    render_doctor_report,
)
from codetaste.llm.providers import retirement

if TYPE_CHECKING:
    from support.system.dockerd import DockerEngine

OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
TESTS = Path(__file__).resolve().parents[1]
PROGRAM = str(Path(sys.executable).with_name("codetaste"))


def finding_of(report: DoctorReport, name: str) -> Finding:
    everything = (*report.tools, *report.sandbox, *report.containers, *report.keys)
    return next(finding for finding in everything if finding.name == name)


@contextmanager
def serve_answer(path: Path, answer: bytes) -> Iterator[None]:
    """Run a server on a Unix socket that sends ``answer`` to every client."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(answer)

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_machine_with_all_tools_is_usable(bubblewrap: Path) -> None:
    report = anyio.run(examine_machine)
    assert report.usable
    assert finding_of(report, "python").detail.startswith(sys.version.split()[0])
    assert "1.30.0, pinned" in finding_of(report, "opengrep").detail
    assert report.containment in {"bubblewrap", "landlock"}
    text = render_doctor_report(report)
    assert text.endswith("ready: rules can be discovered here")
    assert "macOS" in text
    assert "aarch64" in text


def test_doctor_names_packages_of_other_releases_and_how_to_get_the_tested_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    finding = finding_of(anyio.run(examine_machine), "packages")
    assert (finding.ready, finding.remedy) == (True, ""), (
        "constraints.txt is what the tests are installed with"
    )
    other = tmp_path / "SciPy-0.1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: SciPy\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finding = finding_of(anyio.run(examine_machine), "packages")
    assert not finding.ready
    assert not finding.needed
    assert re.search(r": scipy 0\.1 \(1\.[\d.]+\)$", finding.detail)
    path = finding.remedy.removeprefix("pip install -c ").removesuffix(" codetaste")
    assert "scipy==1." in Path(path).read_text()


def test_doctor_reports_key_as_set_without_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-secret-value")
    report = anyio.run(examine_machine)
    assert finding_of(report, "ANTHROPIC_API_KEY").ready
    assert "a-secret-value" not in render_doctor_report(report) + doctor_to_json(report)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    missing = finding_of(anyio.run(examine_machine), "ANTHROPIC_API_KEY")
    assert not missing.ready
    assert not missing.needed
    assert (
        missing.detail
        == "not set; codetaste100.toml, mine-paper.toml, quickstart-live.toml, template.toml need it"
    )
    assert missing.remedy.startswith("export ANTHROPIC_API_KEY=")
    assert missing.warning == ""


def test_doctor_names_a_retired_model_of_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(retirement._DATES, "claude-sonnet-5-5", date(2026, 1, 1))
    warning = finding_of(anyio.run(examine_machine), "ANTHROPIC_API_KEY").warning
    assert warning.startswith("claude-sonnet-5-5 retired on 2026-01-01; current: ")
    assert "; claude-" not in warning


def test_missing_opengrep_makes_the_machine_unusable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENGREP_BIN", str(tmp_path / "nothing"))
    report = anyio.run(examine_machine)
    assert not report.usable
    finding = finding_of(report, "opengrep")
    assert (finding.ready, finding.needed) == (False, True)
    assert str(tmp_path / "nothing") in finding.detail
    assert "OPENGREP_BIN" in finding.remedy
    assert "NEEDED opengrep" in render_doctor_report(report)


@pytest.mark.parametrize("installed", [False, True])
def test_doctor_says_whether_bubblewrap_sandboxes_have_jq(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: bool
) -> None:
    if installed:
        (tmp_path / "jq").write_text("#!/bin/sh\n")
        (tmp_path / "jq").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    jq = finding_of(anyio.run(examine_machine), "jq")
    assert (jq.ready, jq.needed, jq.remedy) == (installed, False, "sudo apt-get install jq")
    assert ("bubblewrap" in jq.detail) is not installed


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (OK + b'{"Version"', "JSONDecodeError"),
        (OK + b'{"Version": "27.5.1"}', "ApiVersion"),
        (OK + b'{"Version": "1.12", "ApiVersion": "1.24"}', "too old: its API is 1.24, 1.40 is needed"),
        (b"HTTP/1.0 403 Forbidden\r\n\r\n", "403"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "did not answer like a container engine"),
        (b"", "did not answer like a container engine"),
    ],
)
def test_socket_with_an_invalid_answer_is_not_an_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes, detail: str
) -> None:
    path = tmp_path / "sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with serve_answer(path, answer):
        finding = finding_of(anyio.run(examine_machine), "DOCKER_HOST")
    assert not finding.ready
    assert detail in finding.detail
    assert not finding.needed


def test_doctor_socket_without_listener_is_not_an_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stale = tmp_path / "sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stale))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{stale}")
    finding = finding_of(anyio.run(examine_machine), "DOCKER_HOST")
    assert not finding.ready
    assert str(stale) in finding.detail


def test_doctor_reports_engine_version_storage_and_lean_image(
    docker_engine: DockerEngine, lean_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_engine.host)
    version = docker_engine.call("GET", "/version").json()["Version"]
    driver = docker_engine.call("GET", "/info").json()["Driver"]
    finding = finding_of(anyio.run(examine_machine), "DOCKER_HOST")
    assert finding.ready
    assert f"docker {version} at {docker_engine.socket}, {driver}" in finding.detail
    assert "quotas" in finding.detail
    assert finding.detail.endswith(f"{lean_image} is there")


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_doctor_and_run_explain_how_to_get_containment(tmp_path: Path) -> None:
    def without_namespaces(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, TESTS / "support" / "sandbox" / "forbid_namespaces.py", "everything", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    doctor = without_namespaces(PROGRAM, "doctor", "--json")
    assert doctor.returncode == 1, doctor.stderr
    report = json.loads(doctor.stdout)
    assert report["usable"] is False
    assert report["containment"] == ""
    containments = {containment["name"]: containment for containment in report["sandbox"]}
    assert set(containments) == {"bubblewrap", "landlock"}
    assert all(
        containment["needed"] and not containment["ready"] and containment["remedy"]
        for containment in containments.values()
    )

    config, out = TESTS.parent / "examples" / "quickstart.toml", f"run.out={tmp_path}/runs"
    run = without_namespaces(PROGRAM, "run", str(config), "--set", out)
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    assert "commands cannot be contained on this machine" in run.stderr
    for containment in containments.values():
        assert containment["remedy"] in run.stderr, "the run names the same fix as the doctor"
    assert not (tmp_path / "runs").exists(), "nothing was started"
