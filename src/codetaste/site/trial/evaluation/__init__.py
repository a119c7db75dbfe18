"""The evaluation of a trial, as its page shows it: details of the scores, rule by rule, test by test."""
