"""What Eclipse JDT says of a source tree: its structure, and what surrounds single methods.

The fields have the names of the answers of ``shim/Jdt.java``. Lines count from 1; the lines of a type or
method include its Javadoc, as RefactoringMiner's do. Names of types are those of their packages and enclosing
types, joined by dots.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic.dataclasses import dataclass


class TargetOutcome(StrEnum):
    """Whether the method of a target was found."""

    FOUND = "found"
    NO_FILE = "no_file"
    """The tree has no such Java file."""
    NO_METHOD = "no_method"
    UNPARSABLE = "unparsable"
    """No such method was found, and the file is no Java of any known level."""
    AMBIGUOUS = "ambiguous"
    """Several methods fit: overloads or nested classes of one name, or a method that occurs twice."""


class CodeOrigin(StrEnum):
    """Where a type or method comes from."""

    SOURCE = "source"
    LIBRARY = "library"
    """The JDK, or a jar of the class path."""
    UNRESOLVED = "unresolved"
    """Its class is neither in the sources nor on the class path."""


class CallerRelation(StrEnum):
    """How a call reaches the target."""

    DIRECT = "direct"
    OVERRIDDEN = "overridden"
    """It calls a method that the target overrides."""
    UNRESOLVED = "unresolved"
    """Name and number of arguments fit, and the callee of the call is unresolved."""


@dataclass(frozen=True, slots=True)
class MethodTarget:
    """The method about which JDT is asked: by lines, by name, or by both.

    Attributes:
        path: its file, relative to the tree.
        start_line: its lines, or a part of them; 0 for unknown.
        end_line: the last one.
        name: its name.
        owner: the name of its class.
    """

    path: str
    start_line: int = 0
    end_line: int = 0
    name: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class JavaProblem:
    """A problem with a file: the first of each kind.

    Attributes:
        path: the file.
        line: where, 0 for the whole file.
        kind: "syntax", "encoding" or "engine"; the last is a failure of JDT itself.
        message: what is wrong.
    """

    path: str
    line: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class JavaModule:
    """A module and its ``module-info.java``."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class ProjectStructure:
    """The Java files of a tree.

    Attributes:
        java_files: all of them, sorted.
        source_roots: each folder below which files lie as their packages say, with the number of these files.
        modules: the modules that are declared.
        generated_files: files whose beginning says that they are generated.
    """

    java_files: tuple[str, ...]
    source_roots: dict[str, int]
    modules: tuple[JavaModule, ...]
    generated_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """The size of an index: of what was compiled together with a target."""

    files: int
    types: int
    methods: int
    calls: int
    resolved_calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JavaType:
    """A class, interface, enum, record or annotation.

    ``signature`` is its text from the first modifier to before the brace; ``binary_name`` is unknown for code
    that is never reached.
    """

    name: str
    binary_name: str | None
    kind: str
    signature: str
    path: str
    start_line: int
    end_line: int
    source: str


@dataclass(frozen=True, slots=True)
class JavaMethod:
    """A method or constructor.

    Attributes:
        owner: its class.
        name: its name; that of a constructor is the name of its class.
        signature: its text from the first modifier up to its brace.
        descriptor: its descriptor in the class file; None if a type in it is unknown.
        parameters: the types of its parameters.
        path: its file.
        start_line: its first line.
        end_line: its last line.
        source: its text.
    """

    owner: str
    name: str
    signature: str
    descriptor: str | None
    parameters: tuple[str, ...]
    path: str
    start_line: int
    end_line: int
    source: str


@dataclass(frozen=True, slots=True)
class RelatedType:
    """A type above or below that of the target.

    Attributes:
        name: its name.
        relation: "extends" or "implements".
        direct: whether no other type is between.
        origin: where it comes from; types below are always from the sources.
        path: its file, if it is from the sources.
        start_line: its lines there.
        end_line: the last one.
    """

    name: str
    relation: str
    direct: bool
    origin: CodeOrigin
    path: str | None
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class JavaCaller:
    """A member of a named class that calls the target.

    Attributes:
        relation: how its calls reach the target.
        path: its file.
        lines: the lines of the calls.
        member: the method, field or initializer, as CLASS#NAME.
        method: the method; None for other members.
    """

    relation: CallerRelation
    path: str
    lines: tuple[int, ...]
    member: str
    method: JavaMethod | None


@dataclass(frozen=True, slots=True)
class JavaCallee:
    """A method that the target calls.

    Attributes:
        name: its name.
        owner: its class; None if unresolved.
        kind: "call", "super_call", "constructor" or "reference", of the first call.
        parameters: the types of its parameters.
        origin: where it comes from.
        lines: the lines of the calls.
        method: its declaration, if the sources have one.
    """

    name: str
    owner: str | None
    kind: str
    parameters: tuple[str, ...]
    origin: CodeOrigin
    lines: tuple[int, ...]
    method: JavaMethod | None


@dataclass(frozen=True, slots=True)
class JavaSource:
    """A Java file and its text."""

    path: str
    source: str


@dataclass(frozen=True, slots=True)
class MethodContext:
    """What surrounds a method. All but the first three attributes are empty if it was not found.

    Attributes:
        target: what was asked.
        outcome: whether it was found.
        message: the first syntax error of its file, or why it was not found.
        level: the Java release as which the sources were read; None without a file.
        method: the method.
        type: its class, with the whole class body.
        enclosing_types: the classes around that class, the outermost first.
        parents: its superclasses and interfaces, up to those of libraries.
        children: all its subtypes in the sources.
        overrides: the methods that it overrides, as CLASS#NAME.
        overridden_by: the methods that override it.
        callers: the members with calls of it in all sources, by file and line.
        callees: the methods that it calls, in the order of its first calls.
        package_sources: the other files of its package.
        left_out_files: files that were not compiled with it: a nearer source root has the same file.
        counts: the size of the index.
    """

    target: MethodTarget
    outcome: TargetOutcome
    message: str | None
    level: str | None
    method: JavaMethod | None
    type: JavaType | None
    enclosing_types: tuple[str, ...]
    parents: tuple[RelatedType, ...]
    children: tuple[RelatedType, ...]
    overrides: tuple[str, ...]
    overridden_by: tuple[str, ...]
    callers: tuple[JavaCaller, ...]
    callees: tuple[JavaCallee, ...]
    package_sources: tuple[JavaSource, ...]
    left_out_files: tuple[str, ...]
    counts: IndexCounts | None


@dataclass(frozen=True, slots=True)
class EnrichedTree:
    """A source tree and the context of each target, in their order."""

    structure: ProjectStructure
    problems: tuple[JavaProblem, ...]
    targets: tuple[MethodContext, ...]


@dataclass(frozen=True, slots=True)
class ParsedMethod:
    """A method by its syntax.

    Attributes:
        name: its name.
        signature: its text from the first modifier up to and with its brace.
        start_line: its first line, of the Javadoc if it has one.
        end_line: its last line.
        body: its statements as RefactoringMiner writes them, with the closing brace; None without a body.
        calls: the names of the methods that it calls, each once.
    """

    name: str
    signature: str
    start_line: int
    end_line: int
    body: str | None
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedType:
    """A type by its syntax; ``package_name`` is its name without the last part."""

    path: str
    name: str
    package_name: str
    signature: str
    start_line: int
    end_line: int
    methods: tuple[ParsedMethod, ...]


@dataclass(frozen=True, slots=True)
class ParsedSources:
    """The types of Java texts, outer ones before those inside, and the first syntax error of each text."""

    types: tuple[ParsedType, ...]
    problems: tuple[JavaProblem, ...]
