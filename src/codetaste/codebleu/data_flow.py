"""The data flow of a text: from which variables the value of each one comes (CodeBLEU §3.3).

What the published tool takes as a variable is kept: each token that is not a word of the grammar, types,
methods and literals included. The walk is a generator for each node, so that code may be nested to any depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.codebleu.java import LITERALS
from codetaste.codebleu.limits import MAX_STEPS, CodeTooLarge

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from codetaste.codebleu.syntax_tree import Node, SyntaxTree

    States = dict[str, tuple[int, ...]]
    """The tokens at which each variable may have got its value."""
    Walk = Generator[tuple[Node, States], States, States]
    """Yields nodes to be walked with their states; gets and returns the states behind them."""

_COMES, _COMPUTED = "comesFrom", "computedFrom"


@dataclass(frozen=True, slots=True)
class Flow:
    """One variable at one token, and the variables from which its value comes, each once."""

    variable: str
    relation: str
    sources: tuple[str, ...]


def data_flow(tree: SyntaxTree, texts: Sequence[str]) -> list[Flow]:
    """Return the data flow, in the order of the tokens.

    Args:
        tree: the syntax tree.
        texts: the text of each of its tokens.

    Raises:
        CodeTooLarge: loops are nested so deeply that the walk takes more than ``MAX_STEPS`` steps.
    """
    collector = _Collector(tree, texts)
    walks: list[Walk] = [collector.walk(tree.root, {})]
    states: States | None = None
    while walks:
        try:
            node, before = next(walks[-1]) if states is None else walks[-1].send(states)
        except StopIteration as end:
            walks.pop()
            states = end.value
        else:
            walks.append(collector.walk(node, before))
            states = None
    return list(collector.flows())


class _Collector:
    """The walk over the nodes of one tree, and what it has found."""

    def __init__(self, tree: SyntaxTree, texts: Sequence[str]) -> None:
        # Tokens that the parser added at one place count as one.
        last = {(token.start, token.end): index for index, token in enumerate(tree.tokens)}
        self._index = [last[token.start, token.end] for token in tree.tokens]
        self._texts = texts
        self._is_variable = [token.kind != text for token, text in zip(tree.tokens, texts, strict=True)]
        self._found: dict[int, tuple[str, dict[str, None]]] = {}
        self._sources: set[int] = set()
        self._steps = 0

    def flows(self) -> Iterable[Flow]:
        """Return what has a source, or is one."""
        for index in sorted(self._found):
            relation, names = self._found[index]
            if names or index in self._sources:
                yield Flow(self._texts[index], relation, tuple(names))

    def walk(self, node: Node, states: States) -> Walk:  # noqa: PLR0911 - one for each kind
        """Return the walk of a node, by its kind."""
        if _is_token(node):
            return self._sequence([node], states)
        match node.kind:
            case "variable_declarator":
                return self._declaration(node.child("name"), node.child("value"), states)
            case "assignment_expression":
                return self._assignment(node.child("left"), node.child("right"), _COMPUTED, states)
            case "update_expression":
                changed = self._variables(node)
                self._assign(changed, changed, _COMPUTED, states)
                return self._sequence((), states)
            case "if_statement":
                return self._branches(node, states)
            case "for_statement":
                return self._for(node, states)
            case "enhanced_for_statement":
                return self._for_each(node, states)
            case "while_statement":
                return self._sequence([*node.children, *node.children], states)
            case _:
                return self._sequence(node.children, states)

    def _token(self, index: int, kind: str, states: States) -> None:
        name = self._texts[index]
        if kind == name:
            return
        if name in states:
            self._add(index, _COMES, [name], states[name])
            return
        self._add(index, _COMES, (), ())
        if kind == "identifier":
            states[name] = (index,)

    def _sequence(self, nodes: Iterable[Node], states: States) -> Walk:
        for node in nodes:
            self._count(1)
            if _is_token(node):
                self._token(self._index[node.first], node.kind, states)
            else:
                states = yield node, states
        return states

    def _declaration(self, name: Node | None, value: Node | None, states: States) -> Walk:
        if value is not None:
            return self._assignment(name, value, _COMES, states)
        for index in self._variables(name):
            self._add(index, _COMES, (), ())
            states[self._texts[index]] = (index,)
        return self._sequence((), states)

    def _assignment(self, target: Node | None, value: Node | None, relation: str, states: States) -> Walk:
        if value is not None:
            states = yield value, states
        self._assign(self._variables(target), self._variables(value), relation, states)
        return states

    def _branches(self, node: Node, states: States) -> Walk:
        """Walk an ``if``: behind it a variable may have its value of before, or that of any branch."""
        first, others = self._copy(states), []
        is_first = True
        for child in node.children:
            is_first = is_first and child.kind not in {"if_statement", "else"}
            if is_first:
                first = yield child, first
            else:
                others.append((yield child, self._copy(states)))
        merged: dict[str, set[int]] = {}
        for each in (*others, first, states):
            for name, indexes in each.items():
                self._count(1 + len(indexes))
                merged.setdefault(name, set()).update(indexes)
        return {name: tuple(sorted(indexes)) for name, indexes in merged.items()}

    def _for(self, node: Node, states: States) -> Walk:
        """Walk a ``for``, and what follows its declaration twice: the values of one turn reach the next."""
        states = yield from self._sequence(node.children, states)
        kinds = [child.kind for child in node.children]
        if "local_variable_declaration" in kinds:
            again = kinds.index("local_variable_declaration") + 1
            states = yield from self._sequence(node.children[again:], states)
        return states

    def _for_each(self, node: Node, states: States) -> Walk:
        value, body = node.child("value"), node.child("body")
        for _turn in range(2):
            states = yield from self._assignment(node.child("name"), value, _COMPUTED, states)
            if body is not None:
                states = yield body, states
        return states

    def _assign(self, targets: Sequence[int], sources: Sequence[int], relation: str, states: States) -> None:
        for target in targets:
            if sources:
                self._add(target, relation, [self._texts[each] for each in sources], sources)
            states[self._texts[target]] = (target,)

    def _add(self, index: int, relation: str, names: Iterable[str], sources: Sequence[int]) -> None:
        self._count(1 + len(sources))
        self._found.setdefault(index, (relation, {}))[1].update(dict.fromkeys(names))
        self._sources.update(sources)

    def _variables(self, node: Node | None) -> list[int]:
        """Return the variables below a node, by their tokens."""
        if node is None:
            return []
        self._count(node.last - node.first)
        return [self._index[each] for each in range(node.first, node.last) if self._is_variable[each]]

    def _copy(self, states: States) -> States:
        self._count(len(states))
        return dict(states)

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise CodeTooLarge(f"its data flow takes more than {MAX_STEPS:,} steps")


def _is_token(node: Node) -> bool:
    return not node.children or node.kind in LITERALS
