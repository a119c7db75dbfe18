"""What an answer changes beside its refactoring, found in the syntax of files before and after."""
