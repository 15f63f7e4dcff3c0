#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: the long fuzzing: 20,000 damaged files (10,000 of HDF5, 4000 of CSV, 2000 of Matrix Market, 4000 .npy and .npz),
# 3000 failing calls, and 3000 systems and 3000 damaged files of `solve`, on all cores; some 45 minutes on two. Hangs
# (2 s of processor time) and memory are judged, too. `run.sh [BUILD] [SEED] [SHARE]`; another seed draws other files,
# and a share of 10 runs a tenth of all.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/release}
seed=${2:-1}
share=${3:-1}
shards=$(env -u OMP_NUM_THREADS nproc)
logs=$(mktemp -d)
python=python3
[ -x /usr/bin/python3 ] && python=/usr/bin/python3  # Debian's has h5py

shard=0
while [ "$shard" -lt "$shards" ]; do
  (nice "$python" "$root/tests/fuzz/fuzz.py" "$build/app/qrtool" --seed "$seed-$shard" --part "$shard/$shards" \
    --hdf5 $((10000 / shards / share)) --csv $((4000 / shards / share)) --mtx $((2000 / shards / share)) \
    --octave $((1000 / shards / share)) \
    --npy $((4000 / shards / share)) --calls $((3000 / shards / share)) \
    --fail-nth "$build/tests/libqrtool_fail_nth.so" --keep "$logs/files" > "$logs/$shard.log" 2>&1
  nice "$python" "$root/tests/fuzz/solve_fuzz.py" "$build/app/qrtool" --seed "$seed-$shard" \
    --systems $((3000 / shards / share)) --damaged $((3000 / shards / share)) --keep "$logs/files" > "$logs/$shard-solve.log" 2>&1) &
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
