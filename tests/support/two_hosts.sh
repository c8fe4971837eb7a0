#!/usr/bin/env bash
# Runs a command on one of two hosts that this machine plays: network namespaces with names, addresses, shared memory and
# a file system of their own, joined by a cable. Needs no privileges where users may make namespaces.
#     unshare --user --map-root-user --net --mount --uts --ipc --fork two_hosts.sh FOLDER COMMAND…
# FOLDER/local is another folder on each host, FOLDER/one and FOLDER/two; FOLDER/enter takes the place of ssh. The hosts'
# addresses are 10.77.0.1, where the command runs, and 10.77.0.2.
set -euo pipefail
folder="$1"
shift
mkdir -p "$folder"/{local,one,two}

# The other host lives until this shell closes the pipe that its only process reads.
exec 9> >(exec unshare --net --mount --uts --ipc cat)
other=$!

cat >"$folder/enter" <<END
#!/usr/bin/env bash
# As ssh: [options] HOST COMMAND…; the only host to enter is the other one.
while [[ "\$1" == -* ]]; do shift; done
shift
exec nsenter --target $other --net --mount --uts --ipc -- sh -c "\$*"
END
chmod +x "$folder/enter"

# shellcheck disable=SC2317 # called below, and on the other host by its text
furnish() { # NAME ADDRESS FOLDER
    hostname "$1"
    ip link set lo up
    ip addr add "$2/24" dev cable
    ip link set cable up
    mount -t sysfs sysfs /sys # MPI looks there for its network
    mount -t tmpfs tmpfs /dev/shm
    mount --bind "$3/$1" "$3/local"
}

until [ "$(readlink "/proc/$other/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add cable type veth peer name cable netns "$other"
"$folder/enter" two "set -e; $(declare -f furnish); furnish two 10.77.0.2 '$folder'"
furnish one 10.77.0.1 "$folder"
until [ "$(cat /sys/class/net/cable/operstate)" = up ]; do sleep 0.01; done
# shellcheck disable=SC2016 # for the other shell
"$folder/enter" two 'until [ "$(cat /sys/class/net/cable/operstate)" = up ]; do sleep 0.01; done'

"$@" 9>&-
