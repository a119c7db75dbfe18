"""GitHub's API: facts of pull requests, commits and repositories, asked politely and kept on disk."""
