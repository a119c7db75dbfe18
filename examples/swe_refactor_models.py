"""The scripted models of swe-refactor.toml, and the edits of Java text with which they refactor.

*strong* does what the prompt asks for, by rules that fit many methods; as an agent it edits files. *weak*
makes a mistake of its own with each type of refactoring; it does better with examples in its prompt, and best
if a reviewer objects. Both review answers by what tools say of them. They know nothing but the conversation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.llm.messages import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codetaste.llm.messages import Request

STEP = "    "
_HEADINGS = (
    "File of the code to be refactored",
    "Code to be refactored",
    "Class content",
    "Refactoring operation",
    "Call relationship",
    "Project structure",
    "File path before refactoring",
    "Instructions",
)
_COMPOUND = re.compile(r"(for|while|if|try|switch|do|synchronized)\b")
_CONTINUES = re.compile(r"\}?\s*(else|catch|finally|while)\b|\{")
_DECLARED = re.compile(
    r"(?:^|[(;]\s*|\bfinal\s+)([A-Z][\w.<>\[\], ?]*|int|char|boolean|long)\s+(\w+)\s*[=:;]"
)


@dataclass(frozen=True)
class Method:
    """A method: what stands before its name, parameters, exceptions, and the lines of its body, not indented.

    ``modifiers`` have the return type, too; ``opening`` is the space between head and brace.
    """

    modifiers: str
    name: str
    parameters: str
    throws: str
    opening: str
    body: tuple[str, ...]

    def __str__(self) -> str:
        """Return its text without documentation."""
        head = f"{self.modifiers} {self.name}({self.parameters}){self.throws}{self.opening}{{"
        return "\n".join([head, *indented(self.body), "}"])

    @property
    def is_static(self) -> bool:
        """Whether it needs no object."""
        return " static " in f" {self.modifiers} "

    @property
    def result(self) -> str:
        """The return type."""
        return re.sub(r"\b(public|protected|private|static|final|synchronized)\s+", "", self.modifiers)

    @property
    def variables(self) -> dict[str, str]:
        """The types of its parameters by name."""
        return {each.split()[-1]: each.rpartition(" ")[0] for each in _split(self.parameters)}

    def call(self, receiver: str = "") -> str:
        """Return a call whose arguments have the names of the parameters."""
        return f"{receiver}{self.name}({', '.join(self.variables)})"


def read_method(text: str) -> Method:
    """Read a method whose documentation may stand before it."""
    code = without_documentation(text)
    head, body = code[: code.index("{")], code[code.index("{") + 1 : code.rindex("}")]
    found = re.fullmatch(r"\s*(.+?)\s*\b(\w+)\s*\((.*)\)(\s+throws [\w., ]+?)?(\s*)", head, re.DOTALL)
    if found is None:
        raise ValueError(f"no method: {head}")
    opening = "\n" if "\n" in found[5] else " "
    parameters, throws = (" ".join((part or "").split()) for part in (found[3], found[4]))
    lines = tuple(_dedented(body.strip("\n").rstrip().splitlines()))
    modifiers = re.sub(r"\n\s*", "\n", found[1])
    return Method(modifiers, found[2], parameters, f" {throws}" if throws else "", opening, lines)


def without_documentation(text: str) -> str:
    """Return the text of a method from its first modifier on."""
    return re.sub(r"\A\s*/\*.*?\*/", "", text, flags=re.DOTALL).strip()


def find_method(source: str, name: str) -> str:
    """Return the lines of the first method of a class with this name, with its documentation."""
    lines = source.splitlines(keepends=True)
    declares = re.compile(rf"    (?! |//|\*|/)[^=;]*\b{name}\(")
    at = next(number for number, line in enumerate(lines) if declares.match(line))
    end = next(number for number in range(at, len(lines)) if lines[number].rstrip() == f"{STEP}}}")
    while lines[at - 1].strip().startswith(("*", "/**", "@")):
        at -= 1
    return "".join(lines[at : end + 1])


def blocks(method: Method) -> list[tuple[int, int]]:
    """Return first and last line of each compound statement of the body that is in no other one."""
    lines, found = method.body, list[tuple[int, int]]()
    for at, line in enumerate(lines):
        if _COMPOUND.match(line) and not (found and at <= found[-1][1]):
            ends = (number for number in range(at, len(lines)) if _closes(lines, number))
            if (end := next(ends, None)) is not None:
                found.append((at, end))
    return found


def _closes(lines: Sequence[str], at: int) -> bool:
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].rstrip() == "}" and not _CONTINUES.match(following)


def extract(
    method: Method, block: tuple[int, int], name: str, modifiers: str, receiver: str = ""
) -> tuple[Method, Method]:
    """Return the method that calls a new one in place of a block, and the new one, which has the block."""
    before, code, after = (
        method.body[: block[0]],
        method.body[block[0] : block[1] + 1],
        method.body[block[1] + 1 :],
    )
    known = {
        **method.variables,
        **{found[2]: found[1] for line in before for found in _DECLARED.finditer(line)},
    }
    used = [each for each in known if re.search(rf"\b{each}\b", "\n".join(code))]
    parameters = ", ".join(f"{known[each]} {each}" for each in used)
    new = Method(f"{modifiers} void", name, parameters, method.throws, method.opening, code)
    return replace(method, body=(*before, f"{new.call(receiver)};", *after)), new


def can_be_extracted(method: Method, block: tuple[int, int]) -> bool:
    """Return whether nothing of a block reaches out of it: no return, no new value of a variable."""
    code, before = (
        "\n".join(lines) for lines in (method.body[block[0] :][: block[1] - block[0] + 1], method.body)
    )
    names = [*method.variables, *(found[2] for found in _DECLARED.finditer(before))]
    assigned = [each for each in names if re.search(rf"(?<!\w )\b{each}\s*(\+\+|--|[-+*/|&]?=(?!=))", code)]
    return not assigned and not re.search(r"\b(return|continue)\b", code)


def inline(caller: Method, callee: Method) -> Method | None:
    """Return the caller with the callee's body in place of its call; None without a call of ``call()``."""
    body, call = list[str](), re.compile(rf"(\s*)(?:\w+\.)?{re.escape(callee.call())};")
    for line in caller.body:
        found = call.fullmatch(line)
        body += [f"{found[1]}{each}".rstrip() for each in callee.body] if found else [line]
    return None if tuple(body) == caller.body else replace(caller, body=tuple(body))


def indented(lines: Sequence[str], by: str = STEP) -> list[str]:
    """Return the lines with ``by`` before each that is not empty."""
    return [f"{by}{line}".rstrip() for line in lines]


def _dedented(lines: Sequence[str]) -> Iterator[str]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    for line in lines:
        yield line[min(indents) :].rstrip()


def _split(parameters: str) -> list[str]:
    """Split at each comma that is not between the brackets of a type."""
    return [each.strip() for each in re.split(r",(?![^<]*>)", parameters) if each.strip()]


@dataclass(frozen=True)
class Task:
    """What a prompt asks for; ``code`` and ``content`` are the text of the method and of a file."""

    kind: str
    class_name: str
    code: str
    content: str
    caller: Method | None
    path: str
    files: tuple[str, ...]

    @property
    def method(self) -> Method:
        """The method that is refactored."""
        return read_method(self.code)

    @property
    def own_path(self) -> str:
        """The file of its class."""
        root = re.match(r"(.*?/java/)?", self.path)
        return f"{root[0] if root else ''}{self.class_name.replace('.', '/')}.java"

    @property
    def utilities(self) -> str:
        """The nearest class of helpers, a good place for a static method."""
        found = [path for path in self.files if re.search(r"(Utils?|Helper)\.java$", path)]
        folder = self.path.rpartition("/")[0]
        return min(found or [self.path], key=lambda path: (path.rpartition("/")[0] != folder, path))


def read_task(prompt: str) -> Task:
    """Read the prompt of an instance."""
    parts = re.split(rf"^({'|'.join(_HEADINGS)}):\n", prompt, flags=re.MULTILINE)
    section = {heading: text.strip("\n") for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    found = re.match(
        r"(.+) on the method (\S+) of the class ([\w.$]+)(?:, into the method (\S+) in (\S+?)(?:,.*)?$)?",
        section["Refactoring operation"],
    )
    if found is None:
        raise ValueError("the prompt names no refactoring")
    content = section["Class content"]
    caller = read_method(find_method(content, found[4])) if found[4] else None
    files = tuple(section.get("Project structure", "").splitlines())
    of_class = (path for path in files if path.endswith(f"/{found[3].rpartition('.')[2]}.java"))
    path = section.get("File of the code to be refactored") or found[5] or next(of_class, "")
    return Task(found[1], found[3], section["Code to be refactored"], content, caller, path, files)


@dataclass(frozen=True)
class Refactored:
    """What comes of a task: the method or caller as it stays, a new method, and the file of that one."""

    rest: Method
    new: Method | None = None
    place: str = ""


def refactor(task: Task) -> Refactored:
    """Do what a prompt asks for."""
    method, place = task.method, task.utilities
    owner = f"{place.rpartition('/')[2].removesuffix('.java')}."
    if task.kind.startswith("Extract"):
        is_moved = task.kind != "Extract Method"
        modifiers = "public static" if is_moved else "private static" if method.is_static else "private"
        found = extract(method, _block(method), f"{method.name}Part", modifiers, owner if is_moved else "")
        return Refactored(*found, place if is_moved else "")
    if task.caller is not None:
        inlined = inline(task.caller, method)
        if inlined is None:
            raise ValueError(f"{method.name} is not called with its parameters' names")
        return Refactored(inlined)
    name = method.name + (f"Of{task.class_name.rpartition('.')[2]}" if "Rename" in task.kind else "")
    moved = replace(method, name=name, modifiers=f"public static {method.result}")
    call = f"{'' if method.result == 'void' else 'return '}{moved.call(owner)};"
    return Refactored(replace(method, body=(call,)), moved, place)


def _block(method: Method) -> tuple[int, int]:
    """Return the largest block that can be extracted."""
    found = [each for each in blocks(method) if can_be_extracted(method, each)]
    if not found:
        raise ValueError(f"nothing of {method.name} can be extracted")
    return max(found, key=lambda each: each[1] - each[0])


def answer(task: Task, done: Refactored) -> str:
    """Return an answer in the format that prompts ask for."""
    rest, new = str(done.rest), str(done.new or "")
    match task.kind:
        case "Extract Method":
            parts = [f"{rest}\n\n{new}"]
        case "Inline Method":
            parts = [rest]
        case "Move And Inline Method":
            parts = [task.path, _in_class(task.path, rest)]
        case "Extract And Move Method":
            parts = [done.place, new, rest]
        case _:
            parts = [done.place, _in_class(done.place, new), rest]
    return "\n".join(["#####", *(f"{part}\n#####" for part in parts)])


def _in_class(path: str, code: str) -> str:
    name = path.rpartition("/")[2].removesuffix(".java")
    return "\n".join([f"class {name}", "{", *indented(code.split("\n")), "}"])


def _forgets_parameters(task: Task) -> str:
    """Return an answer that does not compile."""
    done = refactor(task)
    return answer(task, replace(done, new=done.new and replace(done.new, parameters="")))


def _explains(task: Task) -> str:
    """Return an answer without the parts of the format."""
    return f"The method {task.method.name} belongs into {task.utilities}, next to its like."


def _keeps_name(task: Task) -> str:
    """Return an answer that moves the method, and forgets the new name."""
    return answer(task, refactor(replace(task, kind="Move Method")))


def _invents_file(task: Task) -> str:
    """Return an answer for a file that does not exist."""
    return answer(task, replace(refactor(task), place=f"{task.path.rpartition('/')[0]}/Helpers.java"))


def _drops_code(task: Task) -> str:
    """Return an answer that removes the call, and forgets the code of the method."""
    empty = replace(task, code=str(replace(task.method, body=())))
    return answer(task, refactor(empty))


MISTAKES: dict[str, Callable[[Task], str]] = {
    "Extract Method": _forgets_parameters,
    "Move Method": _explains,
    "Move And Rename Method": _keeps_name,
    "Extract And Move Method": _invents_file,
    "Move And Inline Method": _drops_code,
}
"""What *weak* does wrong, by type; it can inline."""
OF_FORMAT = (_explains, _invents_file)
"""Mistakes that an example in the prompt prevents."""


def edits(task: Task, done: Refactored) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the calls of tools with which an agent does what a prompt asks for."""
    if task.caller is not None:
        text = without_documentation(find_method(task.content, task.caller.name))
        yield _edit(task.path, text, _at_place(done.rest))
        yield _edit(task.own_path, task.code, "")
        return
    same_class = [done.new] if done.new and not done.place else []
    code = without_documentation(task.code)
    yield _edit(task.own_path, code, f"\n\n{STEP}".join(map(_at_place, [done.rest, *same_class])))
    if done.new and done.place:
        yield "bash", {"command": _append(done.place, done.new, task.content)}


def _edit(path: str, old: str, new: str) -> tuple[str, dict[str, object]]:
    return "edit", {"path": path, "old": old, "new": new}


def _at_place(method: Method) -> str:
    return "\n".join(indented(str(method).split("\n"))).lstrip()


def _append(path: str, method: Method, origin: str) -> str:
    """Return a command that puts a method, and the imports of ``origin`` that it needs, into a class."""
    imports = re.findall(r"^import [\w.]+;$", origin, re.MULTILINE)
    needed = [line for line in imports if re.search(rf"\b{line.rpartition('.')[2][:-1]}\b", str(method))]
    added = [f"grep -qx '{line}' {path} || sed -i '/^package /a {line}' {path}" for line in needed]
    end = [f"sed -i '$d' {path}", f"cat >> {path} <<'END'", "", f"{STEP}{_at_place(method)}", "}", "END"]
    return "\n".join([*added, *end])


def _work(request: Request, calls: Sequence[tuple[str, dict[str, object]]]) -> ToolCall:
    """Return the next call of an agent, and the end behind the last one."""
    turn = sum(message.role == "assistant" for message in request.messages)
    name, arguments = [*calls, ("finish", {})][min(turn, len(calls))]
    return ToolCall(f"call-{turn + 1}", name, arguments)


def strong(request: Request) -> str | ToolCall:
    """Reply as the better model, or as a reviewer."""
    if _is_review(request):
        return review(request)
    task = read_task(request.messages[0].text)
    done = refactor(task)
    return _work(request, [*edits(task, done)]) if _is_agent(request) else answer(task, done)


def weak(request: Request) -> str | ToolCall:
    """Reply as the other model, or as a reviewer."""
    if _is_review(request):
        return review(request)
    prompt = request.messages[0].text
    task = read_task(prompt)
    mistake = MISTAKES.get(task.kind)
    if _is_agent(request):
        return _work(request, [] if mistake else [*edits(task, refactor(task))])
    is_rejected = request.messages[-1].text.startswith("The reviewer")
    if mistake is None or is_rejected or (mistake in OF_FORMAT and "\nExample 1:" in prompt):
        return answer(task, refactor(task))
    return mistake(task)


def _is_agent(request: Request) -> bool:
    return any(tool.name == "edit" for tool in request.tools)


def _is_review(request: Request) -> bool:
    return any(tool.name == "review" for tool in request.tools)


def review(request: Request) -> ToolCall:
    """Accept what no tool rejects."""
    rejecting = re.findall(r"^### (.+): rejects it$", request.messages[0].text, re.MULTILINE)
    comments = [f"{tool} must not reject your answer." for tool in rejecting]
    return ToolCall(
        "review", "review", {"verdict": "improve" if comments else "accept", "comments": comments}
    )
