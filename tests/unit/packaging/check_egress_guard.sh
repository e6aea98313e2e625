#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The egress guard in a network namespace of its own: the gateway's user sends RoCEv2, others do not,
# and packets that the host forwards for a pod do not leave. Usage: check_egress_guard.sh RULES
set -euo pipefail
rules=$(realpath "$1")
if [ "$(id -u)" -ne 0 ] || ! command -v nft >/dev/null || ! unshare -n true 2>/dev/null; then
  echo "this test takes root, nft and network namespaces"
  exit 1
fi
if [ "${2:-}" != inside ]; then exec unshare -n -m "$0" "$rules" inside; fi

ip link set lo up
# Sends as that user to that port; prints what became of it.
try() {
  python3 - "$1" "$2" <<'P'
import os, socket, sys
os.setuid(int(sys.argv[1]))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    try:
        sender.sendto(b"x", ("127.0.0.1", int(sys.argv[2])))
        print("sent")
    except PermissionError:
        print("refused")
P
}
expect() {
  local got
  got=$(try "$1" "$2")
  [ "$got" = "$3" ] || { echo "user $1 to port $2: $got, not $3"; exit 1; }
}
expect 65534 4791 sent
nft --define gateway=993 -f "$rules"
nft --define gateway=994 -f "$rules" # replaces the first
expect 994 4791 sent
for user in 0 993 65534; do expect $user 4791 refused; done
expect 65534 4792 sent

# A pod behind one veth, the network behind another.
nft flush ruleset
declare -A namespace_of
for side in pod net; do
  ip link add $side type veth peer name $side-far
  unshare -n sleep 30 & far=$!
  until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
  ip link set $side-far netns $far
  ip link set $side up
  namespace_of[$side]=$far
done
trap 'kill "${namespace_of[@]}"' EXIT
sysctl -qw net.ipv4.ip_forward=1
ip address add 10.9.1.1/24 dev pod
ip address add 10.9.2.1/24 dev net
nsenter -t "${namespace_of[pod]}" -n bash -c "ip link set pod-far up; ip address add 10.9.1.2/24 dev pod-far; ip route add default via 10.9.1.1"
nsenter -t "${namespace_of[net]}" -n bash -c "ip link set net-far up; ip address add 10.9.2.2/24 dev net-far; ip route add default via 10.9.2.1"
forwarded() {
  nsenter -t "${namespace_of[net]}" -n python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', $1)); s.settimeout(1)
print('bound', flush=True)
try: s.recv(9); print('arrived')
except TimeoutError: print('nothing')" | {
    read -r _
    nsenter -t "${namespace_of[pod]}" -n bash -c "echo x > /dev/udp/10.9.2.2/$1"
    cat
  }
}
[ "$(forwarded 4791)" = arrived ] || { echo "the pod's packets do not arrive without the guard"; exit 1; }
nft --define gateway=994 -f "$rules"
[ "$(forwarded 4791)" = nothing ] || { echo "a forwarded packet has left"; exit 1; }
[ "$(forwarded 4792)" = arrived ] || { echo "the guard stops other ports"; exit 1; }
