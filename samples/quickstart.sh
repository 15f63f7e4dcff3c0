#!/bin/sh
# quickstart.sh: from a bare Debian 12 to checked factors: installs, builds, factors and verifies two real
# data sets. Everything it writes is under build/.
set -eu
cd "$(dirname "$0")/.."

./install-deps.sh
cmake --preset release >/dev/null
cmake --build --preset release

qrtool=$PWD/build/release/app/qrtool
work=build/quickstart
mkdir -p "$work"

run() {
  echo
  echo "\$ qrtool $*"
  "$qrtool" "$@"
}

echo
echo "1797 images of handwritten digits, 8 x 8, nearly all rank-deficient (HDF5):"
run factor samples/digits.h5:/images "$work/digits-qr.h5" --force
run verify samples/digits.h5:/images "$work/digits-qr.h5"

echo
echo "The same through OpenCL, on the device that there is (PoCL runs it on the CPU; a GPU is faster):"
run devices --shape 1797x8x8
run factor samples/digits.h5:/images "$work/digits-opencl.h5" --backend opencl --force
run verify samples/digits.h5:/images "$work/digits-opencl.h5"

echo
echo "Longley's regression of 1967, 16 x 7, a textbook case of near-collinearity (CSV):"
run factor samples/longley.csv "$work/longley-qr.csv" --force
run verify samples/longley.csv "$work/longley-qr.csv"

echo
echo "The factors are in $work; the tool is $qrtool."
