#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_library.sh LIBRARY CLIENT_SOURCES DROP_IN_FOLDER: the library needs nothing but libc, exports exactly the listed
# names, the calls of rocegwdv.h with their version, runs on old C libraries, and covers every public function of the installed
# libibverbs and librdmacm that takes a handle. The drop-in pair needs only the library besides, and exports exactly what the
# installed pair does, and what later releases of it do.
set -u
library=$1 exports=$2/exports.txt passed_through=$2/passed_through.txt later_names=$2/drop_in/later_names.txt drop_in=$3
newest_glibc=2.28
failed=0
fail() { echo "FAILED: $*"; failed=1; }
names() { grep -E '^[a-z_]' "$1" | sort -u; }

fits_old_systems() { # FILE ALLOWED...: libraries that it may need besides libc
  local file=$1 name version newer
  shift
  for name in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case " libc.so.6 ld-linux-x86-64.so.2 $* " in *" $name "*) ;; *) fail "$file needs $name at run time" ;; esac
  done
  for version in $(readelf --dyn-syms -W "$file" | grep -o 'GLIBC_[0-9.]*' | sort -u); do
    newer=$(printf '%s\n' "${version#GLIBC_}" $newest_glibc | sort -V | tail -1)
    [ "$newer" = $newest_glibc ] || fail "$file uses $version, newer than $newest_glibc"
  done
}
versioned() { nm -D --defined-only --with-symbol-versions "$1" | awk '{print $3}' | sort; }

fits_old_systems "$library"
fits_old_systems "$drop_in/libibverbs.so.1" "${library##*/}"
fits_old_systems "$drop_in/librdmacm.so.1" "${library##*/}" libibverbs.so.1

# A version is a symbol itself.
exported=$(versioned "$library" | grep -vx ROCEGWDV_1.0)
diff <(echo "$exported") <(names "$exports" | sed 's/^rocegwdv_.*/&@@ROCEGWDV_1.0/' | sort) ||
  fail "exported names and versions are not those of $exports"

for installed in libibverbs.so.1 librdmacm.so.1; do
  path=$(ldconfig -p | sed -n "s|.*$installed .*=> ||p" | head -1)
  [ -n "$path" ] || { fail "$installed is not installed"; continue; }
  public=$(readelf --dyn-syms -W "$path" | awk '$4 == "FUNC" && $7 != "UND" {print $8}' |
    grep -v IBVERBS_PRIVATE | sed 's/@.*//' | sort -u)
  missing=$(comm -23 <(echo "$public") <(cat <(names "$exports") <(names "$passed_through") | sort -u))
  [ -z "$missing" ] || fail "neither ours nor known to be harmless in $installed: ${missing//$'\n'/ }"
  [ "$(versioned "$path" | wc -l)" -gt 20 ] || fail "$path seems to export nothing"
  # A release among the later ones has some of their functions itself.
  later=$(awk -v library="${installed%%.*}" '$1 == library {print $3 "@@" $2; print $2}' "$later_names")
  diff <(cat <(versioned "$path") <(echo "$later") | sort -u) <(versioned "$drop_in/$installed" | sort -u) ||
    fail "$drop_in/$installed is not like $path and later ones"
  readelf -dW "$drop_in/$installed" | grep -q "(SONAME).*\[$installed\]" || fail "$drop_in/$installed has another soname"
done
lost=$(awk '!/^#/ {print $3}' "$later_names" | sort | comm -23 - <(cat <(names "$exports") <(names "$passed_through") | sort -u))
[ -z "$lost" ] || fail "later functions that are neither ours nor known to be harmless: ${lost//$'\n'/ }"
exit $failed
