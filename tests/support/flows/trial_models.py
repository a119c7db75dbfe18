"""Scripted models for coding agents and judges: each derives its reply from the conversation alone."""

from __future__ import annotations

import os
from typing import Any

from codetaste.errors import ConversationTooLong, MalformedReply, ModelRefused, ModelSetupError
from codetaste.llm.messages import Message, Request, StopReason, TextBlock, ToolCall
from codetaste.llm.providers.scripted import ScriptedReply

Step = tuple[str, dict[str, Any]]

RENAME = "grep -rl fetch_old pack | xargs sed -i s/fetch_old/fetch_new/g"
NEW_FILE = "printf 'made\\n' >pack/made.py; chmod +x pack/made.py"


def turn(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def next_step(request: Request, steps: list[Step]) -> Message:
    number = min(turn(request), len(steps) - 1)
    name, arguments = steps[number]
    return Message(
        "assistant", (TextBlock(f"step {number + 1}"), ToolCall(f"call-{number + 1}", name, arguments))
    )


def shell(command: str, **more: Any) -> Step:
    return "bash", {"command": command, **more}


def edit(path: str, old: str, new: str) -> Step:
    return "edit", {"path": path, "old": old, "new": new, "create": not old}


def task_of(request: Request) -> str:
    return request.messages[0].text


def planning(request: Request) -> str:
    """The requested plans: "plan", "multiplan", or "" if the code is to be changed."""
    task = task_of(request)
    return (
        "multiplan"
        if "/refactoring_plans/" in task
        else "plan"
        if "/output/refactoring_plan.md" in task
        else ""
    )


def plan_text(number: int) -> str:
    return f"# Plan {number}\nUse marker-{number}.\n## Changes\nRename fetch_old.\n## Why\nÜbersicht.\n"


def plans(*numbers: int) -> list[Step]:
    return [
        edit(f"/output/refactoring_plans/refactoring_plan{number}.md", "", plan_text(number))
        for number in numbers
    ]


FINISH: Step = ("finish", {"summary": "done"})


def steps_of(request: Request) -> list[Step]:
    match planning(request):
        case "plan":
            return [shell("cat pack/*.py"), edit("/output/refactoring_plan.md", "", plan_text(7)), FINISH]
        case "multiplan":
            return [shell("ls"), *plans(0, 1, 2, 3, 4), FINISH]
        case _:
            task = task_of(request)
            marker = next(
                (f"marker-{number}" for number in range(10) if f"marker-{number}" in task), "direct"
            )
            return [
                shell("cat /task_description/description.md; git log --oneline; ls /output"),
                edit("pack/store.py", "class Store(object):", f"class Store:  # {marker}"),
                shell(RENAME),
                shell(NEW_FILE),
                FINISH,
            ]


def coder(request: Request) -> Message:
    """Plans or changes the code, as requested."""
    return next_step(request, steps_of(request))


def slowly(request: Request) -> ScriptedReply:
    """The same, with latency between the ledger line and the reply, so that a kill can fall between."""
    return ScriptedReply(coder(request).content, latency_s=0.05)


def in_words(request: Request) -> Message:
    """The same, but ends with a reply without tool calls."""
    reply = coder(request)
    return (
        Message("assistant", (TextBlock("All is done."),)) if reply.tool_calls[0].name == "finish" else reply
    )


def endless(request: Request) -> Message:
    """Creates one file after the other for ever."""
    number = turn(request)
    return next_step(
        request, [edit(f"pack/more{each}.py", "", f"more = {each}\n") for each in range(number + 1)]
    )


def sleeper(request: Request) -> Message:
    """Creates a file, then runs a long command."""
    return next_step(
        request, [edit("pack/slept.py", "", "slept = True\n"), shell("sleep 4321.5 & sleep 1234.5")]
    )


def killer(request: Request) -> Message:
    """Creates a file, then kills every process in its sandbox."""
    return next_step(
        request, [edit("pack/killed.py", "", "killed = True\n"), shell("kill -9 -1; sleep 1234.5")]
    )


def sleepy_planner(request: Request) -> Message:
    """Runs a long command before it writes a plan."""
    return sleeper(request) if planning(request) else coder(request)


def endless_planner(request: Request) -> Message:
    """Reads files for ever before it writes a plan."""
    return next_step(request, [shell("cat pack/*.py")]) if planning(request) else coder(request)


def no_plan(request: Request) -> Message:
    return next_step(request, [shell("ls"), FINISH]) if planning(request) else coder(request)


def empty_plan(request: Request) -> Message:
    steps = [shell("printf ' \\n' >/output/refactoring_plan.md"), FINISH]
    return next_step(request, steps) if planning(request) else coder(request)


def linked_plan(request: Request) -> Message:
    steps = [shell("ln -s /task_description/description.md /output/refactoring_plan.md"), FINISH]
    return next_step(request, steps) if planning(request) else coder(request)


def huge_plan(request: Request) -> Message:
    steps = [shell("head -c 300000 /dev/zero | tr '\\0' x >/output/refactoring_plan.md"), FINISH]
    return next_step(request, steps) if planning(request) else coder(request)


def odd_bytes(request: Request) -> Message:
    steps = [shell("printf '# Plan\\nmarker-3 \\377\\376 \\n' >/output/refactoring_plan.md"), FINISH]
    return next_step(request, steps) if planning(request) else coder(request)


def from_one(request: Request) -> Message:
    """Numbers its five plans from 1."""
    return next_step(request, [*plans(1, 2, 3, 4, 5), FINISH]) if planning(request) else coder(request)


def flooding(request: Request) -> Message:
    """Fills /output, then writes a good plan."""
    steps = [
        shell("head -c 100000000 /dev/zero >/output/a"),
        edit("/output/refactoring_plan.md", "", plan_text(7)),
        FINISH,
    ]
    return next_step(request, steps) if planning(request) else coder(request)


def snooping(request: Request) -> Message:
    """Searches for all that must not be in its sandbox, and writes what it finds into the patch."""
    names = " -o ".join(
        f"-name '{glob}'"
        for glob in ("*.jsonl", "*description*", "*.yml", "*.diff", "scores.json", "*.sarif")
    )
    look = (
        "{ cat /task_description/* /output/* /output/*/*; env; git log --all --format=%H%n%B; git reflog; "
        f"find / -xdev -type f \\( {names} \\) -not -path '/usr/*' -not -path '/proc/*'; "
        "find /run/codetaste -type f -exec cat {} +; } >pack/seen.txt 2>&1; true"
    )
    return next_step(request, [shell(look), FINISH]) if not planning(request) else coder(request)


def long_plans(request: Request) -> Message:
    """Writes five plans of which one is much longer than the others."""
    steps = [
        edit(
            f"/output/refactoring_plans/refactoring_plan{number}.md",
            "",
            plan_text(number) + "More words. " * (4_000 if number == 1 else 200),
        )
        for number in range(5)
    ]
    return next_step(request, [*steps, FINISH]) if planning(request) else coder(request)


def judge(_request: Request) -> ScriptedReply:
    """Selects the plan that the environment names, with a reason."""
    number = os.environ.get("TRIAL_SELECTS", "2")
    return ScriptedReply(f"secret-reasoning: it overlaps most.\n\n**SELECTED:** [{number}]", latency_s=0.02)


def narrow_judge(request: Request) -> ScriptedReply:
    """Refuses 20,000 characters or more, and selects a plan in its second reply."""
    if sum(len(message.text) for message in request.messages) >= 20_000:
        raise ConversationTooLong("the prompt is too long")
    return ScriptedReply(hesitant_judge(request), latency_s=0.02)


def blind_judge(_request: Request) -> ScriptedReply:
    """Refuses every prompt as too long."""
    raise ConversationTooLong("the prompt is too long")


def hesitant_judge(request: Request) -> str:
    """Selects a plan in its second reply, which has half a character, as JSON can have."""
    return "SELECTED: 1 or 3" if turn(request) == 0 else "Well \ud83d.\nSELECTED: **Plan 3**"


def undecided_judge(_request: Request) -> str:
    return "All of them have their merits."


def thinking_judge(request: Request) -> ScriptedReply:
    """Thinks for 10,000 tokens before it answers."""
    if request.max_output_tokens < 10_000:
        return ScriptedReply((), stop=StopReason.LENGTH)
    return ScriptedReply("SELECTED: 2")


def endless_judge(_request: Request) -> ScriptedReply:
    """Thinks until its cap, whatever it is."""
    return ScriptedReply((), stop=StopReason.LENGTH)


def out_of_range_judge(_request: Request) -> str:
    return "SELECTED: 5"


def fails_later(request: Request) -> Message:
    """Creates a file, then raises a permanent error."""
    if turn(request) < 2:
        return next_step(request, [edit("pack/before.py", "", "before = 1\n"), shell("ls")])
    raise ModelSetupError("the scripted provider is gone", "base_url")


def _more(number: int) -> Step:
    return shell(f"echo 'more = {number}' >pack/more{number}.py; cat /task_description/*")


def by_shell(request: Request) -> Message:
    """Plans or changes the code with a shell alone, and ends with a reply without tool calls."""
    if planning(request):
        names = [f"/output/refactoring_plans/refactoring_plan{number}.md" for number in range(5)]
        texts = "; ".join(f"echo 'Use marker-{number}.' >{name}" for number, name in enumerate(names))
        steps = [shell(f"mkdir -p /output/refactoring_plans; {texts}")]
    else:
        steps = [shell("cat /task_description/* >pack/seen.txt"), _more(0)]
    return (
        next_step(request, steps)
        if turn(request) < len(steps)
        else Message("assistant", (TextBlock("Done."),))
    )


def by_shell_endless(request: Request) -> Message:
    return next_step(request, [_more(number) for number in range(turn(request) + 1)])


def by_shell_slowly(request: Request) -> ScriptedReply:
    """Four changes, with latency between them."""
    done = turn(request) == 4
    reply = Message("assistant", (TextBlock("Done."),)) if done else by_shell_endless(request)
    return ScriptedReply(reply.content, latency_s=0.3)


def fails_later_by_shell(request: Request) -> Message:
    if turn(request) < 2:
        return by_shell_endless(request)
    raise ModelSetupError("the scripted provider is gone", "base_url")


def malformed_later_by_shell(request: Request) -> Message:
    if turn(request) < 2:
        return by_shell_endless(request)
    raise MalformedReply("this is no reply")


def by_shell_then_slowly(request: Request) -> ScriptedReply:
    """The third reply comes long after all time limits."""
    return ScriptedReply(by_shell_endless(request).content, latency_s=300.0 if turn(request) == 2 else 0.0)


def slow_reply(_request: Request) -> ScriptedReply:
    return ScriptedReply((TextBlock("Done."),), latency_s=0.5)


def gone(_request: Request) -> Message:
    raise ModelSetupError("the scripted provider is gone", "base_url")


def java_coder(request: Request) -> Message:
    """Extract the loop of Shop.total under another name than the human, and rename Shop.other."""
    script = (
        "import re; path = 'src/p/Shop.java'; text = open(path).read(); "
        "start, end = text.index('  int sum = 0'), text.index('  System.out'); loop = text[start:end]; "
        "text = text.replace(loop, '  int sum = sumUp(prices, count);\\n  ', 1); "
        "text = text.replace('other(', 'another('); "
        "head = '  int sumUp(int[] prices, int count) {\\n'; "
        "method = head + loop.rstrip() + '\\n    return sum;\\n  }\\n'; "
        "open(path, 'w').write(text[:text.rindex('}')] + method + '}\\n')"
    )
    return next_step(request, [shell(f'python3 -c "{script}"'), FINISH])


def policy_later_by_shell(request: Request) -> Message:
    if turn(request) < 2:
        return by_shell_endless(request)
    raise ModelRefused("the prompt was flagged by the usage policy")


def unsuited_later_by_shell(request: Request) -> Message:
    if turn(request) < 2:
        return by_shell_endless(request)
    raise ModelSetupError("HTTP 400: no such option")


def declines_by_shell(request: Request) -> ScriptedReply:
    """Writes plans or a file, and then declines to go on."""
    reply = by_shell(request)
    return ScriptedReply(reply.content, stop=None if reply.tool_calls else StopReason.REFUSAL)


def tells_by_shell(request: Request) -> Message:
    """Writes its environment to a plan or a file, and then quotes what its command has printed."""
    path = "/output/refactoring_plan.md" if planning(request) else "pack/env.txt"
    if turn(request) == 0:
        return next_step(request, [shell(f"env | tee {path}; env | base64 >pack/encoded.txt")])
    return Message("assistant", (TextBlock(repr(request.messages[-1])),))
