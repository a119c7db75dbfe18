from codetaste.agent.tool import Tool, ToolAnswer, tool
from codetaste.errors import CodetasteError, ConfigError, ToolError
from codetaste.results.load import Results, load
from codetaste.results.outcome import OutcomeFacet
from codetaste.results.rows.job import JobResult
from codetaste.results.rows.rule import RuleVerdict
from codetaste.results.rows.trial import TrialResult
from codetaste.run import FinishedRun
from codetaste.run import run_config as run

__version__: str
__all__ = [
    "CodetasteError",
    "ConfigError",
    "FinishedRun",
    "JobResult",
    "OutcomeFacet",
    "Results",
    "RuleVerdict",
    "Tool",
    "ToolAnswer",
    "ToolError",
    "TrialResult",
    "load",
    "run",
    "tool",
]
