#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# systemd reads our units without a complaint, finds what they start, and rates what they leave open.
# Usage: check_units.sh DIRECTORY_WITH_UNITS
set -euo pipefail
units=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/etc/systemd/system" "$root/usr/lib"
# The units' own world: systemd's targets, and a program at each path that a unit starts.
cp -a /usr/lib/systemd "$root/usr/lib/"
cp "$units"/*.service "$root/etc/systemd/system/"
failed=0
for unit in "$units"/*.service; do
  mapfile -t programs < <(sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' "$unit")
  for program in "${programs[@]}"; do
    mkdir -p "$root${program%/*}"
    printf '#!/bin/sh\n' > "$root$program"
    chmod 755 "$root$program"
  done
done

# Exposure in tenths, of 100: gateways reach into the memory of other users' programs, agents and controllers need little.
declare -A most=([rocegw-agent]=22 [rocegw-controller]=20 [rocegwd]=65)
for unit in "$units"/*.service; do
  name=$(basename "$unit" .service)
  said=$(systemd-analyze verify --root="$root" --man=no "/etc/systemd/system/$name.service" 2>&1 | grep -F "$name" || true)
  if [ -n "$said" ]; then
    echo "$name: systemd complains: $said"
    failed=1
  fi
  # Five failed starts in ten seconds end a unit for good otherwise.
  if ! grep -qx 'StartLimitIntervalSec=0' "$unit"; then
    echo "$name: does not start again for ever"
    failed=1
  fi
  exposure=$(systemd-analyze security --offline=true --root="$root" --no-pager "$name.service" |
    sed -n 's/.*Overall exposure level for .*: \([0-9]*\)\.\([0-9]\).*/\1\2/p')
  if [ -z "$exposure" ] || [ "$((10#$exposure))" -gt "${most[$name]}" ]; then
    echo "$name: exposure ${exposure:-unknown}, at most ${most[$name]}"
    failed=1
  else
    echo "$name: exposure $exposure of 100"
  fi
done
exit $failed
