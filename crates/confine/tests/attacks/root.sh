#!/bin/sh
# Makes a throw-away root over the machine's and runs the attacks in it: root.sh SCRATCH PYTHON-SCRIPT ARGUMENT...
# Started by `unshare -mpnf`, in namespaces of its own. Whatever the attacks change is in SCRATCH/upper.
set -eu
scratch=$1
shift
mount --make-rprivate /
mount -t tmpfs none "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
root=$scratch/root
mkdir -p "$root/mnt/old" "$root/mnt/upper"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount --bind "$scratch/upper" "$root/mnt/upper"
cd "$root"
pivot_root . mnt/old
cd /
umount -l /mnt/old
exec python3 "$@"
