#!/bin/sh
# run.sh: installs what is needed, builds, runs every test. The one command behind "the tests pass".
set -eu
cd "$(dirname "$0")/.."

./install-deps.sh
cmake --preset release -DQRTOOL_TESTS=ON >/dev/null
cmake --build --preset release
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset release --parallel "$(nproc)" --output-log "$log" "$@" || status=$?
tests/skipped.sh "$log" build/release/Testing/Temporary/LastTest.log
exit $status
