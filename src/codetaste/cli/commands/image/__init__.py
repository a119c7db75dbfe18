"""``codetaste image``: one module for each subcommand."""

from __future__ import annotations

from cyclopts import App

image = App(name="image")
image.command(
    "codetaste.cli.commands.image.build:build",
    help="""\
    Build an image: a lean one, the polyglot one of the paper, one for Java, or your own.

    The first three need no image registry. The polyglot one has compilers, runtimes and test tools of many
    languages, the one for Java has several JDKs, Maven and Gradle; neither is built again while what it is
    made of stays the same.
    """,
)
image.command(
    "codetaste.cli.commands.image.list:print_images",
    name="list",
    help="List the images that codetaste built.",
)
image.command(
    "codetaste.cli.commands.image.check:check",
    help="""\
    Prove each tool of a polyglot or Java image by running it.

    Exit code 1 if a tool that is needed is missing or does not work.
    """,
)
image.command("codetaste.cli.commands.image.save:save", help="Write an image to a file.")
image.command(
    "codetaste.cli.commands.image.load:load",
    help="Load an image from a file, with the expected digest alone.",
)
image.command("codetaste.cli.commands.image.push:push", help="Push an image to a registry.")
image.command("codetaste.cli.commands.image.pull:pull", help="Pull an image from a registry.")
image.command("codetaste.cli.commands.image.list:rm", name="rm", help="Remove an image that codetaste built.")
