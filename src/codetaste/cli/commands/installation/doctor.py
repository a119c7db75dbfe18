"""``codetaste doctor``: check which tools, sandboxes, container engines and keys work on this machine.

Everything is actually tried: programs print their version, a command runs in the sandbox, a container engine
answers on its socket. Of keys only the presence is reported.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import get_args

import anyio
import anyio.to_thread

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.paths import cache_dir, constraints_file, resource_dir
from codetaste.core.text import one_line
from codetaste.errors import CodetasteError, ConfigError, SandboxError, SandboxMissing, ToolMissing
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import is_installed
from codetaste.java.checkstyle.service import CHECKSTYLE
from codetaste.java.jdt.service import ARTIFACT_SET as JDT_JARS
from codetaste.llm.providers.retirement import retirement_note
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_miner
from codetaste.rules.engine.install import find_rule_engine
from codetaste.run.config import read_config
from codetaste.sandbox.containment.engine import probe_engines
from codetaste.sandbox.docker.base_image import detect_quota
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.engine import (
    AUTO,
    DOCKER,
    NO_ENGINE,
    EngineSocket,
    candidate_sockets,
    connect_engine,
)
from codetaste.sandbox.docker.images import require_image
from codetaste.swe_refactor.verify.settings import JACOCO

_VERSION_TIMEOUT_S = 10.0

_OPENGREP_WHEELS = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")}
_OPENGREP_FALLBACK = "name a program of release 1.30.0 in OPENGREP_BIN"

OTHER_PLATFORMS = (
    "Linux x86-64: everything; codetaste is tested there.",
    "Linux aarch64: opengrep, ripgrep and bubblewrap come with the packages too, but it is untested.",
    "macOS: no sandbox, so no rule agent (bubblewrap and Landlock are Linux's): use a virtual machine.",
    "macOS on Apple silicon: opengrep comes with the packages; `codetaste rules check` is untested there.",
)
"""What works on other platforms."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        name: what was checked.
        ready: it is installed and works.
        needed: rules cannot be discovered without it.
        detail: version and path, or the problem.
        remedy: the command or the step that fixes it, "" if there is none.
        warning: what should be known although it works, "" if nothing.
    """

    name: str
    ready: bool = False
    needed: bool = False
    detail: str = ""
    remedy: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All findings of a machine. A run uses the first entry of ``sandbox``, best first, that is ready."""

    system: str
    tools: tuple[Finding, ...]
    sandbox: tuple[Finding, ...]
    containers: tuple[Finding, ...]
    keys: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether rules can be discovered on this machine."""
        everything = (*self.tools, *self.sandbox, *self.containers, *self.keys)
        return all(finding.ready for finding in everything if finding.needed)

    @property
    def containment(self) -> str:
        """The name of the sandbox in which a run contains commands, "" if there is none."""
        return next((finding.name for finding in self.sandbox if finding.ready), "")


@command
async def doctor(*, json_: AsJson = False) -> int:
    """Print what works on this machine.

    Args:
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if rules cannot be discovered on this machine.
    """
    report = await examine_machine()
    print_result(doctor_to_json(report) if json_ else render_doctor_report(report))
    return 0 if report.usable else 1


async def examine_machine() -> DoctorReport:
    """Check this machine."""
    return DoctorReport(
        system=f"{platform.system()} {platform.machine()}",
        tools=(
            _check_python(),
            _check_packages(),
            await _check_opengrep(),
            _check_ripgrep(),
            _check_jq(),
            await _check_git(),
            *await _check_refactoring_miner(),
            *await _check_java_tools(),
        ),
        sandbox=await _check_sandbox(),
        containers=tuple([await _check_engine(place) for place in candidate_sockets()]),
        keys=_check_keys(),
    )


def doctor_to_json(report: DoctorReport) -> str:
    """Return the report as JSON."""
    summary = {"usable": report.usable, "containment": report.containment}
    return json_document({**summary, **asdict(report), "other_platforms": list(OTHER_PLATFORMS)})


def render_doctor_report(report: DoctorReport) -> str:
    """Return the report as text for humans."""
    shell = f"untrusted commands: {report.containment or 'nothing'} contains them"
    blocks = (
        ("tools", report.tools),
        (shell, report.sandbox),
        ("container engines (optional: coding agents run in bubblewrap without one)", report.containers),
        ("keys (only whether they are set)", report.keys),
    )
    lines = [f"codetaste on {report.system}"]
    for title, findings in blocks:
        lines += ["", title, *(line for finding in findings for line in _finding_lines(finding))]
    lines += ["", "other machines", *(f"  {text}" for text in OTHER_PLATFORMS), ""]
    lines.append(
        "ready: rules can be discovered here" if report.usable else "not ready: fix what is marked NEEDED"
    )
    return "\n".join(lines)


def _finding_lines(finding: Finding) -> list[str]:
    mark = "ok" if finding.ready else "NEEDED" if finding.needed else "-"
    lines = [f"  {mark:<7}{finding.name}: {finding.detail}"]
    if finding.remedy and not finding.ready:
        lines.append(f"         to get it: {finding.remedy}")
    if finding.warning:
        lines.append(f"         warning: {finding.warning}")
    return lines


def _check_python() -> Finding:
    version = platform.python_version()
    return Finding("python", ready=True, needed=True, detail=f"{version} at {sys.executable}")


def _check_packages() -> Finding:
    """Compare the packages that codetaste needs with the releases that it is tested with."""
    constraints = constraints_file()
    lines = (line.partition("==") for line in constraints.read_text("utf-8").splitlines())
    tested = {_package_key(name): release for name, found, release in lines if found}
    installed = _needed_packages()
    differing = [
        f"{name} {release} ({tested[name]})"
        for name, release in sorted(installed.items())
        if tested.get(name, release) != release
    ]
    if not differing:
        return Finding("packages", ready=True, detail=f"{len(installed)}, each in the tested release")
    return Finding(
        "packages",
        detail=f"not in the tested release (in brackets): {', '.join(differing)}",
        remedy=f"pip install -c {constraints} codetaste",
    )


def _needed_packages() -> dict[str, str]:
    """Return the releases of the installed packages that codetaste needs, directly or not."""
    found: dict[str, str] = {}
    remaining = ["codetaste"]
    while remaining:
        with suppress(metadata.PackageNotFoundError):  # one for another platform
            for text in metadata.distribution(remaining.pop()).requires or ():
                name = _package_key(re.split(r"[^\w.-]", text, maxsplit=1)[0])
                if name not in found and "extra ==" not in text:
                    with suppress(metadata.PackageNotFoundError):
                        found[name] = metadata.version(name)
                        remaining.append(name)
    return found


def _package_key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


async def _check_opengrep() -> Finding:
    packaged = (platform.system(), platform.machine()) in _OPENGREP_WHEELS
    remedy = f"pip install tackbox-opengrep, or {_OPENGREP_FALLBACK}" if packaged else _OPENGREP_FALLBACK
    try:
        engine = await find_rule_engine()
    except CodetasteError as error:
        return Finding("opengrep", needed=True, detail=str(error), remedy=remedy)
    kind = "pinned" if engine.is_pinned else "not the pinned one"
    detail = f"{engine.version}, {kind}, from {engine.origin}: {engine.source_file}"
    return Finding("opengrep", ready=True, needed=True, detail=detail, warning=engine.warning)


def _check_ripgrep() -> Finding:
    beside = str(Path(sys.executable).parent)
    found = shutil.which("rg") or shutil.which("rg", path=beside)
    purpose = "the rule agent's shell uses it if it is installed, and grep otherwise"
    remedy = "pip install ripgrep==14.1.0"
    return Finding("ripgrep", ready=found is not None, detail=found or purpose, remedy=remedy)


def _check_jq() -> Finding:
    found = shutil.which("jq")
    purpose = "scripts of the published harness's agents use it; in bubblewrap it has to be the host's"
    return Finding("jq", ready=found is not None, detail=found or purpose, remedy="sudo apt-get install jq")


async def _check_refactoring_miner() -> tuple[Finding, ...]:
    """Check which JDK and jars each release of RefactoringMiner has; only comparing refactorings needs it."""
    cache = await anyio.to_thread.run_sync(cache_dir, notify)
    findings = []
    for version in get_args(RefactoringMinerConfig.model_fields["version"].annotation):
        name = f"RefactoringMiner {version}"
        remedy = f"codetaste java install refactoring-miner-{version}"
        try:
            program = await refactoring_miner(RefactoringMinerConfig(version=version), cache)
        except ToolMissing as error:
            findings.append(Finding(name, detail=one_line(error), remedy=remedy))
            continue
        detail = f"{len(program.class_path)} jars, run by the JDK {program.jdk.version} in {program.jdk.home}"
        findings.append(Finding(name, ready=True, detail=detail))
    return tuple(findings)


async def _check_java_tools() -> tuple[Finding, ...]:
    """Check what else SWE-Refactor needs: sets of jars, and Maven or an image."""
    cache = await anyio.to_thread.run_sync(cache_dir, notify)
    findings = []
    for name, purpose in (
        (JDT_JARS, "codetaste swe-refactor build reads what surrounds a method with them"),
        (JACOCO, "codetaste swe-refactor build measures what tests cover with them"),
        (CHECKSTYLE, "reviewers of SWE-Refactor's strategy multi-agent read the style of answers with them"),
    ):
        ready = await anyio.to_thread.run_sync(is_installed, load_artifact_set(name), cache)
        detail = "its jars are installed" if ready else purpose
        findings.append(Finding(name, ready=ready, detail=detail, remedy=f"codetaste java install {name}"))
    found = shutil.which("mvn")
    purpose = "codetaste swe-refactor build verifies with it, where no container engine has the Java image"
    remedy = "sudo apt-get install maven, or: codetaste image build --java"
    return *findings, Finding("Maven", ready=found is not None, detail=found or purpose, remedy=remedy)


async def _check_sandbox() -> tuple[Finding, ...]:
    """Try each containment engine; they are marked as needed only if none works."""
    probes = await anyio.to_thread.run_sync(probe_engines)
    used = next((report for report in probes if report.works), None)
    return tuple(
        Finding(
            report.kind,
            ready=report.works,
            needed=used is None,
            detail=f"{report.origin}: {', '.join(report.protections) if report.works else report.problem}",
            remedy=report.fix,
            warning=report.warning if report is used else "",
        )
        for report in probes
    )


async def _check_git() -> Finding:
    found, remedy = shutil.which("git"), "sudo apt-get install git"
    if found is None:
        purpose = "only instances whose commits come from a repository need it; the quickstart does not"
        return Finding("git", detail=purpose, remedy=remedy)
    with anyio.move_on_after(_VERSION_TIMEOUT_S):
        done = await anyio.run_process([found, "--version"], check=False, stderr=subprocess.STDOUT)
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        detail = f"{lines[0] if lines else 'no version'} at {found}"
        return Finding("git", ready=done.returncode == 0, detail=detail, remedy=remedy)
    return Finding("git", detail=f"{found} does not answer", remedy=remedy)


async def _check_engine(place: EngineSocket) -> Finding:
    """Connect to the engine on a socket, and check its storage driver and whether it has the lean image."""
    name, socket = place.name, place.socket
    remedy = "sudo apt-get install docker.io" if name == DOCKER else ""
    if not await anyio.Path(socket).exists():
        return Finding(name, detail=f"nothing at {socket}", remedy=remedy)
    try:
        async with connect_engine(AUTO, socket) as engine:
            about = f"{engine.kind} {engine.version} at {socket}, {await engine.describe_storage()}"
            try:
                await require_image(engine, LEAN_IMAGE)
                await detect_quota(engine, LEAN_IMAGE)
            except SandboxMissing:
                remedy = f"codetaste image build --lean --socket {socket}"
                return Finding(name, detail=f"{about}; no lean image", remedy=remedy)
    except SandboxError as error:
        detail = str(error).removeprefix(NO_ENGINE).partition("; install and start")[0]
        remedy = "sudo usermod -aG docker $USER, then log in again" if not os.access(socket, os.W_OK) else ""
        return Finding(name, detail=detail, remedy=remedy)
    quota = "with quotas" if engine.quota else "no quotas: disk use of sandboxes is monitored"
    return Finding(name, ready=True, detail=f"{about} {quota}; {LEAN_IMAGE} is there")


def _check_keys() -> tuple[Finding, ...]:
    """Check whether the keys that the examples' models need are set, without reading their values.

    A warning names models of theirs that are retired, or will be soon.
    """
    needed_by: dict[str, dict[str, list[str]]] = {}
    for path in sorted(resource_dir("examples").glob("*.toml")):
        try:
            models = read_config(path).models
        except ConfigError:  # of a run that has not been made yet: its benchmark is unknown
            continue
        for model in models:
            if model.key_env is not None:
                needed_by.setdefault(model.key_env, {}).setdefault(path.name, []).append(model.model)
    findings = []
    for name, files in sorted(needed_by.items()):
        is_set = bool(os.environ.get(name))
        verb = "needs" if len(files) == 1 else "need"
        detail = f"{'set' if is_set else 'not set'}; {', '.join(files)} {verb} it"
        remedy, used = f"export {name}=…", dict.fromkeys(chain(*files.values()))
        warning = "; ".join(filter(None, map(retirement_note, used)))
        findings.append(Finding(name, ready=is_set, detail=detail, remedy=remedy, warning=warning))
    return tuple(findings)
