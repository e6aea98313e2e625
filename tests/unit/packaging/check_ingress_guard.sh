#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The ingress guard in a network namespace of its own: RoCEv2 comes in from the network and from the
# host itself; a pod that sends in the name of a host of the network is dropped and counted. Usage:
# check_ingress_guard.sh RULES
set -euo pipefail
rules=$(realpath "$1")
if [ "$(id -u)" -ne 0 ] || ! command -v nft >/dev/null || ! unshare -n true 2>/dev/null; then
  echo "this test takes root, nft and network namespaces"
  exit 1
fi
if [ "${2:-}" != inside ]; then exec unshare -n -m "$0" "$rules" inside; fi

ip link set lo up
declare -A namespace_of
for side in pod net; do
  ip link add $side type veth peer name $side-far
  unshare -n sleep 30 & far=$!
  until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
  ip link set $side-far netns $far
  ip link set $side up
  sysctl -qw net.ipv4.conf.$side.rp_filter=0
  namespace_of[$side]=$far
done
trap 'kill "${namespace_of[@]}"' EXIT
sysctl -qw net.ipv4.conf.all.rp_filter=0
ip address add 10.9.1.1/24 dev pod
ip address add 10.9.2.1/24 dev net
# The pod has the address of a host of the network.
nsenter -t "${namespace_of[pod]}" -n bash -c "ip link set pod-far up; ip address add 10.9.1.2/24 dev pod-far; ip address add 10.9.2.2/32 dev pod-far; ip route add default via 10.9.1.1"
nsenter -t "${namespace_of[net]}" -n bash -c "ip link set net-far up; ip address add 10.9.2.2/24 dev net-far"

# Prints from where a datagram of that side to that port of this host has arrived.
received() {
  python3 -u -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', $2)); s.settimeout(1)
print('bound')
try: print(s.recvfrom(9)[1][0])
except TimeoutError: print('nothing')" | {
    read -r _
    send="import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('$3', 0)); s.sendto(b'x', ('10.9.2.1', $2))"
    if [ "$1" = host ]; then python3 -c "$send"; else nsenter -t "${namespace_of[$1]}" -n python3 -c "$send"; fi
    cat
  }
}
expect() {
  local got
  got=$(received "$1" "$2" "$3")
  [ "$got" = "$4" ] || { echo "from $1 as $3 to port $2: $got, not $4"; exit 1; }
}
expect pod 4791 10.9.2.2 10.9.2.2 # the attack works without the guard
nft --define "uplinks={ eth7 }" -f "$rules"
nft --define "uplinks={ eth7, net }" -f "$rules" # replaces the first
expect net 4791 10.9.2.2 10.9.2.2
expect host 4791 10.9.2.1 10.9.2.1
expect pod 4791 10.9.2.2 nothing
expect pod 4791 10.9.1.2 nothing
expect pod 4792 10.9.1.2 10.9.1.2
nft list table inet rocegw_ingress | grep -q "counter packets 2 " || { echo "the packets are not counted"; exit 1; }
