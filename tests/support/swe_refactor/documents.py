"""Instances made by the tests, in the published JSON shape."""

from __future__ import annotations

from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def document(**changes: Any) -> dict[str, Any]:
    """Return an instance's JSON object; ``changes`` replace or add keys, ``...`` leaves one out."""
    path, place = "src/main/java/p/A.java", {"startColumn": 0, "endColumn": 0}
    found = {
        "type": "Extract Method",
        "description": "Extract Method\tprivate b() : void extracted from package a() : void in class p.A",
        "diffLocations": [
            {"filePath": path, "startLine": start, "endLine": end, **place}
            for start, end in ((3, 6), (3, 5), (7, 9))
        ],
        "sourceCodeBeforeRefactoring": "void a() {\n    x();\n    y();\n  }",
        "filePathBefore": path,
        "isPureRefactoring": True,
        "commitId": COMMIT,
        "packageNameBefore": "p",
        "classNameBefore": "p.A",
        "methodNameBefore": "p.A#a",
        "invokedMethod": "methodSignature: p.A#x\n methodBody: void x() {\n}",
        "classSignatureBefore": "class A ",
        "methodNameBeforeSet": ["p.A#a"],
        "classNameBeforeSet": ["p.A"],
        "classSignatureBeforeSet": ["class A "],
        "purityCheckResultList": [
            {
                "isPure": True,
                "purityComment": "Identical statements",
                "description": "There is no replacement! - all mapped",
                "mappingState": 1,
            }
        ],
        "sourceCodeBeforeForWhole": "package p;\nclass A {\n}\n",
        "filePathAfter": path,
        "sourceCodeAfterForWhole": "package p;\nclass A {\n}\n",
        "diffSourceCodeSet": ["private void b() {\n    y();\n  }"],
        "invokedMethodSet": ["methodSignature: p.A#x\n methodBody: void x() {\n}"],
        "sourceCodeAfterRefactoring": "void a() {\n    x();\n  }\nprivate void b() {\n    y();\n  }",
        "diffSourceCode": "-    3:   void a() {\n",
        "uniqueId": f"{COMMIT}_3_6_7_9_3_5",
        "moveFileExist": True,
        "compileResultBefore": True,
        "compileResultCurrent": True,
        "compileJDK": 1.8,
        "testResult": True,
        "coverageInfo": {"LINE": {"missed": 0, "covered": 2}, "METHOD": {"missed": 0, "covered": 1}},
    } | changes
    return {key: value for key, value in found.items() if value is not ...}
