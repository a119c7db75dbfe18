"""Java text by its syntax: types, members and imports with byte ranges, by tree-sitter, without a build."""
