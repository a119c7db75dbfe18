"""Signs that a patch makes tests pass by other means than by its code: flags with evidence.

A flag is no verdict: each detector says which honest patches have it too. Attacks on the scripts, the results
or the rules gain nothing, because they are outside of what a patch can write; attacks from inside the test
process can only be seen.
"""
