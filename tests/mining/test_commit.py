"""The message in which keywords are counted."""

from __future__ import annotations

from codetaste.mining.commit import CommitRecord, PullRequest


def test_text_of_a_pull_request_is_its_title_and_body() -> None:
    pull_request = PullRequest(1, "Title", "Body")
    record = CommitRecord("acme/anvil", "a" * 40, message="Merge", pull_request=pull_request)
    assert record.text == "Title\n\nBody"
    assert CommitRecord("acme/anvil", "a" * 40, message="Split it").text == "Split it"
