"""A failure label and a case study of one trial, filed in its run."""

from __future__ import annotations

import json
from pathlib import Path

EXCERPT = "3 passed, as it printed"


def write_studies(run: Path, instance: str, agent: str) -> None:
    """File a label and a study of a trial of the track "instructed", mode "direct"."""
    origin = {"instance": instance, "track": "instructed", "mode": "direct", "by": "judge"}
    evidence = [{"command": "cat tests.log", "excerpt": EXCERPT}]
    of_trial = {"agent": agent, "attempt": 1}
    common = {"schema_version": 1, "origin": origin}
    assessment = {**of_trial, "text": "poor", "claims": [{"text": "it stops", "evidence": evidence}]}
    label = {**common, **of_trial, "label": "shim", "reason": "because", "evidence": evidence}
    study = {**common, "summary": "all", "trials": [assessment]}
    for name, data in (("labels", label), ("reports", study)):
        path = run / "case_studies" / name / "judge.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(data))
