#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_manual.sh PAGES HEADER EXPORTS: each call of rocegwdv.h that the library exports is declared in the header and has a page
# that says what a page has to say, names every member of the structures it takes, and that the formatter finds nothing wrong with.
set -u
pages=$1 header=$2 exports=$3
failed=0
fail() { echo "FAILED: $*"; failed=1; }

command -v groff >/dev/null || fail "groff is not installed (package groff-base)"
calls=$(grep '^rocegwdv_' "$exports")
[ -n "$calls" ] || fail "no calls in $exports"
for call in $calls; do
  page=$pages/$call.3
  grep -q "[ *]$call(" "$header" || fail "$call is not declared in $header"
  [ -f "$page" ] || { fail "$call has no page"; continue; }
  for section in NAME SYNOPSIS DESCRIPTION '"\?RETURN VALUE"\?' '"\?SEE ALSO"\?'; do
    grep -q "^\.SH $section" "$page" || fail "$page has no section $section"
  done
  tr '\n' ' ' <"$page" | grep -q "include <rocegw/rocegwdv.h>.*$call(" || fail "$page does not show how it is called"
done
for page in "$pages"/*.3; do
  name=$(basename "$page" .3)
  grep -qx "$name" <<<"$calls" || fail "$page is about no call"
  complaints=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
  [ -z "$complaints" ] || fail "$complaints"
  # What refers to a page of ours refers to one that is there.
  mapfile -t others < <(grep -o 'rocegwdv_[a-z_]* (3)' "$page" | sed 's/ (3)//' | sort -u)
  for other in "${others[@]}"; do
    [ -f "$pages/$other.3" ] || fail "$page refers to $other"
  done
done
# Every value of an enumeration is explained somewhere.
mapfile -t values < <(grep -o 'ROCEGWDV_[A-Z_]* =' "$header" | sed 's/ =//' | sort -u)
for value in "${values[@]}"; do
  grep -q "$value" "$pages"/*.3 || fail "no page explains $value"
done
exit $failed
