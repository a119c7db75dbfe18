"""A bounded reader of untrusted XML files of builds, without entities of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from xml.etree import ElementTree as ET
from xml.parsers import expat

from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_XML_BYTES = 64 * 1024**2
_MAX_DEPTH = 100


def parse_xml_tree(content: bytes, where: str) -> ET.Element:
    """Return the root of a document; names of elements and attributes are without their namespace.

    A document type is read over, as JaCoCo's reports have one; nothing that it names is loaded.

    Raises:
        SourceError: it is too large or deep, declares entities, or is not well-formed.
    """
    if len(content) > MAX_XML_BYTES:
        raise SourceError(f"{where}: {len(content):,} bytes; no more than {MAX_XML_BYTES:,} are read")
    builder, depth = ET.TreeBuilder(), 0

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise SourceError(f"{where}: nested deeper than {_MAX_DEPTH} elements")
        builder.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_local(name))

    def refuse(*_: object) -> NoReturn:
        raise SourceError(f"{where}: it declares entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(content, True)  # noqa: FBT003 - it takes no keywords
    except (expat.ExpatError, ValueError, LookupError, TypeError) as error:
        # The last three come from encodings that Python has and XML cannot have.
        raise SourceError(f"{where}: not well-formed XML: {error}") from None
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition(":")[2]
