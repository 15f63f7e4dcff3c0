#!/bin/sh
# run_on_gpu.sh [BUILD]: builds the tests of gpu/ and runs them on the first GPU of this machine, several
# processes at a time. BUILD is a folder that holds the tests already built; without it they are built here.
# QRTOOL_TEST_DEVICE names another device, by number or by part of its name.
#
# The last line says how many tests passed, failed and were skipped; the exit code is 0 if none failed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
shards=${QRTOOL_TEST_SHARDS:-16}
seconds=${QRTOOL_TEST_SECONDS:-600} # that one process may take

if [ $# -gt 0 ]; then
  build=$1
else
  "$root/install-deps.sh"
  (cd "$root" && cmake --preset release -DQRTOOL_TESTS=ON >/dev/null)
  build=$root/build/release/tests
  (cd "$root" && cmake --build --preset release --target gpu_test)
fi

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
for file in $(cd "$root/tests" && find gpu -name '*_test.cpp'); do
  name=$(basename "$file" .cpp)
  parts=1
  [ "$name" = variants_test ] && parts=$shards
  part=0
  while [ "$part" -lt "$parts" ]; do
    (
      export GTEST_TOTAL_SHARDS="$parts" GTEST_SHARD_INDEX="$part"
      log=$logs/$name.$part
      timeout "$seconds" "$build/gpu_test" "$file" >"$log" 2>&1 || echo "exit code $? of $name, part $part" >>"$log"
    ) &
    part=$((part + 1))
  done
done
wait

grep -hE '^exit code|Failure$' "$logs"/* | sort | uniq -c || true
grep -hA6 'Failure$' "$logs"/* | head -60 || true
passed=$(cat "$logs"/* | grep -cE '^\[       OK \]' || true)
failed=$(cat "$logs"/* | grep -cE '^\[  FAILED  \] .*\([0-9]+ ms\)$|^exit code (124|139|134|137)' || true)
skipped=$(cat "$logs"/* | grep -cE '^\[  SKIPPED \] .*\([0-9]+ ms\)$' || true)
ended=$(cat "$logs"/* | grep -c '^exit code' || true)
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$ended" -eq 0 ]
