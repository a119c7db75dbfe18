"""codetaste doctor: what works here, really tried; what does not, and how to get it; keys never shown."""

from __future__ import annotations

import json
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from codetaste.cli.commands.doctor import (
    DoctorReport,
    Finding,
    doctor_to_json,
    examine_machine,
    render_doctor_report,
)

if TYPE_CHECKING:
    from support.system.dockerd import DockerEngine

OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
TESTS = Path(__file__).resolve().parents[1]
PROGRAM = str(Path(sys.executable).with_name("codetaste"))


def found(report: DoctorReport, name: str) -> Finding:
    everything = (*report.tools, *report.sandbox, *report.containers, *report.keys)
    return next(finding for finding in everything if finding.name == name)


@contextmanager
def answering(place: Path, answer: bytes) -> Iterator[None]:
    """A server on a Unix socket that says ``answer`` to whoever connects."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(answer)

    with socketserver.ThreadingUnixStreamServer(str(place), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_where_everything_is_there_the_machine_is_usable(bubblewrap: Path) -> None:
    report = anyio.run(examine_machine)
    assert report.usable
    assert found(report, "python").detail.startswith(sys.version.split()[0])
    assert "1.30.0, pinned" in found(report, "opengrep").detail
    assert report.containment in {"bubblewrap", "landlock"}
    text = render_doctor_report(report)
    assert text.endswith("ready: the main job can run here")
    assert "macOS" in text
    assert "aarch64" in text


def test_doctor_reports_key_as_set_without_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-value-that-nobody-may-see")
    report = anyio.run(examine_machine)
    assert found(report, "ANTHROPIC_API_KEY").ready
    assert "a-value-that-nobody-may-see" not in render_doctor_report(report) + doctor_to_json(report)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    missing = found(anyio.run(examine_machine), "ANTHROPIC_API_KEY")
    assert not missing.ready
    assert not missing.needed
    assert "quickstart-live.toml" in missing.detail
    assert missing.remedy.startswith("export ANTHROPIC_API_KEY=")


def test_an_opengrep_that_is_no_program_makes_the_machine_unusable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENGREP_BIN", str(tmp_path / "nothing"))
    report = anyio.run(examine_machine)
    assert not report.usable
    finding = found(report, "opengrep")
    assert (finding.ready, finding.needed) == (False, True)
    assert str(tmp_path / "nothing") in finding.detail
    assert "OPENGREP_BIN" in finding.remedy
    assert "NEEDED opengrep" in render_doctor_report(report)


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
def test_a_container_engine_that_does_not_answer_as_one_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes, detail: str
) -> None:
    place = tmp_path / "sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place}")
    with answering(place, answer):
        finding = found(anyio.run(examine_machine), "DOCKER_HOST")
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
    finding = found(anyio.run(examine_machine), "DOCKER_HOST")
    assert not finding.ready
    assert str(stale) in finding.detail


def test_doctor_reports_engine_version_storage_and_lean_image(
    docker_engine: DockerEngine, lean_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_engine.host)
    version = docker_engine.call("GET", "/version").json()["Version"]
    driver = docker_engine.call("GET", "/info").json()["Driver"]
    finding = found(anyio.run(examine_machine), "DOCKER_HOST")
    assert finding.ready
    assert f"docker {version} at {docker_engine.socket}, {driver}" in finding.detail
    assert "quotas" in finding.detail
    assert finding.detail.endswith(f"{lean_image} is there")


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_doctor_without_containment_explains_what_to_do(tmp_path: Path) -> None:
    def in_such_a_place(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, TESTS / "support" / "sandbox" / "forbid_namespaces.py", "everything", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    doctor = in_such_a_place(PROGRAM, "doctor", "--json")
    assert doctor.returncode == 1, doctor.stderr
    report = json.loads(doctor.stdout)
    assert report["usable"] is False
    assert report["containment"] == ""
    ways = {way["name"]: way for way in report["sandbox"]}
    assert set(ways) == {"bubblewrap", "landlock"}
    assert all(way["needed"] and not way["ready"] and way["remedy"] for way in ways.values())

    run = in_such_a_place(PROGRAM, "run", str(TESTS.parent / "examples" / "quickstart.toml"))
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    assert "commands cannot be contained on this machine" in run.stderr
    for way in ways.values():
        assert way["remedy"] in run.stderr, "the run names the same fix as the doctor"
    assert not (tmp_path / "runs").exists(), "nothing was started"
