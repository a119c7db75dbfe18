"""One reader for each format of test reports. All input is untrusted: a reader raises InvalidReport alone."""
