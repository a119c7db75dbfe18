"""Our own agent: tools, the tool-use loop, and the tools of the rule agent and the coding agent."""
