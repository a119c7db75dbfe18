"""Instances, the files that they are published in, and what people say of them."""
