"""The strategy "agent": coding agents in sandboxes with the repository and its build tool (§4.4)."""
