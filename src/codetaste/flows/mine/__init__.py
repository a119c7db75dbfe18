"""Mining: commits become candidates."""
