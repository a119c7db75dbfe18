"""An exported task in real containers: the golden patch passes its verifier, and no work does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from codetaste.errors import ToolMissing
from codetaste.rules.engine.install import find_rule_engine
from support.assembly.harbor_containers import HarborContainers, build_image, engine_context
from support.assembly.product_run import with_counts, write
from support.environment.tested_benchmark import make_tested_benchmark, make_tested_workspace
from support.flows.discovery_models import NEW, OLD
from support.system.dockerd import DockerEngine

BASE = "harbor-test-base:1"


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_golden_patch_passes_in_the_built_images_and_no_work_does_not(
    tmp_path: Path, docker_engine: DockerEngine, lean_image: str
) -> None:
    try:
        rule_engine = anyio.run(find_rule_engine)
    except ToolMissing as error:
        pytest.skip(str(error))
    build_image(docker_engine, engine_context(lean_image, rule_engine.source_file), BASE)
    bench, row = make_tested_benchmark(tmp_path / "made")
    rules, texts = (bench.root / "assets" / name / row.path for name in ("rules", "descriptions"))
    write(rules / "rules_positive.yml", with_counts(NEW))
    write(rules / "rules_negative.yml", with_counts(OLD))
    for name in ("description.md", "open_description.md"):
        write(texts / name, "Give what fetches its new name.\n")
    made = make_tested_workspace(tmp_path / "work", bench, tmp_path / "cache", "", "")
    of = ("--benchmark", str(bench.root), "--repos", str(bench.repos))
    engine = ("--image", BASE, "--socket", str(docker_engine.socket), "--no-registries")
    built = made.cli("environment", "build", *of, *engine)
    assert built.code == 0, built.err
    shutil.copytree(next(made.folder.glob("runs/*/environment")), bench.root, dirs_exist_ok=True)
    exported = made.cli("benchmark", "export", "--harbor", str(tmp_path / "tasks"), *of)
    assert exported.code == 0, exported.out

    task = HarborContainers(docker_engine, tmp_path / "tasks" / row.id)
    task.build()
    golden = task.run("/solution/solve.sh", task.solution())
    passed = {"pass": 1, "applies": 1, "tests_passed": 12, "tests_failed": 0}
    assert golden == {"reward": 1.0, "ifr": 1.0, **passed}
    assert task.run(":") == {"reward": 0.0, "ifr": 0.0, **passed}
    for part in ("agent", "verifier"):
        labels = docker_engine.call("GET", f"/images/harbor-test-{part}/json").json()["Config"]["Labels"]
        assert labels["codetaste.key"] == ""
