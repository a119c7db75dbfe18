"""Instances of a commit's refactorings, with real git and Eclipse JDT."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import install_artifacts
from codetaste.java.jdt.service import ARTIFACT_SET, open_jdt
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.dataset.format import format_instances, parse_instances
from codetaste.swe_refactor.enrich.enrich import ENRICHED, UNUSABLE, enrich_commit
from support.swe_refactor.history import BEFORE, CALLER, A, detections, make_history

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]


async def test_each_refactoring_becomes_an_instance_with_its_context(
    java_cache: Path, tmp_path: Path
) -> None:
    path, commit = make_history(tmp_path / "repository")
    found = detections()
    broken = replace(found["Move Method"], left=())
    await install_artifacts(load_artifact_set(ARTIFACT_SET), java_cache)
    async with open_jdt(java_cache) as jdt:
        repository = await open_repository(path)
        made = await enrich_commit(jdt, repository, commit, [*found.values(), broken])
    assert [each.outcome for each in made] == [*[ENRICHED] * 4, UNUSABLE]
    assert made[-1].message == "Move Method: RefactoringMiner names no original method declaration"
    extract = made[0].instance
    assert extract is not None
    assert extract.class_signature_before == "public class A extends Base "
    assert "p.A#twice" in (extract.invoked_method or "")
    context = extract.context
    assert context is not None
    assert context.type is not None
    assert context.type.source == BEFORE[A].partition("\n\n")[2].rstrip("\n")
    assert [(each.path, each.member) for each in context.callers] == [(CALLER, "p.sub.Caller#use")]
    assert [each.name for each in context.callees] == ["twice"]
    assert [each.name for each in context.parents] == ["p.Base"]
    assert [each.name for each in context.children] == ["p.sub.Caller"]
    assert extract.structure is not None
    assert set(extract.structure.java_files) == set(BEFORE)
    instances = [each.instance for each in made if each.instance]
    assert parse_instances(format_instances(instances), "file") == tuple(instances)
    assert json.loads(format_instances(instances))[0]["codetaste"]["context"]["outcome"] == "found"


async def test_when_jdt_gives_no_answer_each_refactoring_says_so(java_cache: Path, tmp_path: Path) -> None:
    path, commit = make_history(tmp_path / "repository")
    await install_artifacts(load_artifact_set(ARTIFACT_SET), java_cache)
    async with open_jdt(java_cache, timeout_s=0.001) as jdt:
        made = await enrich_commit(jdt, await open_repository(path), commit, list(detections().values()))
    assert {each.outcome for each in made} == {"jdt_timeout"}
