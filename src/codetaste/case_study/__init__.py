"""Case studies: agents compare the trials of an instance with its golden patch (CodeTaste Appendix C)."""
