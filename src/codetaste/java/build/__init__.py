"""Builds of Java projects, as data: which tool, which JDK, which commands, which lines were covered.

Nothing here runs a build or reads its console; ``swe_refactor/verify/`` does, in a sandbox.
"""
