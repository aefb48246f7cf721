#!/usr/bin/env bash
# Runs every fuzz target of the given packages for a while each.
#
#   scripts/fuzz.sh TIME PACKAGE...       e.g. scripts/fuzz.sh 10s ./...
#
# The targets are found by listing, so that none can be forgotten. The first
# failure ends the run; go test then names the file that reproduces it.
set -euo pipefail
cd "$(dirname "$0")/.."

time=$1
shift
count=0
for package in $(go list "$@"); do
  targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
  for target in $targets; do
    printf '%s %s\n' "$package" "$target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
    count=$((count + 1))
  done
done
[ "$count" -gt 0 ] || { echo 'no fuzz target found' >&2; exit 1; }
printf '%d fuzz targets ran for %s each\n' "$count" "$time"
