# Leave nothing of the build: caches, lists of packages, logs.
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/*.log ~root/.cache ~root/.npm ~root/.cargo
find /tmp /var/tmp -mindepth 1 -delete
find /home/agent -mindepth 1 -delete
: >/etc/machine-id
