"""No planted key survives in a file of a site, whatever the file's encoding."""

from __future__ import annotations

import base64
import gzip
import html
import json
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.core.text import REDACTED
from codetaste.site.html.site_file import data_script
from codetaste.site.output.redact import redact_file, redact_text
from codetaste.site.trial.packed import gzip_bytes, packed_script

ALPHANUMERIC = string.ascii_letters + string.digits


def random_text(length: int, alphabet: str = ALPHANUMERIC) -> st.SearchStrategy[str]:
    """Texts as random as keys are: most characters differ."""
    return st.text(alphabet, min_size=length, max_size=length).filter(
        lambda text: len(set(text)) > length // 4 and any(char.isdigit() for char in text)
    )


KEYS = st.one_of(
    random_text(40).map(lambda text: f"sk-ant-api03-{text}"),
    random_text(48).map(lambda text: f"sk-proj-{text}"),
    random_text(36).map(lambda text: f"ghp_{text}"),
    random_text(16, string.ascii_uppercase + "234567").map(lambda text: f"AKIA{text}"),
    random_text(35).map(lambda text: f"AIza{text}"),
)
SURROUNDINGS = st.sampled_from(
    [
        "{}",
        "export KEY={}\n",
        'key = "{}"',
        "curl -H 'Authorization: Bearer {}' x",
        "a {} b",
        '{{"k": "{}"}}',
        "\t{}\r\n",
    ]
)


def encodings(text: str) -> dict[str, bytes]:
    """Return ``text`` as the files of a site have it."""
    return {
        "page.html": f"<p title='x'>{html.escape(text)}</p>".encode(),
        "list.csv": f'"{text}",1\r\n'.encode(),
        "data.js": data_script("trial", {"events": [{"text": text}, text], text: 1}),
        "trial.json": json.dumps({"a": [text]}, indent=1).encode(),
        "patch-0.js": packed_script("patch-0", gzip_bytes(f"+{text}\n".encode())),
        "events-0.js": packed_script("events-0", gzip_bytes(json.dumps([{"text": text}]).encode())),
        "prediction.diff.gz": gzip_bytes(b"+first\n") + gzip_bytes(f"+{text}\n".encode()),
        "golden.diff": f"+{text}\n".encode(),
    }


def readable(name: str, content: bytes) -> str:
    """Return everything that a reader of the file can see, unpacked."""
    if name.endswith(".gz"):
        return gzip.decompress(content).decode()
    text = content.decode()
    if name.endswith("-0.js"):
        packed = json.loads(f"[{text[len('codetaste.receive(') : -3]}]")[1]
        return gzip.decompress(base64.b64decode(packed)).decode()
    return text + html.unescape(text)


@given(KEYS, SURROUNDINGS)
def test_no_planted_key_survives_in_any_encoding(key: str, around: str) -> None:
    for name, content in encodings(around.format(key)).items():
        redacted, found = redact_file(name, content)
        assert key not in readable(name, redacted)
        assert REDACTED in readable(name, redacted)
        assert {file for file, _ in found.counts} == {name}
        assert all(key not in kind for _, kind in found.counts)


@given(KEYS, st.integers(12, 30))
def test_the_beginning_of_a_key_does_not_survive_where_a_text_was_shortened(key: str, length: int) -> None:
    shown = redact_text(f"the key {key[:length]}… (653 characters)", Counter())
    assert shown == f"the key {REDACTED}… (653 characters)"


@given(random_text(24))
def test_values_named_like_keys_are_removed(value: str) -> None:
    for text in (f"api_key={value}", f'"password": "{value}"', f"SECRET_TOKEN := '{value}'"):
        assert value not in redact_text(text, Counter())


@given(st.lists(random_text(64, ALPHANUMERIC + "+/"), min_size=3, max_size=12))
def test_no_line_of_a_private_key_survives(lines: list[str]) -> None:
    # Composed, so that this file is not taken for one with a key.
    begin, end = (f"-----{edge} RSA PRIVATE {'KEY'}-----" for edge in ("BEGIN", "END"))
    block = "\n".join([begin, *lines, end])
    rows = "".join(f"<tr><td>{html.escape(each)}</td></tr>\n" for each in [begin, *lines, end])
    for name, content in {**encodings(block), "rows.html": rows.encode()}.items():
        shown = readable(name, redact_file(name, content)[0])
        assert not [line for line in lines if line in shown]


@pytest.mark.parametrize(
    "text",
    [
        "token_count = number_of_tokens_in_the_prompt",
        "password = get_password_from_user_input()",
        "index 0123456..89abcde 100644",
        "commit 15b2acde666561e1298d71b523007ed7364de070",
        "class SecretKeyProviderFactory(Base):",
        "secret = load_secret_from_environment",
    ],
)
def test_ordinary_code_stays(text: str) -> None:
    found: Counter[str] = Counter()
    assert redact_text(text, found) == text
    assert not found


def test_files_without_a_key_stay_as_they_are() -> None:
    for name, content in encodings("nothing here").items():
        assert redact_file(name, content)[0] == content
