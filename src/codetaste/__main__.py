"""The ``codetaste`` program, and ``python -m codetaste``."""

from __future__ import annotations

from codetaste.core.early_interrupt import exit_on_sigint


def main() -> None:
    """Run the command line."""
    exit_on_sigint()
    from codetaste.cli.app import main as command  # noqa: PLC0415 - after the handler of Ctrl-C is set

    command()


if __name__ == "__main__":
    main()
