#!/bin/sh
# skipped.sh LOG OUTPUTS: what a run of ctest left out: whole tests, from its log, and cases within the programs,
# from the file with all that the tests printed (Testing/Temporary/LastTest.log), with their reasons; then the
# numbers.
set -eu
grep -hE '\*\*\*(Skipped|Not Run)' "$1" || true
grep -hE -A1 '^[^ ]+: Skipped$' "$2" | grep -vE ': Skipped$|^--$|^$' | sort | uniq -c || true
tests=$(grep -cE '\*\*\*(Skipped|Not Run)' "$1" || true)
cases=$(grep -cE '^\[  SKIPPED \] .* \([0-9]+ ms\)$' "$2" || true)
others=$(sed -nE 's/^OK \(skipped=([0-9]+)\)$/\1/p' "$2" | awk '{ sum += $1 } END { print sum + 0 }')
echo "skipped: $tests tests, $cases cases of GoogleTest, $others of Python"
