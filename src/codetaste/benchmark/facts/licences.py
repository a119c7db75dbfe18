"""Recognise a licence by phrases that occur only in its text; an uncertain text is "unknown"."""

from __future__ import annotations

import re

UNKNOWN = "unknown"
LICENCE_FILE_NAME = re.compile(r"(?:un)?licen[cs]e|copying", re.IGNORECASE)
"""Matches the beginning of a licence file's name."""

_SPDX_TAG = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9][A-Za-z0-9.+-]*)\s*$", re.MULTILINE)
_MAX_CHARS = 64 * 1024
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # The first entry whose phrases all occur wins; special cases come before the general ones.
    ("AGPL-3.0", ("gnu affero general public license version 3",)),
    ("LGPL-3.0", ("gnu lesser general public license version 3",)),
    ("LGPL-2.1", ("gnu lesser general public license version 2.1",)),
    ("GPL-3.0", ("gnu general public license version 3",)),
    ("GPL-2.0", ("gnu general public license version 2",)),
    ("MPL-2.0", ("mozilla public license version 2.0",)),
    ("SSPL-1.0", ("server side public license",)),
    ("BUSL-1.1", ("business source license 1.1",)),
    ("Elastic-2.0", ("elastic license 2.0",)),
    ("EPL-2.0", ("eclipse public license - v 2.0",)),
    ("EPL-1.0", ("eclipse public license - v 1.0",)),
    ("Apache-2.0", ("apache license version 2.0", "terms and conditions for use, reproduction")),
    ("Apache-2.0", ("licensed under the apache license version 2.0", "except in compliance with")),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("BSL-1.0", ("boost software license - version 1.0",)),
    ("Zlib", ("the origin of this software must not be misrepresented", "altered source versions")),
    ("ISC", ("permission to use, copy, modify, and/or distribute this software for any purpose",)),
    ("ISC", ("permission to use, copy, modify, and distribute this software for any purpose",)),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "nor the names of")),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "neither the name")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms", "must reproduce the above")),
    ("MIT", ("permission is hereby granted, free of charge", "without restriction", "software is provided")),
)  # fmt: skip


def recognise(text: str) -> str:
    """Return the SPDX name of the licence in ``text``, "unknown" if it is not certain.

    For a text with several licences, the first of the list above is returned; "only" and "or later" are not
    distinguished, as the licence's text does not say which holds.
    """
    text = text[:_MAX_CHARS]
    tag = _SPDX_TAG.search(text)
    if tag is not None:
        return tag[1]
    plain = " ".join(re.sub(r"[*#=_,]|//", " ", text).lower().split())
    for name, phrases in _PHRASES:
        if all(" ".join(phrase.replace(",", " ").split()) in plain for phrase in phrases):
            return name
    return UNKNOWN
