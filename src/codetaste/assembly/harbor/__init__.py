"""Instances as tasks of Harbor: instruction, image, golden patch and verifier, one folder each."""
