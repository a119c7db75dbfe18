"""Parse shell text into commands: the programs that it starts and their words.

tree-sitter parses the text, so words in comments, strings and here-documents are not taken for commands.
Nothing is expanded: ``$x`` stays ``$x``. Text with syntax errors is parsed as far as possible, and
``has_errors`` is set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from codetaste.core.concurrency import per_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

MAX_SHELL_BYTES = 128 * 1024
"""Linux accepts no longer argument, so no shell gets a longer text."""
_LOOPS = frozenset({"for_statement", "c_style_for_statement", "while_statement"})
_NOT_WORDS = frozenset({"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"})
_SKIPPED = frozenset({"ERROR", "comment", "heredoc_body"})
_GLOB = frozenset("*?[{")


class ShellWord(NamedTuple):
    """A word of a command without its quotes; ``may_expand`` if a shell could expand it to several words."""

    text: str
    may_expand: bool = False


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command of a text: its name and arguments, without assignments and redirections.

    ``repeated`` means that it is in a loop; ``stdin`` is its here-document or here-string, "" without one.
    """

    words: tuple[ShellWord, ...]
    repeated: bool = False
    stdin: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of its words."""
        return tuple(word.text for word in self.words)

    def skip_words(self, count: int) -> ShellCommand:
        """Return the command without its first ``count`` words."""
        return replace(self, words=self.words[count:])


@dataclass(frozen=True, slots=True)
class ShellScript:
    """All commands of a text, and whether a part of it could not be parsed."""

    commands: tuple[ShellCommand, ...]
    has_errors: bool = False


def parse_shell(text: str) -> ShellScript:
    """Return the commands of ``text`` in order, including those in substitutions, loops and functions.

    A text longer than ``MAX_SHELL_BYTES`` or with a syntax error has ``has_errors`` set.
    """
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_SHELL_BYTES:
        return ShellScript((), has_errors=True)
    root = _parser().parse(source).root_node
    return ShellScript(tuple(_commands(root)), has_errors=root.has_error)


@per_thread
def _parser() -> Parser:
    import tree_sitter_bash  # noqa: PLC0415 - needed only to read transcripts
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))


def _commands(root: Node) -> Iterator[ShellCommand]:
    todo: list[tuple[Node, bool, str]] = [(root, False, "")]
    while todo:
        node, repeated, stdin = todo.pop()
        if node.type in _SKIPPED:
            continue
        if node.type == "command":
            yield _command(node, repeated=repeated, stdin=stdin)
            stdin = ""
        elif node.type == "redirected_statement":
            redirects = node.children_by_field_name("redirect")
            heredocs = [each for each in redirects if each.type == "heredoc_redirect"]
            stdin = (_heredoc_text(heredocs[0]) if heredocs else "") or stdin
        children = node.children
        reader = _stdin_reader(node, children) if stdin else None
        in_loop = repeated or node.type in _LOOPS
        todo += [(child, in_loop, stdin if child == reader else "") for child in reversed(children)]


def _stdin_reader(node: Node, children: list[Node]) -> Node | None:
    """Return the child that reads a here-document: the redirected statement, or a pipeline's last command."""
    if node.type == "redirected_statement":
        return node.child_by_field_name("body")
    statements = [child for child in children if child.is_named]
    return statements[-1] if node.type in {"pipeline", "list"} and statements else None


def _heredoc_text(redirect: Node) -> str:
    return "".join(_text(each) for each in redirect.children if each.type == "heredoc_body")


def _command(node: Node, *, repeated: bool, stdin: str) -> ShellCommand:
    words: list[ShellWord] = []
    for child in node.named_children:
        if child.type == "herestring_redirect":
            stdin = "".join(_word(each).text for each in child.named_children)
        elif child.type == "heredoc_redirect":
            stdin = _heredoc_text(child)
        elif child.type == "command_name":
            words += [_word(each) for each in child.named_children]
        elif child.type not in _NOT_WORDS:
            words.append(_word(child))
    return ShellCommand(tuple(words), repeated, stdin)


def _word(node: Node) -> ShellWord:
    text = _text(node)
    match node.type:
        case "concatenation":
            parts = [_word(child) for child in node.children]
            return ShellWord("".join(part.text for part in parts), any(part.may_expand for part in parts))
        case "raw_string":
            return ShellWord(text[1:-1])
        case "ansi_c_string":
            return ShellWord(text[2:-1])
        case "string" | "translated_string":
            inner = text[text.find('"') + 1 : -1]
            for escaped in ('\\"', "\\$", "\\`", "\\\\"):
                inner = inner.replace(escaped, escaped[1])
            return ShellWord(inner)
        case "command_substitution" | "brace_expression":
            return ShellWord(text, may_expand=True)
        case _:
            several = not _GLOB.isdisjoint(text) and text not in {"{}", "[", "[["}
            return ShellWord(text.replace("\\\n", "").replace("\\", ""), several)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
