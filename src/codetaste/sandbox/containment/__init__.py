"""Contain one command on this host: bubblewrap, or Landlock with seccomp.

Landlock is the fallback where user namespaces are forbidden.
"""
