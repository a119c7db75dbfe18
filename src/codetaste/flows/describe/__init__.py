"""Task descriptions of instances, written by a model and reviewed by people (CodeTaste §3.2)."""
