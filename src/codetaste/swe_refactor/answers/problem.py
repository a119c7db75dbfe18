"""Why an answer cannot be used: one name and one sentence, which a model can be told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AnswerProblemKind(StrEnum):
    """The names of problems, in the order in which they are looked for."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NO_PARTS = "no_parts"
    """No line of number signs, so it is prose or code outside of the format."""
    WRONG_PARTS = "wrong_parts"
    """More or fewer parts than the format has."""
    NO_CODE = "no_code"
    """A part is empty, or has fences or comments only."""
    SEVERAL_BLOCKS = "several_blocks"
    """A part has several fenced blocks."""
    HTML = "html"
    OTHER_LANGUAGE = "other_language"
    UNBALANCED = "unbalanced"
    """Half a method: brackets are not closed, or closed too often."""
    SYNTAX_ERROR = "syntax_error"
    TOO_COMPLEX = "too_complex"
    """It takes the parser too long."""
    NO_METHOD = "no_method"
    """Java, but without a method."""
    TWO_CLASSES = "two_classes"
    DUPLICATE = "duplicate"
    """A method that occurs twice in a part."""
    ELIDED = "elided"
    """A comment such as "rest of the code" stands for statements of a method."""
    METHOD_NAME = "method_name"
    """The method that must be there has another name."""
    AMBIGUOUS = "ambiguous"
    """Several methods of the part can be the one that must be there."""
    NOT_INLINED = "not_inlined"
    """The method that must go away is still there."""
    NO_NEW_METHOD = "no_new_method"
    """Nothing was extracted or moved."""
    BAD_PATH = "bad_path"
    """No path, or that of no Java file."""
    OUTSIDE = "outside"
    """A path that leads out of the repository, into a link, or into git's own files."""
    WRONG_FILE = "wrong_file"
    """Another file than the one of the method that takes the code in."""
    NO_FILE = "no_file"
    """The target file does not exist, and must."""
    CLASS_EXISTS = "class_exists"
    WRONG_CLASS = "wrong_class"
    """A class that the file does not have, or that does not fit to a new file."""
    SAME_CLASS = "same_class"
    """The method is moved to where it is."""
    METHOD_EXISTS = "method_exists"
    CHANGES_OTHER_CODE = "changes_other_code"
    """It changes members that are not part of the refactoring."""
    NOT_ENCODABLE = "not_encodable"
    """A character that the encoding of the file does not have."""
    WRONG_TREE = "wrong_tree"
    """The files are not those before the commit: no fault of the answer."""
    REFUSED = "refused"
    """The model refuses to answer."""
    CUT_OFF = "cut_off"
    """The reply ends at its limit of tokens."""
    PROMPT_TOO_LONG = "prompt_too_long"
    """The model cannot take the prompt."""
    NO_ANSWER = "no_answer"
    """The work of an agent ended before it answered."""
    NO_CHANGE = "no_change"
    """An agent changed no file."""
    BAD_PATCH = "bad_patch"
    """Changes of an agent that cannot be taken as a whole, such as a file that is too large."""


@dataclass(frozen=True, slots=True)
class AnswerProblem:
    """The first problem of an answer.

    Attributes:
        kind: its name.
        sentence: what is wrong, and what must be there.
    """

    kind: AnswerProblemKind
    sentence: str


class AnswerFault(Exception):
    """Raised inside of this folder only: carries the problem to the function that returns it."""

    def __init__(self, kind: AnswerProblemKind, sentence: str) -> None:
        super().__init__(sentence)
        self.problem = AnswerProblem(kind, sentence)
