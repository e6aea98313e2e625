#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_library.sh LIBRARY EXPORTS PASSED_THROUGH: the library needs nothing but libc, exports exactly the listed names, runs on
# old C libraries, and covers every public function of the installed libibverbs and librdmacm that takes a handle.
set -u
library=$1 exports=$2 passed_through=$3
newest_glibc=2.28
failed=0
fail() { echo "FAILED: $*"; failed=1; }
names() { grep -E '^[a-z_]' "$1" | sort -u; }

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
  case $name in libc.so.6|ld-linux-*.so.*) ;; *) fail "needs $name at run time" ;; esac
done

exported=$(readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $8 != "" && NR > 3 {print $8}' | sort -u)
diff <(echo "$exported") <(names "$exports") || fail "exported names are not those of $exports"

for version in $(readelf --dyn-syms -W "$library" | grep -o 'GLIBC_[0-9.]*' | sort -u); do
  newer=$(printf '%s\n' "${version#GLIBC_}" $newest_glibc | sort -V | tail -1)
  [ "$newer" = $newest_glibc ] || fail "uses $version, newer than $newest_glibc"
done

for installed in libibverbs.so.1 librdmacm.so.1; do
  path=$(ldconfig -p | sed -n "s|.*$installed .*=> ||p" | head -1)
  [ -n "$path" ] || { fail "$installed is not installed"; continue; }
  public=$(readelf --dyn-syms -W "$path" | awk '$4 == "FUNC" && $7 != "UND" {print $8}' |
    grep -v IBVERBS_PRIVATE | sed 's/@.*//' | sort -u)
  missing=$(comm -23 <(echo "$public") <(cat <(names "$exports") <(names "$passed_through") | sort -u))
  [ -z "$missing" ] || fail "neither ours nor known to be harmless in $installed:" $missing
done
exit $failed
