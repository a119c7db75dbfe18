"""One instance of SWE-Refactor: a refactoring of a method, in the published JSON shape (SWE-Refactor §3.1).

The published files have 30 keys, all but ``invokedMethod`` in every instance. What codetaste knows beyond
them is in one key of its own, ``codetaste``. An instance keeps the object that it was made of, so that all of
it is written again: keys in their order, unknown ones too, and numbers as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from codetaste.core.text import printable
from codetaste.java.jdt.model import MethodContext, ProjectStructure

if TYPE_CHECKING:
    from collections.abc import Mapping

REFACTORING_TYPES = (
    "Extract Method",
    "Inline Method",
    "Move Method",
    "Extract And Move Method",
    "Move And Rename Method",
    "Move And Inline Method",
)
"""The six types of the benchmark as RefactoringMiner names them, atomic ones first (Appendix C)."""
OWN_KEY = "codetaste"
"""The key with what codetaste adds to the published ones."""
_CONTEXT, _STRUCTURE = "context", "structure"
_CONTEXT_TYPE, _STRUCTURE_TYPE = TypeAdapter(MethodContext), TypeAdapter(ProjectStructure)


class _Published(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)


class DiffLocation(_Published):
    """Lines of a file: of the method before or after, or of the extracted or inlined one. Columns are 0."""

    file_path: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int


class PurityResult(_Published):
    """What PurityChecker said."""

    is_pure: bool
    purity_comment: str
    description: str
    mapping_state: int


class CoverageCounter(_Published):
    """Covered and missed units of JaCoCo; ``testMethod`` of a test that was not measured covers one."""

    missed: int
    covered: int


class RefactoringInstance(_Published):
    """One instance. Names are those of the published keys; "before" is the parent of the commit.

    The verification's fields are None in instances that were not verified.
    """

    type: str
    """RefactoringMiner's name of the type: "Extract Method"."""
    description: str
    """RefactoringMiner's sentence, with a tab after the type."""
    diff_locations: list[DiffLocation]
    """The method before, the method after, and the extracted one (after) or the inlined one (before)."""
    source_code_before_refactoring: str
    """The target: the method that is refactored; of an inlining the method that goes away."""
    file_path_before: str
    """The file of the method before; of an inlining that of the caller."""
    is_pure_refactoring: bool
    commit_id: str
    package_name_before: str
    """The class's name without its last part: of a nested class the class around it."""
    class_name_before: str
    method_name_before: str
    """CLASS#METHOD of the target."""
    class_signature_before: str | None = None
    method_name_before_set: list[str]
    class_name_before_set: list[str] = Field(default_factory=list)
    class_signature_before_set: list[str] = Field(default_factory=list)
    invoked_method: str | None = None
    """Signature and body of methods in the changed files that have the name of one that the target calls."""
    invoked_method_set: list[str]
    purity_check_result_list: list[PurityResult]
    source_code_before_for_whole: str
    """The text of ``file_path_before``."""
    file_path_after: str
    source_code_after_for_whole: str
    diff_source_code_set: list[str]
    """The extracted method; empty for other types."""
    source_code_after_refactoring: str
    """The developers' method, with the extracted one behind it."""
    diff_source_code: str
    unique_id: str
    move_file_exist: bool | None = None
    """Whether the target file of a move was there before."""
    test_result: bool | None = None
    """Whether tests cover the target."""
    coverage_info: dict[str, CoverageCounter] | None = None
    compile_result_before: bool | None = None
    compile_result_current: bool | None = None
    compile_jdk: int | float | str | None = Field(None, alias="compileJDK")
    """The JDK, 1.8 for Java 8; see ``java_release``."""
    project_name: str | None = None
    """The repository's name without its owner. In later files."""
    compile_command: str | None = None
    """The command that compiles and tests both sides. In later files."""
    own: dict[str, Any] = Field(default_factory=dict, alias=OWN_KEY)
    """What codetaste adds."""

    _document: dict[str, Any] = PrivateAttr(default_factory=dict)

    @field_validator("own")
    @classmethod
    def _can_be_read(cls, own: dict[str, Any]) -> dict[str, Any]:
        """Refuse what ``context`` and ``structure`` could not return."""
        for key, kind in ((_CONTEXT, _CONTEXT_TYPE), (_STRUCTURE, _STRUCTURE_TYPE)):
            try:
                kind.validate_python(own[key]) if key in own else None
            except ValidationError as error:
                fault = error.errors(include_url=False)[0]
                place = ".".join(map(str, (key, *fault["loc"])))
                raise ValueError(f"{printable(place)}: {fault['msg']}") from None
        return own

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RefactoringInstance:
        """Return the instance of a JSON object.

        Raises:
            pydantic.ValidationError: a key is missing or its value is of another type.
        """
        instance = cls.model_validate(document)
        instance._document = dict(document)  # noqa: SLF001 - its own
        return instance

    @property
    def document(self) -> Mapping[str, Any]:
        """The JSON object, with all keys that it was read with; do not change what is in it."""
        return self._document

    def updated(self, changes: Mapping[str, Any]) -> RefactoringInstance:
        """Return the instance with other values of some JSON keys; new keys come last, before our own.

        Raises:
            pydantic.ValidationError: a value is of another type.
        """
        document = {**self._document, **changes}
        if OWN_KEY in document:
            document[OWN_KEY] = document.pop(OWN_KEY)
        return self.from_document(document)

    def with_own(self, **values: Any) -> RefactoringInstance:  # noqa: ANN401 - JSON
        """Return the instance with more values below codetaste's own key."""
        return self.updated({OWN_KEY: {**self.own, **values}})

    def with_context(self, context: MethodContext, structure: ProjectStructure) -> RefactoringInstance:
        """Return the instance with what Eclipse JDT says of its target and of the project, before."""
        return self.with_own(
            context=_CONTEXT_TYPE.dump_python(context, mode="json"),
            structure=_STRUCTURE_TYPE.dump_python(structure, mode="json"),
        )

    @property
    def context(self) -> MethodContext | None:
        """What surrounds the target, if the instance was enriched by codetaste."""
        return _CONTEXT_TYPE.validate_python(self.own[_CONTEXT]) if _CONTEXT in self.own else None

    @property
    def structure(self) -> ProjectStructure | None:
        """The Java files of the project, if the instance was enriched by codetaste."""
        return _STRUCTURE_TYPE.validate_python(self.own[_STRUCTURE]) if _STRUCTURE in self.own else None

    @property
    def method_name(self) -> str:
        """The simple name of the target."""
        return self.method_name_before.rpartition("#")[2]

    @property
    def java_release(self) -> int | None:
        """The feature release of the JDK: 8 for 1.8; None if it is unknown."""
        text = str(self.compile_jdk).removeprefix("1.").partition(".")[0]
        return int(text) if text.isdecimal() else None

    @property
    def verified(self) -> bool:
        """Whether both sides compile and tests cover the target."""
        return all((self.compile_result_before, self.compile_result_current, self.test_result))
