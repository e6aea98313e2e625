#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that the launcher must look at before it runs them. Usage: check_run.sh LAUNCHER RUN_WITH_FAKE_DAEMON LIBRARY
# capabilities: refused with a line, as set-uid programs are; needs root. iterate: a program with a dl_iterate_phdr of its own
# sees the device; one built with a sanitizer is refused with a line, and sees the device with the drop-in pair.
set -euo pipefail
what=$1 launcher=$2 fake=$3 library=$4
pair=$(dirname "$library")/rocegw-drop-in
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"

case $what in
capabilities)
  if [ "$(id -u)" != 0 ]; then
    echo "needs root"
    exit 77
  fi
  cp /bin/true "$folder/program"
  # Version 2, effective, net_bind_service.
  python3 -c 'import os, struct, sys; os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))' \
    "$folder/program"
  cp "$launcher" "$folder/rocegw-run"
  cp "$library" "$folder/librocegw-verbs.so"
  chmod 755 "$folder"/*
  status=0
  text=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$folder/rocegw-run" -- "$folder/program" 2>&1) || status=$?
  [ "$status" = 126 ] || { echo "exit status $status: $text"; exit 1; }
  grep -q "program has file capabilities" <<<"$text" || { echo "$text"; exit 1; }
  ;;
iterate)
  cat >"$folder/own.c" <<'C'
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <link.h>
#include <stdio.h>
#ifdef OWN
static void *cache;
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
  (void)visit, (void)data;
  return *(volatile int *)cache;  // faults until main has filled the cache, as programs do that keep the list
}
#endif
int main(void) {
#ifdef OWN
  static int zero;
  cache = &zero;
#endif
  int count = 0;
  struct ibv_device **list = ibv_get_device_list(&count);
  struct ibv_context *context = list && count ? ibv_open_device(list[0]) : NULL;
  printf("%d devices, %s\n", count, context ? "open" : "closed");
  if (!context) return 1;
  ibv_free_device_list(list);
  return ibv_close_device(context);
}
C
  cc -g -DOWN -o "$folder/own" "$folder/own.c" -libverbs
  text=$("$fake" "$library" "$folder/own" 2>&1) || { echo "$text"; exit 1; }
  grep -q "1 devices, open" <<<"$text" || { echo "$text"; exit 1; }
  for kind in thread address; do
    cc -g "-fsanitize=$kind" -o "$folder/own" "$folder/own.c" -libverbs
    status=0
    text=$("$launcher" -- "$folder/own" 2>&1) || status=$?
    [ "$status" = 126 ] || { echo "exit status $status: $text"; exit 1; }
    grep -qi "${kind}Sanitizer.*use --drop-in" <<<"$text" || { echo "$text"; exit 1; }
    text=$("$fake" "$pair" "$folder/own" 2>&1) || { echo "$kind: $text"; exit 1; }
    grep -q "1 devices, open" <<<"$text" || { echo "$kind: $text"; exit 1; }
  done
  ;;
esac
