"""The strategy ``multi-agent``: a developer with tools and a reviewer with evidence (Appendix G)."""
