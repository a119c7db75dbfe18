"""Our own agent: tools, the tool-use loop, and the rule agent's tools."""
