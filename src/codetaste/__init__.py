"""Build and run code-refactoring benchmarks with concurrent agents under hard cost and time budgets.

``load`` reads the results of runs as plain rows, ``run`` runs a config, ``tool`` makes a tool for agents;
docs/api.md lists all names. They are imported when they are used, so that importing the package is cheap;
``__init__.pyi`` declares their types.
"""

from importlib import import_module

__version__ = "0.1.0"
_MODULES = {
    "CodetasteError": "errors",
    "ConfigError": "errors",
    "FinishedRun": "run",
    "JobResult": "results.rows.job",
    "OutcomeFacet": "results.outcome",
    "Results": "results.load",
    "RuleVerdict": "results.rows.rule",
    "Tool": "agent.tool",
    "ToolAnswer": "agent.tool",
    "ToolError": "errors",
    "TrialResult": "results.rows.trial",
    "load": "results.load",
    "tool": "agent.tool",
}
"""The module of each public name; ``run`` is a package that can be called."""
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


def __getattr__(name: str) -> object:
    """Import a public name when it is used first."""
    if name == "run":
        return import_module("codetaste.run")
    if name not in _MODULES:
        raise AttributeError(f"module 'codetaste' has no attribute {name!r}")
    value = getattr(import_module(f"codetaste.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return all names, those that are not imported yet included."""
    return sorted({*globals(), *__all__})
