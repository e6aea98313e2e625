#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user who may not reach the gateway's socket reads that it is a matter of rights, and where they are said.
# Usage: check_no_right.sh LIBRARY ROCEGW_RUN; needs root, to be another user.
set -euo pipefail
[ "$(id -u)" = 0 ] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib"
cp "$1" "$folder/lib/"
cp "$2" "$folder/bin/"
chmod -R a+rX "$folder"
mkdir -m 0750 "$folder/slot"
export ROCEGW_SOCKET=$folder/slot/attach.sock
as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
failed=0
expect() {
  if ! grep -q "the gateway at $ROCEGW_SOCKET cannot be reached by user 65534 (Permission denied)" <<<"$1" ||
    ! grep -q "socket_mode" <<<"$1"; then
    printf 'said instead: %s\n' "$1"
    failed=1
  fi
}
expect "$(ROCEGW_RUN=1 LD_PRELOAD=$folder/lib/$(basename "$1") "${as_user[@]}" ibv_devices 2>&1 || true)"
expect "$("${as_user[@]}" "$folder/bin/rocegw-run" -- ibv_devices 2>&1 || true)"
exit $failed
