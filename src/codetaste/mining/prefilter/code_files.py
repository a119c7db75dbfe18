"""Which files are code, by suffix.

The paper asks for "a file extension of typical programming languages". Beyond those of the languages of
instances (``source/languages.py``), a suffix is in the list if a language of type *programming* has it in
GitHub Linguist 9.6 (``languages.yml``), and what is usually in such files is code. Formats that Linguist
calls *data*, *markup* or *prose* are out, such as JSON, YAML, SQL, HTML, CSS, Markdown and notebooks; of
these only components of Vue and Svelte are in, which are code and markup. So are languages that Linguist
calls programming but that configure, build or describe: CMake, Dockerfile, Gherkin, HCL, Makefile, Nix,
Protocol Buffers, Starlark, Thrift, XSLT, and templates. A suffix with several meanings (``.mod``, ``.mo``,
``.pro``, ``.res``, ``.spec``) is out if it is often something else.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.source.languages import LANGUAGE_OF_SUFFIX

if TYPE_CHECKING:
    from codetaste.mining.prefilter.diff import FileChange

_FURTHER = """
.4gl .abap .ada .adb .ads .agda .ahk .applescript .as .asm .asp .aspx .au3 .awk .bal .bas .bat .bb .bsl
.carbon .cbl .ceylon .cfc .cfm .chpl .cl .cmd .cob .coffee .cp .cppm .cr .csx .cu .cuh .cy .d .dfy .dpr .e
.el .elm .erl .es6 .escript .f .f03 .f08 .f77 .f90 .f95 .factor .fish .fnl .for .forth .fpp .frag .fs .fsi
.fst .fsx .fth .gd .gdshader .geom .gjs .gleam .glsl .gml .groovy .gs .gts .gvy .hack .hip .hlsl .hrl .hs
.hx .hy .idr .inc .ino .ixx .janet .jav .jsm .jsp .kk .ksh .lean .lfe .lhs .lisp .ls .lsp .luau .m .mbt
.metal .mm .mojo .moon .move .mq4 .mq5 .mqh .nim .nims .nr .nu .nut .odin .p4 .pas .pde .pgsql .php3 .php4
.php5 .phps .phpt .pl .pls .plsql .pm .pony .prolog .ps1 .psm1 .purs .pxd .pxi .pyw .qml .rake .raku
.rakumod .rbi .re .rei .rex .rexx .ring .rkt .roc .rpy .ru .s .sas .scm .sld .sma .sml .sp .ss .st .stan .sv
.svelte .svh .t .tcl .thy .txl .uc .v .vala .vapi .vbs .vert .vh .vhd .vhdl .vim .vy .wat .wgsl .wisp .wl
.wren .xtend .y .yul .zig .zsh
"""
CODE_SUFFIXES = frozenset(LANGUAGE_OF_SUFFIX) | frozenset(_FURTHER.split())
"""In lower case."""


def is_code_file(path: str) -> bool:
    """Return whether the file is code by its suffix, whatever its case."""
    return PurePosixPath(path).suffix.lower() in CODE_SUFFIXES


def count_code_edits(file: FileChange) -> int:
    """Return the edited (added and removed) lines of a file if it is code, else 0; a submodule is no code."""
    return 0 if file.submodule or not is_code_file(file.path) else file.additions + file.deletions
