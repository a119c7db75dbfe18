"""The prompt of a request: its parts, their pieces, and the bound of their tokens."""
