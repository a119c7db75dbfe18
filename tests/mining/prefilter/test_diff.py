import gzip

from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.commit import CommitRecord
from codetaste.mining.prefilter.diff import ChangeStatus, FileChange, make_commit_diff

_RECORD = CommitRecord("acme/shop", "a" * 40)
_FILES = st.builds(
    FileChange,
    st.text(min_size=1),
    st.none() | st.text(min_size=1),
    st.sampled_from(ChangeStatus),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)


@given(st.lists(_FILES), st.binary(max_size=4000))
def test_numbers_of_a_diff_are_those_of_its_files_and_its_text(files: list[FileChange], text: bytes) -> None:
    diff = make_commit_diff(_RECORD, "b" * 40, "a" * 40, files, text)
    assert diff.changed_files == len(files)
    assert diff.changed_lines == sum(file.additions for file in files) + sum(file.deletions for file in files)
    assert diff.context_free_diff == text
    expected = len(gzip.compress(text, 6)) / len(text) if text else 0.0
    assert diff.compression_ratio == expected


def test_a_repetitive_diff_has_a_lower_ratio_than_a_varied_one() -> None:
    same = b"".join(b"-old()\n+new()\n" for _ in range(500))
    varied = b"".join(
        b"-call%d(%d)\n+use%d(%d)\n" % (n, n * 7919 % 1009, n, n * 104729 % 997) for n in range(500)
    )
    ratios = [
        make_commit_diff(_RECORD, "b" * 40, "a" * 40, (), text).compression_ratio for text in (same, varied)
    ]
    assert ratios[0] < ratios[1]
