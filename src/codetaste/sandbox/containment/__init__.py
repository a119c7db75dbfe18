"""Contain one command on this host: bubblewrap, or Landlock with seccomp.

Landlock is the fallback where user namespaces are forbidden, as on Ubuntu 24.04 and in containers. Only the
rule agent's read-only shell runs under it (``landlock.py``, ``launcher.py``); sandboxes need bubblewrap or a
container engine.
"""
