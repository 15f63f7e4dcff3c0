#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: the long fuzzing: 10,000 damaged HDF5 files, 3000 damaged CSV files, 1000 damaged Matrix Market files,
# 3000 damaged .npy and .npz files, 3000 failing calls, and 3000 systems and 3000 damaged files of `solve`, on all
# cores; some 35 minutes on two. `run.sh [BUILD]
# [SEED]`; another seed draws other files.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/release}
seed=${2:-1}
shards=$(env -u OMP_NUM_THREADS nproc)
logs=$(mktemp -d)
python=python3
[ -x /usr/bin/python3 ] && python=/usr/bin/python3  # Debian's has h5py

shard=0
while [ "$shard" -lt "$shards" ]; do
  (nice "$python" "$root/tests/fuzz/fuzz.py" "$build/app/qrtool" --seed "$seed-$shard" --part "$shard/$shards" \
    --hdf5 $((10000 / shards)) --csv $((3000 / shards)) --mtx $((1000 / shards)) --npy $((3000 / shards)) --calls $((3000 / shards)) \
    --fail-nth "$build/tests/libqrtool_fail_nth.so" --keep "$logs/files" > "$logs/$shard.log" 2>&1
  nice "$python" "$root/tests/fuzz/solve_fuzz.py" "$build/app/qrtool" --seed "$seed-$shard" \
    --systems $((3000 / shards)) --damaged $((3000 / shards)) --keep "$logs/files" > "$logs/$shard-solve.log" 2>&1) &
  shard=$((shard + 1))
done
wait
grep -hv failures "$logs"/*.log || true
if [ "$(grep -hc '^0 failures$' "$logs"/*.log | grep -c '^1$')" -eq $((2 * shards)) ]; then
  rm -r "$logs"
  echo "nothing found"
else
  echo "failures; logs and files are in $logs" >&2
  exit 1
fi
