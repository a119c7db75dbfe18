"""The page of one trial: patch, rules, tests, plans, transcript, timeline."""
