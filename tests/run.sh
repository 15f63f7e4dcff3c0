#!/bin/sh
# run.sh: installs what is needed, builds, and runs every test but those that tests/nightly.sh runs. The one command behind
# "the tests pass". It ends with the tests that took longest, as everyday tests are to be short (tests/README.md).
set -eu
cd "$(dirname "$0")/.."

./install-deps.sh
cmake --preset release -DQRTOOL_TESTS=ON >/dev/null
cmake --build --preset release
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset release --label-exclude long --parallel "$(nproc)" --output-log "$log" "$@" || status=$?
echo "The longest tests, in seconds:"
sed -nE 's/^.* Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*$/\2 \1/p' "$log" | sort -rn | head -10
tests/skipped.sh "$log" build/release/Testing/Temporary/LastTest.log
exit $status
