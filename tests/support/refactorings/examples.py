"""Small changes with known refactorings, in each language that RefactoringMiner reads."""

from __future__ import annotations

from dataclasses import dataclass

BODY = "package p;\n\nclass {name} {{\n{members}}}\n"


def java(name: str, *members: str) -> str:
    return BODY.format(
        name=name, members="".join(f"  {line}\n" for each in members for line in each.split("\n"))
    )


LONG = """int total(int[] prices, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    sum += prices[i];
  }
  System.out.println("sum " + sum);
  return sum;
}"""
SHORT = """int total(int[] prices, int count) {
  int sum = add(prices, count);
  System.out.println("sum " + sum);
  return sum;
}"""
EXTRACTED = """private int add(int[] prices, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    sum += prices[i];
  }
  return sum;
}"""
EXTRACTED_WITH_A_FIX = EXTRACTED.replace("sum += prices[i]", "sum += prices[i] * 2 - 7").replace(
    "i = 0", "i = 1"
)

PATH = "src/p/Shop.java"
BEFORE = {PATH: java("Shop", LONG)}
PURE = {PATH: java("Shop", SHORT, EXTRACTED)}
IMPURE = {PATH: java("Shop", SHORT, EXTRACTED_WITH_A_FIX)}


@dataclass(frozen=True)
class Example:
    """One file before and after a method or function ``show`` is extracted from another."""

    path: str
    before: str
    after: str


_CLASS = ("class A {{\n  f(a{t}){t} {{\n    const x = a + 1;\n{body}    return x;\n  }}\n{more}}}\n",)
_PRINTS = "    console.log(x);\n    console.log(x + 1);\n"


def _script(path: str, kind: str) -> Example:
    frame = _CLASS[0]
    extracted = f"  show(x{kind}) {{\n{_PRINTS}  }}\n"
    return Example(
        path,
        frame.format(t=kind, body=_PRINTS, more=""),
        frame.format(t=kind, body="    this.show(x);\n", more=extracted),
    )


EXAMPLES = {
    "Python": Example(
        "src/a.py",
        "def f(a):\n    x = a + 1\n    print(x)\n    print(x + 1)\n    return x\n",
        "def f(a):\n    x = a + 1\n    show(x)\n    return x\n\n"
        "def show(x):\n    print(x)\n    print(x + 1)\n",
    ),
    "Kotlin": Example(
        "src/a.kt",
        "package p\nclass A {\n  fun f(a: Int): Int {\n    val x = a + 1\n    println(x)\n"
        "    println(x + 1)\n    return x\n  }\n}\n",
        "package p\nclass A {\n  fun f(a: Int): Int {\n    val x = a + 1\n    show(x)\n    return x\n  }\n"
        "  fun show(x: Int) {\n    println(x)\n    println(x + 1)\n  }\n}\n",
    ),
    "TypeScript": _script("src/a.ts", ": number"),
    "JavaScript": _script("src/a.js", ""),
}
