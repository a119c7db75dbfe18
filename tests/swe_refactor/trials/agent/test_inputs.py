"""What decides the answer of an agent: its prompt, its tools or its release, its model, and the image."""

from __future__ import annotations

from pathlib import Path

from codetaste.benchmark.benchmark import Benchmark
from codetaste.flows.inputs import Inputs, InputSource
from codetaste.harness.adapter import load_adapter
from codetaste.harness.config import AgentConfig
from codetaste.llm.prompts import Prompts, open_prompts
from codetaste.sandbox.config import SandboxConfig
from codetaste.swe_refactor.config import StrategyConfig
from codetaste.swe_refactor.trials.inputs import trial_inputs
from codetaste.swe_refactor.trials.plan import StrategyTrial
from support.swe_refactor.shop import instance

OWN = AgentConfig(id="a", harness="codetaste", model="m")


def inputs(agent: AgentConfig | None, prompts: Prompts | None = None, image: str = "java") -> Inputs:
    strategy = StrategyConfig(kind="simple" if agent is None else "agent")
    trial = StrategyTrial(
        strategy,
        "a",
        "m",
        "m",
        scripted=True,
        instance=instance("Extract Method"),
        digest="digest",
        attempt=1,
        agent=agent,
    )
    source = InputSource(Benchmark(Path(), ()), prompts or Prompts(), {"m": "model"})
    adapters = {} if agent is None or agent.uses_own_loop else {"a": load_adapter(agent.harness, Path())}
    return trial_inputs(trial, source, SandboxConfig(image=image), adapters)


def changed(one: Inputs, other: Inputs) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def test_each_input_is_named(tmp_path: Path) -> None:
    own = inputs(OWN)
    assert "prompts/swe_refactor/agent.md" in own
    assert "prompts/swe_refactor/extract_inline.md" not in own
    assert "bash" in own["codetaste"], "the tools of the own loop"
    assert changed(own, inputs(OWN, image="other")) == {"sandbox.image"}
    assert changed(own, inputs(OWN.model_copy(update={"max_output_tokens": 2048}))) == {
        "agents.a.max_output_tokens"
    }
    (tmp_path / "swe_refactor").mkdir()
    (tmp_path / "swe_refactor" / "agent.md").write_text("Refactor {{ code_to_refactor }}.")
    assert changed(own, inputs(OWN, open_prompts(tmp_path))) == {"prompts/swe_refactor/agent.md"}
    assert "sandbox.image" not in inputs(None)


def test_a_command_line_agent_counts_by_its_release() -> None:
    agent = AgentConfig(id="a", harness="qwen-code", model="m")
    found = inputs(agent)
    assert found["agents.a.version"] == "0.7.1"
    assert changed(found, inputs(agent.model_copy(update={"version": "0.7.0"}))) == {"agents.a.version"}
