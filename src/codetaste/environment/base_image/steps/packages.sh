# Install the packages of the distribution.
mkdir -p /usr/share/man/man1 # Java's packages make links there, and slim images leave it out
apt-get update -q
# shellcheck disable=SC2086 # lists of packages
apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io $PACKAGES $MORE_PACKAGES
