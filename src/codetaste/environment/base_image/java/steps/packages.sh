# The JDKs, each with a link of its own, and the tools that build with them.
mkdir -p /usr/share/man/man1 # Java's packages make links there, and slim images leave it out
apt-get update -q
jdks=
for jdk in $JDKS; do jdks="$jdks openjdk-$jdk-jdk-headless"; done
# shellcheck disable=SC2086 # lists of packages
apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io $PACKAGES $jdks
mkdir -p /opt/jdk
for jdk in $JDKS; do ln -sfnT "$(ls -d "/usr/lib/jvm/java-$jdk-openjdk-"*)" "/opt/jdk/$jdk"; done
