#!/bin/sh
# seldom.sh left-out | record LOG: the tests that run only if what they test has changed since they passed last.
# A line of seldom.txt has such a test, a digest, and the files and folders that the test is about. `left-out` prints
# the tests whose files still have this digest; `record` writes the digests of those that passed by LOG, the output
# of ctest. A digest is made of contents alone: it holds in any clone, and merged work is tested again.
set -eu
cd "$(dirname "$0")/.."

digest() {
  git ls-files -z -- "$@" | sort -z | xargs -0r sha256sum 2>&1 | sha256sum | cut -c1-16
}

left_out() {
  while read -r test recorded files; do
    # shellcheck disable=SC2086 # the list is meant to be split
    [ "$(digest $files)" != "$recorded" ] || echo "$test"
  done <tests/seldom.txt
}

record() {
  while read -r test recorded files; do
    # shellcheck disable=SC2086 # the list is meant to be split
    grep -qE "Test +#[0-9]+: $test \.* +Passed" "$1" && recorded=$(digest $files)
    echo "$test $recorded $files"
  done <tests/seldom.txt
}

case ${1:-} in
  left-out) left_out ;;
  record)
    lines=$(record "$2")
    echo "$lines" >tests/seldom.txt
    ;;
  *) echo "usage: seldom.sh left-out | record LOG" >&2 && exit 2 ;;
esac
