"""Commands that count as bulk edits."""

from __future__ import annotations

import textwrap

import pytest

from codetaste.evaluation.activity.counts import Activity
from codetaste.evaluation.activity.transcripts import command_activity

ONE, SEVERAL = Activity(commands=1, bulk_edits=1), Activity(commands=1, bulk_edits=1, wide_edits=1)
SCRIPTED, NONE = Activity(commands=1, scripted_edits=1), Activity(commands=1)
KINDS = {
    "sed -i 's/a/b/' f.py": ONE,
    "sed -i '' s/a/b/ f": ONE,
    "sed -Ei s/a/b/ f": ONE,
    "sed -e 's/a/b/' -i f": ONE,
    "sed -i.bak -e s/a/b/ f g": SEVERAL,
    "sed --in-place s/a/b/ src/*.py": SEVERAL,
    "sed -i s/a/b/ {a,b}.py": SEVERAL,
    "sed -i 's/a/b/' $(git ls-files)": SEVERAL,
    "cd x && sudo sed -i s/a/b/ f": ONE,
    "perl -pi -e 's/a/b/' f": ONE,
    "perl -0777 -i -pe 's/a/b/' a b": SEVERAL,
    "perl -i.bak -pe s/a/b/ x": ONE,
    "ruby -pi -e 'x' f": ONE,
    "gawk -i inplace '{print}' f": ONE,
    "rg -l foo | xargs perl -pi -e 's/a/b/'": SEVERAL,
    "grep -rl a . | xargs -0 -n 10 sed -i 's/a/b/g'": SEVERAL,
    "find . -name '*.go' -exec sed -i 's/a/b/' {} +": SEVERAL,
    "find . -name '*.go' -exec bash -c 'sed -i s/a/b/ \"$1\"' _ {} \\;": SEVERAL,
    "for f in a b; do sed -i s/x/y/ $f; done": SEVERAL,
    'git grep -l x | while read f; do sed -i s/x/y/ "$f"; done': SEVERAL,
    "sd a b f": SEVERAL,
    "ast-grep run -p a -r b -U": SCRIPTED,
    "comby 'a' 'b' -i .go": SCRIPTED,
    "npx jscodeshift -t x.js src": SCRIPTED,
    "gofmt -r 'a -> b' -w .": SCRIPTED,
    "node -e 'for (const f of files) { fs.writeFileSync(f, x) }'": SCRIPTED,
    "python3 -c \"[p.write_text(p.read_text().replace('a', 'b')) for p in files]\"": SCRIPTED,
    "sed -n 's/a/b/p' f": NONE,
    "sed 's/-i/x/' f": NONE,
    "sed 's/a/b/' f > g": NONE,
    "echo sed -i": NONE,
    "grep -i foo x": NONE,
    "perl -ne 'print if /x/' f": NONE,
    "perl -Mstrict -e 1": NONE,
    "ast-grep -p a": NONE,
    "jscodeshift -d x": NONE,
    "gofmt -w .": NONE,
    "gofmt -r 'a -> b' -l .": NONE,
    "git apply x.diff": Activity(commands=1, edits=1),
    "git apply --check x.diff": NONE,
    "apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE": Activity(commands=1, edits=1),
}


@pytest.mark.parametrize("text", KINDS)
def test_bulk_edit_commands_are_classified(text: str) -> None:
    assert command_activity(text) == KINDS[text]


LOOPS = """
    for path in Path().rglob('*.py'):
        path.write_text(path.read_text().replace('a', 'b'))
"""
CALLED = """
    def fix(path):
        with open(path, 'w') as file:
            file.write('x')
    for path in paths:
        fix(path)
"""
ONE_FILE = """
    path = Path('a')
    text = path.read_text()
    for old, new in pairs:
        text = text.replace(old, new)
    path.write_text(text)
"""
LOOKS = """
    for path in Path().rglob('*.py'):
        sys.stdout.write(path.name)
"""


@pytest.mark.parametrize(("code", "rewrites"), [(LOOPS, 1), (CALLED, 1), (ONE_FILE, 0), (LOOKS, 0)])
def test_inline_script_counts_if_it_writes_files_in_loop(code: str, rewrites: int) -> None:
    text = textwrap.dedent(code)
    for command in (f"python3 - <<'E'\n{text}E\n", f"cd x; cat a | python <<'E'\n{text}E\n"):
        assert command_activity(command).scripted_edits == bool(rewrites), command
