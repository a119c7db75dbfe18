"""Reports of trials: Tables 2 to 6 and Figure 3, comparisons, the stratified sample, failures (§4, §5)."""
