"""Running and judging test suites: the result of ``run_tests``, reports of tests, signs of cheating."""
