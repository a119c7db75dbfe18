"""What a study is made of: a folder with the artefacts of trials, read-only in the sandbox."""
