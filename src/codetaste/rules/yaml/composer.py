"""Nodes of YAML 1.2 by ruamel.yaml, or ten times as fast by libyaml for the texts that both read alike.

Import it where it is used: both libraries are heavy.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import implicit_resolvers
from ruamel.yaml.scanner import Scanner
from yaml import YAMLError as LibyamlError
from yaml.resolver import BaseResolver

from codetaste.errors import RuleError
from codetaste.rules.yaml.syntax_advice import with_advice

try:
    from yaml.cyaml import CParser
except ImportError:  # PyYAML was built without libyaml
    CParser = None

Node = Any
"""A node of either library; their classes declare no attribute types."""

_READ_APART = re.compile(
    r"[^\n -~\u00a1-\u024f]"  # tabs, line ends and marks of Unicode
    r"|^(?:%|---|\.\.\.| +$)"  # directives, documents, lines of blanks in block scalars
    r"|[|>][-+0-9]* *#|!(?:[\s,\]}]|$)",  # a comment behind the header of a block scalar, the tag "!"
    re.MULTILINE,
)
"""What the two may read differently: YAML 1.1 and 1.2, and faults of either."""
_MAX_FLOW_LEVEL = 100
"""More than any rule file may have, with room for the list of rules around a rule."""


class _BoundedScanner(Scanner):
    """Refuses brackets that are nested too deeply, before the parser takes seconds to find that out."""

    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:  # noqa: ANN401, N803
        if self.flow_level > _MAX_FLOW_LEVEL:
            line = self.reader.line + 1
            raise RuleError(f"nested too deeply: {_MAX_FLOW_LEVEL} brackets are open", line=line)
        super().fetch_flow_collection_start(TokenClass, to_push)


def compose(text: str) -> Node:
    """Return the root node of the single document in ``text``, None if it is empty.

    Raises:
        RuleError: it is not YAML.
        RecursionError: it is nested too deeply.
    """
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Scanner = _BoundedScanner
        return yaml.compose(text)
    except MarkedYAMLError as error:
        # For something that is never closed, report the line where it begins.
        unclosed = "end of stream" in (error.problem or "")
        mark = (unclosed and error.context_mark) or error.problem_mark or error.context_mark
        line = 0 if mark is None else mark.line + 1
        message = "; ".join(part for part in (error.context, error.problem) if part)
        raise RuleError(with_advice(f"not YAML: {message}"), line=line) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise RuleError(f"not YAML: the character {error.character!r} is not allowed", line=line) from None
    except (YAMLError, ValueError, TypeError, IndexError, KeyError, AttributeError, AssertionError) as error:
        # ruamel raises some of these for damaged text.
        raise RuleError(f"not YAML: {' '.join(str(error).split())[:200]}") from None


def compose_fast(text: str) -> Node | None:
    """Return the mapping that ``compose`` returns, or None where that is not certain.

    Lines of empty scalars may differ. If the nodes turn out to have a fault, ``compose`` has to name it.
    """
    if _LibyamlLoader is None or _READ_APART.search(text):
        return None
    try:
        loader = _LibyamlLoader(text)
        BaseResolver.__init__(loader)
        root = loader.get_single_node()
    except (LibyamlError, ValueError):
        return None
    return root if getattr(root, "id", "") == "mapping" else None


def _make_loader() -> Any:  # noqa: ANN401 - a class of an extension module
    """Return the class that composes by libyaml with ruamel.yaml's tags of scalars, None without libyaml."""
    if CParser is None:
        return None
    loader: Any = type("LibyamlLoader", (CParser, BaseResolver), {})
    for versions, tag, regexp, first in implicit_resolvers:
        if (1, 2) in versions:
            loader.add_implicit_resolver(tag, regexp, first)
    return loader


_LibyamlLoader = _make_loader()
