r"""The text of a pull request in the message of the commit that merged it.

GitHub Archive has title and body of a pull request; a clone and GitHub Activity Data have messages of
commits. GitHub writes these in two ways that put other words into a message: the first line of a merge
names a branch (*Merge pull request #1 from me/fix-typo*), and a squash lists the messages of all squashed
commits (*\* fix lint*) after the title. A commit would be dropped for the *fix* in them. The expressions
are valid for Python's ``re`` and for RE2.
"""

from __future__ import annotations

import re

MERGE_LINE = r"\AMerge pull request #[0-9]+ from [^\n]*\n+"
"""What is removed from the message of a merge; in SQL ``regexp_replace(message, pattern, '')``."""
SQUASH_LIST = r"\A([^\n]*\(#[0-9]+\)[ \t\r]*)\n[ \t\r\n]*[*-] (?s:.*)"
r"""What is removed after the title of a squash; in SQL ``regexp_replace(message, pattern, '\1')``."""
_MERGE_LINE, _SQUASH_LIST = re.compile(MERGE_LINE, re.ASCII), re.compile(SQUASH_LIST, re.ASCII)


def pull_request_text(message: str) -> str:
    """Return the message of a commit without what GitHub added to the text of its pull request.

    Other messages are returned as they are, and so is a merge's line with nothing after it.
    """
    return _SQUASH_LIST.sub(r"\1", _MERGE_LINE.sub("", message)).strip()
