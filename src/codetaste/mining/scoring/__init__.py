"""Stage 3 of mining: the scores of messages and diffs (CodeTaste A.1, Figures 9 and 10).

No model is called here; ``flows/mine/`` does that.
"""
