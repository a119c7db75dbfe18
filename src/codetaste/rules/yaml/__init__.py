"""Rules as YAML: composed to nodes, read with limits and lines."""
