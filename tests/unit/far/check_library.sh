#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# librocegw-memory needs nothing but libc, libibverbs and librdmacm, and exports exactly the calls of its headers,
# which are C. Usage: check_library.sh LIBRARY HEADER ...
set -euo pipefail
library=$1
shift
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
for name in $needed; do
  case $name in
    libc.so.6 | libm.so.6 | libibverbs.so.1 | librdmacm.so.1 | ld-linux-x86-64.so.2) ;;
    *) echo "$library needs $name"; exit 1 ;;
  esac
done
exported=$(nm -D --defined-only "$library" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | sort)
declared=$(grep -ohE 'rocegw_memory_[a-z_]+\(' "$@" | tr -d '(' | sort -u)
[ "$exported" = "$declared" ] || { diff <(echo "$exported") <(echo "$declared"); exit 1; }
echo "$(printf '#include "%s"\n' "$@")
static struct rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
uint32_t replicas(void);
uint32_t replicas(void) { return options.replicas; }" | cc -std=c11 -Wall -Wextra -Werror -x c -c -o /dev/null -
