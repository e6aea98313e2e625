#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_engine.sh LIBRARY: librocegw-engine.so, which is loaded into strangers' processes, defines two names for them and needs no
# library but those of the C library.
set -u
failed=0
fail() { echo "FAILED: $*"; failed=1; }
exported=$(nm -D --defined-only "$1" | awk '{print $3}')
[ "$exported" = $'rocegw_engine_attach\nrocegw_engine_progress' ] || fail "$1 exports: ${exported//$'\n'/ }"
for name in $(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  case $name in libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;; *) fail "$1 needs $name at run time" ;; esac
done
readelf -dW "$1" | grep -q NODELETE || fail "$1 could be unloaded under its threads"
exit $failed
