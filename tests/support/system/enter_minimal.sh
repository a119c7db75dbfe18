#!/bin/sh
# Runs a command in a root file system as on a booted machine: with its own mounts, processes and host name, and the
# network of the host. Not in a chroot: the kernel refuses user namespaces to a process in one.
# Must be process 1 of new mount, pid, uts and ipc namespaces.   usage: enter_minimal.sh ROOT COMMAND…
set -eu
root=$1
shift
hostname minimal
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for node in null zero full random urandom tty; do
    touch "dev/$node"
    mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mkdir .machine
pivot_root . .machine
cd /
umount -l /.machine
rmdir /.machine
# Not exec: process 1 must be this script, not the user's command.
"$@"
