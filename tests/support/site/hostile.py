"""Outputs of a run that try to break out of every text of a page."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}"
UNSEEN = "\x1b[31mred\x1b]8;;javascript:alert(3)\x07 \u202egnitset\u2066 zero\u200bwidth \ud800 nul\x00"
ATTACK = f"{MARKUP} {UNSEEN}"
PLACE = "instructed/direct/own/repo/0123abcd"


def write_hostile_run(folder: Path) -> Path:
    """Write the outputs of one trial, and of the null agent, whose texts are attacks; returns the run."""
    run = folder / "run"
    trial = run / "outputs" / PLACE / "agent"
    evaluation = trial / "evaluation"
    evaluation.mkdir(parents=True)
    name = "a<b>\\033[1m"
    patch = (
        f'diff --git "a/{name}.py" "b/{name}.py"\n--- "a/{name}.py"\n+++ "b/{name}.py"\n'
        f"@@ -1,2 +1,2 @@ {MARKUP}\n-old {ATTACK}\n+new {ATTACK}\n same\n"
    )
    (trial / "prediction.diff").write_bytes(patch.encode("utf-8", "surrogatepass"))
    _write_json(trial / "agent_config.json", {"id": f"agent {MARKUP}", "agent": _named(), "model": _named()})
    metadata = {
        "cost_usd": 1.0,
        "finish_reason": "success",
        "start_time": "2026-01-01T00:00:00+00:00",
        "finish_time": "2026-01-01T00:01:00+00:00",
        "description_type": "instructed",
        "mode": "direct",
        "additional": {"message": ATTACK},
    }
    _write_json(trial / "inference_metadata.json", metadata)
    for sign in ("positive", "negative"):
        _write_json(evaluation / f"rules_{sign}.sarif", _sarif(f"{name}.py".replace("\\033", "\x1b"), sign))
        (evaluation / f"rules_{sign}.yml").write_text(f"rules:\n- id: {sign}\n  message: '{MARKUP}'\n")
    counts = {"positive_rules_matched": 1, "total_positive_rules": 1}
    counts |= {"negative_rules_matched": 1, "total_negative_rules": 1}
    result = {"agent_rule_metrics": counts, "instance_metadata": {}, "agent_config": {}}
    result["agent_test_metrics"] = {"passed": 1, "failed": 0, "total": 1, "error": ATTACK}
    _write_json(evaluation / "evaluation_result.json", result)
    (evaluation / "test_output.txt").write_text(ATTACK.replace("\ud800", ""))
    lines = [
        {"model": MARKUP, "system": ATTACK, "tools": []},
        {"role": "user", "content": [{"type": "text", "text": ATTACK}]},
        {
            "role": "assistant",
            "content": [{"type": "call", "id": "1", "name": MARKUP, "arguments": {"x": ATTACK}}],
        },
        {"role": "user", "content": [{"type": "result", "call": "1", "content": ATTACK}]},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (trial / "inference.out").write_text(f"{text}{{broken {MARKUP}\n")
    return run


def _named() -> dict[str, str]:
    return {"name": MARKUP, "provider": MARKUP}


def _sarif(path: str, sign: str) -> object:
    region = {"startLine": 1, "endLine": 1}
    place = {"physicalLocation": {"artifactLocation": {"uri": path}, "region": region}}
    rule = f"rules.{sign}"
    other = {"ruleId": f"rules.x{MARKUP.replace('.', '')}", "locations": [place], "message": {"text": ATTACK}}
    results = [{"ruleId": rule, "locations": [place], "message": {"text": ATTACK}}, other]
    driver = {"rules": [{"id": rule, "fullDescription": {"text": ATTACK}}], "semanticVersion": "1.0.0"}
    return {"runs": [{"results": results, "tool": {"driver": driver}}]}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


class _Tags(HTMLParser):
    """Collects what a page can do: its scripts, its styles and the attributes that lead somewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag in {"style", "iframe", "object", "embed", "form", "img", "base"}:
            self.found.append(f"<{tag}>")
        if tag == "script" and not (known.get("src") or "").endswith(".js"):
            self.found.append("a script in the page")
        for name, value in attrs:
            text = (value or "").lower().lstrip()
            if name.startswith("on") or name in {"style", "srcdoc"}:
                self.found.append(f"{tag} {name}")
            if name in {"href", "src"} and ":" in text.split("/")[0].split("#")[0]:
                self.found.append(f"{tag} {name}={text[:40]}")


def harmful_parts(page: str) -> list[str]:
    """Return what in a page could run or lead elsewhere."""
    tags = _Tags()
    tags.feed(page)
    return tags.found
