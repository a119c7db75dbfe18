"""Commands as a shell reads them: which programs a line of shell starts, with which words.

The text is parsed by tree-sitter, so that a word in a comment, in a string or in a document that is handed to
a program starts nothing. Nothing is expanded: ``$x`` stays as it stands. Text that no shell could read is
read as far as it makes sense, and said to be *broken*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

MOST_BYTES = 128 * 1024
"""Linux takes no longer argument, so no shell is given a longer line."""
_LOOPS = frozenset({"for_statement", "c_style_for_statement", "while_statement"})
_NO_WORDS = frozenset({"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"})
_UNREAD = frozenset({"ERROR", "comment", "heredoc_body"})
_QUOTED = frozenset({"string", "raw_string", "ansi_c_string", "translated_string"})
_GLOB = frozenset("*?[{")


class Word(NamedTuple):
    """A word of a command, its quotes taken off; ``several`` if a shell could make several words of it."""

    text: str
    several: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a text.

    Attributes:
        words: its name and arguments, assignments and redirections left out.
        repeated: it stands in a loop.
        given: the document that it is handed (``<<``), "" without one.
    """

    words: tuple[Word, ...]
    repeated: bool = False
    given: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """Its words, as they stand."""
        return tuple(word.text for word in self.words)

    def after(self, count: int) -> Command:
        """Return the command that begins ``count`` words later."""
        return replace(self, words=self.words[count:])


@dataclass(frozen=True, slots=True)
class Script:
    """All commands of a text, and whether some of it could not be read."""

    commands: tuple[Command, ...]
    broken: bool = False


def parse_shell(text: str) -> Script:
    """Return the commands of ``text`` in order, those in substitutions, loops and functions too.

    A text beyond ``MOST_BYTES`` is broken, and so is one that no shell can read to its end.
    """
    source = text.encode("utf-8", "replace")
    if len(source) > MOST_BYTES:
        return Script((), broken=True)
    root = _parser().parse(source).root_node
    return Script(tuple(_commands(root)), broken=root.has_error)


@cache
def _parser() -> Parser:
    import tree_sitter_bash  # noqa: PLC0415 - only who reads transcripts needs it
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))


def _commands(root: Node) -> Iterator[Command]:
    todo: list[tuple[Node, bool, str]] = [(root, False, "")]
    while todo:
        node, repeated, given = todo.pop()
        if node.type in _UNREAD:
            continue
        if node.type == "command":
            yield _command(node, repeated=repeated, given=given)
            given = ""
        elif node.type == "redirected_statement":
            given = _given(node) or given
        children = node.children
        heir = _heir(node, children) if given else None
        inside = repeated or node.type in _LOOPS
        todo += [(child, inside, given if child == heir else "") for child in reversed(children)]


def _heir(node: Node, children: list[Node]) -> Node | None:
    """Return the part that is handed a document: the statement redirected, the last one of a pipe or list."""
    if node.type == "redirected_statement":
        return node.child_by_field_name("body")
    statements = [child for child in children if child.is_named]
    return statements[-1] if node.type in {"pipeline", "list"} and statements else None


def _given(node: Node) -> str:
    for redirect in node.children_by_field_name("redirect"):
        if redirect.type == "heredoc_redirect":
            return "".join(_text(each) for each in redirect.children if each.type == "heredoc_body")
    return ""


def _command(node: Node, *, repeated: bool, given: str) -> Command:
    words: list[Word] = []
    for child in node.named_children:
        if child.type == "herestring_redirect":
            given = "".join(_word(each).text for each in child.named_children)
        elif child.type == "heredoc_redirect":
            given = "".join(_text(each) for each in child.children if each.type == "heredoc_body")
        elif child.type == "command_name":
            words += [_word(each) for each in child.named_children]
        elif child.type not in _NO_WORDS:
            words.append(_word(child))
    return Command(tuple(words), repeated, given)


def _word(node: Node) -> Word:
    match node.type:
        case "concatenation":
            parts = [_word(child) for child in node.children]
            return Word("".join(part.text for part in parts), any(part.several for part in parts))
        case kind if kind in _QUOTED:
            return Word(_unquoted(node))
        case "command_substitution" | "brace_expression":
            return Word(_text(node), several=True)
        case _:
            text = _text(node)
            several = not _GLOB.isdisjoint(text) and text not in {"{}", "[", "[["}
            return Word(text.replace("\\\n", "").replace("\\", ""), several)


def _unquoted(node: Node) -> str:
    text = _text(node)
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "string" | "translated_string":
            inner = text[text.find('"') + 1 : -1]
            for escaped in ('\\"', "\\$", "\\`", "\\\\"):
                inner = inner.replace(escaped, escaped[1])
            return inner
        case _:
            return text[2:-1]


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
