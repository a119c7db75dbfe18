"""``FailureCategory``: the kinds of failures that the paper tells apart (§5), and a few more."""

from __future__ import annotations

from enum import StrEnum


class FailureCategory(StrEnum):
    """Why a trial is no success; the first that applies, in this order."""

    NO_ANSWER = "no answer"
    """A budget or a limit ended it, the model refused, or an agent ended without an answer."""
    FORMAT = "format"
    """The answer is not in the format that the prompt asks for."""
    SYNTAX = "syntax"
    """The code is no Java."""
    MISSING_SYMBOL = "missing symbol"
    """It uses a variable, method, class or package that does not exist (§5: undefined variables)."""
    TYPES = "types"
    """Types or arguments do not fit (§5: parameter type mismatches)."""
    COMPILATION = "compilation"
    """It does not compile for another reason."""
    WRONG_PLACE = "wrong place"
    """A file or class that does not exist, or another one than the intended (§5: non-existent files)."""
    TESTS = "tests"
    """Tests fail or have no end."""
    EMPTY_METHOD = "empty or trivial method"
    """It compiles and passes, but a method does nothing (§5: overfitting to the tests)."""
    NO_REFACTORING = "no refactoring"
    OTHER_REFACTORING = "other refactoring"
    """Another type, or another method (§4.4)."""
    OTHER_CHANGES = "other changes"
    """The intended refactoring, with changes beside it."""
    OTHER = "other"
    """Nothing that the answer did, or unknown."""
