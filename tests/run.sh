#!/bin/sh
# run.sh [OPTION OF CTEST...]: installs what is needed, builds, and runs every test but those that tests/nightly.sh
# runs. The one command behind "the tests pass". The tests of tests/seldom.txt run if what they test has changed since
# they passed, with an option of ctest, or with QRTOOL_TEST_SELDOM=1. It ends with the tests that took longest, as
# everyday tests are to be short (tests/README.md).
set -eu
cd "$(dirname "$0")/.."

./install-deps.sh
cmake --preset release -DQRTOOL_TESTS=ON >/dev/null
cmake --build --preset release
left_out=""
[ $# -gt 0 ] || [ -n "${QRTOOL_TEST_SELDOM:-}" ] || left_out=$(tests/seldom.sh left-out)
if [ -n "$left_out" ]; then
  set -- --exclude-regex "^($(echo "$left_out" | paste -sd '|'))\$"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset release --label-exclude long --parallel "$(nproc)" --output-log "$log" "$@" || status=$?
tests/seldom.sh record "$log"
echo "The longest tests, in seconds:"
sed -nE 's/^.* Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*$/\2 \1/p' "$log" | sort -rn | head -10
tests/skipped.sh "$log" build/release/Testing/Temporary/LastTest.log
if [ -n "$left_out" ]; then
  # shellcheck disable=SC2086 # the list is meant to be in one line
  echo "left out, since what they test is as it was when they passed:" $left_out
  echo "they run with: ctest --preset release -L seldom"
fi
exit $status
