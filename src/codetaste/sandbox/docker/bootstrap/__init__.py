"""Images made from root file systems of Debian and Ubuntu, without a container registry."""
