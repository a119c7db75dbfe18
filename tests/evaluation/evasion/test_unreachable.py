"""Code after ``return`` and under conditions that are never true is found; other code is not."""

from __future__ import annotations

import pytest

from codetaste.evaluation.evasion.unreachable import is_unreachable

DEAD = {
    "after return": "def f():\n    return 1\n    HERE()\n",
    "after raise, in a block": "def f():\n    raise E\n    if x:\n        for y in z:\n            HERE()\n",
    "after return of several lines": "def f():\n    return g(\n        1,\n    )\n    HERE()\n",
    "if False": "if False:\n    HERE()\n",
    "if of an empty list": "if []:\n    HERE()\n",
    "while of an empty table": "while {}:\n    HERE()\n",
    "elif of an empty tuple": "if a:\n    b()\nelif ():\n    HERE()\n",
    "elif 0": "if x:\n    y()\nelif 0:\n    HERE()\n",
    "while 0 on the line": "while 0: HERE()\n",
    "if not True": "if not True:\n\n    HERE()\n",
    "else of if True": "if True:\n    x()\nelse:\n    HERE()\n",
    "return on the line": "def f(): return 1; HERE()\n",
    "false &&": "x = false && HERE()\n",
    "after return in braces": "function f() {\n  if (x) {\n    return\n    HERE()\n  }\n}\n",
    "if (false)": "if (false) {\n  HERE();\n}\n",
    "if (0) on the line": "if (0) HERE();\n",
    "if false in Go": "\tif false {\n\t\tHERE()\n\t}\n",
    "after throw": "{\n  throw new E();\n  HERE();\n}\n",
    "after panic": "{\n\tpanic(x)\n\tHERE()\n}\n",
    "after return with a condition in it": "def f():\n    return [x for x in y if x]\n    HERE()\n",
    "after a conditional value": "def f():\n    return 1 if x else 2\n    HERE()\n",
    "if false && of a condition": "if (false && x) {\n  HERE();\n}\n",
    "false && with a call": "x = false && g(a, HERE())\n",
    "else of #if 1": "#if 1\nx();\n#else\nHERE();\n#endif\n",
    "#if 0 before another": "#if 0\n#if X\nx();\n#else\ny();\n#endif\nHERE();\n#endif\n",
    "after JSX that is returned": "{\n  return (\n  <p/>\n  );\n  HERE();\n}\n",
    "an empty literal": "if    :\n    HERE()\n",
    "an empty literal in brackets": "if (  ) {\n  HERE();\n}\n",
    "if None": "if None:\n    HERE()\n",
    "if (!1)": "if (!1) {\n  HERE();\n}\n",
    "numbers that differ": "if 1 == 2:\n    HERE()\n",
    "numbers that differ in brackets": "while (1 === 2) {\n  HERE();\n}\n",
    "#if 0": "#if 0\n#ifdef X\nx();\n#endif\nHERE();\n#endif\n",
}
ALIVE = {
    "equal numbers": "if 1 == 1:\n    HERE()\n",
    "a symbol of Ruby": "if :a == x\n  HERE()\nend\n",
    "a literal in a variable": "if     in x:\n    HERE()\n",
    "a number and a variable": "if 1 == 2 + x:\n    HERE()\n",
    "after return if of Ruby": "def f\n  return if x\n  HERE()\nend\n",
    "after return unless of Ruby": "def f\n  return g(1) unless x?\n  HERE()\nend\n",
    "after raise unless of Ruby": "def f\n  raise E, [1] unless x\n  HERE()\nend\n",
    "else of #if 0": "#if 0\nx();\n#else\nHERE();\n#endif\n",
    "elif of #if 0": "#if 0\nx();\n#elif X\nHERE();\n#endif\n",
    "a condition of two lines": "if (0\n    || x) {\n  HERE();\n}\n",
    "false or another condition": "if (false || x) {\n  HERE();\n}\n",
    "a false condition or another": "if (0) or x:\n    HERE()\n",
    "false and x, or another": "if (false && x || y) {\n  HERE();\n}\n",
    "a function of Rust after return": "  return x;\n\n  fn helper() {\n    HERE();\n  }\n",
    "a public async function of Rust": "  return x;\n\n  pub(crate) async fn h() {\n    HERE();\n  }\n",
    "export default after return": "  return x\n  export default function g() {\n    HERE()\n  }\n",
    "JSX that is returned": "  return (\n  <div>\n    {HERE()}\n  </div>\n  )\n",
    "another value than false &&": "x = false && a || HERE()\n",
    "an argument after false &&": "g(false && a, HERE())\n",
    "after a branch that returns": "def f():\n    if x:\n        return 1\n    HERE()\n",
    "in the return's call": "def f():\n    return g(\n        HERE()\n    )\n",
    "in a chain of calls": "  return foo\n  .bar(HERE())\n",
    "in another case": "switch (x) {\n  case 1:\n    return 1\n  case 2:\n    HERE()\n}\n",
    "in a case of Go": "\tswitch x {\n\tcase 1:\n\t\treturn\n\tdefault:\n\t\tHERE()\n\t}\n",
    "after a label": "  goto out;\nout:\n  HERE();\n",
    "after a label of the same depth": "  return 1;\n  out:\n  HERE();\n",
    "in a function declared after return": "  return api\n\n  function helper() {\n    HERE()\n  }\n",
    "in except": "try:\n    return 1\nexcept E:\n    HERE()\n",
    "else of a real condition": "if x:\n    return 1\nelse:\n    HERE()\n",
    "if of an empty array, which is true": "if ([]) {\n    HERE()\n}\n",
    "if with an empty list": "if [] == a:\n    HERE()\n",
    "if False in a name": "if Falsehood:\n    HERE()\n",
    "after a loop that breaks": "for x in y:\n    break\nHERE()\n",
    "in another function": "def f():\n    return 1\n\n\ndef g():\n    HERE()\n",
    "after #endif": "#if 0\nx();\n#endif\nHERE();\n",
    "a key named return": "x = {\n  return: 1,\n  y: HERE()\n}\n",
    "a variable whose name begins like return": "returned = 1\nHERE()\n",
}


@pytest.mark.parametrize("code", DEAD.values(), ids=DEAD)
def test_code_that_never_runs_is_unreachable(code: str) -> None:
    assert is_unreachable(code.encode().split(b"\n"), *_place(code))


@pytest.mark.parametrize("code", ALIVE.values(), ids=ALIVE)
def test_code_that_may_run_is_reachable(code: str) -> None:
    assert not is_unreachable(code.encode().split(b"\n"), *_place(code))


def _place(code: str) -> tuple[int, int]:
    before = code[: code.index("HERE")]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
