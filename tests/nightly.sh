#!/bin/sh
# nightly.sh [NAME...]: builds and tests what a working day leaves out, each in a folder of its own below build/:
#
#   clang        the release by clang, each file by itself and not in a unity build
#   asan-ubsan   address and undefined-behaviour sanitizers
#   tsan         thread sanitizer
#   generic      tests of core with the code of any x86-64 processor, without AVX and without fused multiply-add
#   avx2         tests of core with the code of processors that have AVX2 and no AVX-512
#   no-opencl    a build without OpenCL
#   no-mpi       a build without MPI
#   long         the release's tests with the labels `long` and `seldom`, which tests/run.sh leaves out, always or often
#   portable     the release's tests of gpu with the kernel bodies of any device
#   torch        tests of the Python package and examples with the package index's PyTorch, JAX, Numba, Dask and NumPy,
#                and CuPy where there is a GPU of NVIDIA, some GB
#
# Without a name it takes all of them. It goes on after a failure, says at the end what failed and what was skipped,
# and returns 1 if anything failed. QRTOOL_NIGHTLY_STEP=configure or =build stops after that step.
set -u
cd "$(dirname "$0")/.." || exit 1
step=${QRTOOL_NIGHTLY_STEP:-test}
[ $# -gt 0 ] || set -- clang asan-ubsan tsan generic avx2 no-opencl no-mpi long portable torch
jobs=$(nproc)

configure() {
  case $1 in
    clang | asan-ubsan | tsan) cmake --preset "$1" -DQRTOOL_TESTS=ON ;;
    generic) cmake --preset release -B build/generic -DQRTOOL_TESTS=ON -DQRTOOL_NATIVE=OFF -DQRTOOL_WIDEST_KERNELS=generic ;;
    avx2)
      cmake --preset release -B build/avx2 -DQRTOOL_TESTS=ON -DQRTOOL_NATIVE=OFF -DQRTOOL_WIDEST_KERNELS=avx2 \
        -DCMAKE_CXX_FLAGS=-march=x86-64-v3
      ;;
    no-opencl) cmake --preset release -B build/no-opencl -DQRTOOL_TESTS=ON -DQRTOOL_OPENCL=OFF ;;
    no-mpi) cmake --preset release -B build/no-mpi -DQRTOOL_TESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON ;;
    long) cmake --preset release -B build/long -DQRTOOL_TESTS=ON ;;
    portable) cmake --preset release -B build/portable -DQRTOOL_TESTS=ON ;;
    torch)
      cupy=$(command -v nvidia-smi >/dev/null && echo cupy-cuda13x)
      python3 -m venv build/torch-python &&
        build/torch-python/bin/pip install --quiet torch setuptools jax numba "dask[array]" xarray h5py pandas tables ${cupy:+"$cupy"} &&
        cmake --preset release -B build/torch -DQRTOOL_TESTS=ON "-DQRTOOL_PYTHON=$PWD/build/torch-python/bin/python"
      ;;
    *) echo "nightly.sh: there is no $1" >&2 && return 2 ;;
  esac
}

run_tests() {
  case $1 in
    tsan) export TSAN_OPTIONS=ignore_noninstrumented_modules=1 ;;
    generic | avx2) set -- "$1" -R '^core/' ;;
    long) set -- "$1" -L 'long|seldom' ;;
    portable) export QRTOOL_TEST_PORTABLE=1 && set -- "$1" -R '^gpu/' ;;
    torch) set -- "$1" -R '^(app/python(-torch|-matrices)?|examples)$' ;;
  esac
  name=$1
  shift
  ctest --test-dir "build/$name" --output-on-failure --parallel "$jobs" "$@" --output-log "build/$name/tests.log"
  result=$?
  tests/skipped.sh "build/$name/tests.log" "build/$name/Testing/Temporary/LastTest.log"
  return $result
}

one() {
  configure "$1" >"build/nightly-$1.log" 2>&1 || { tail -20 "build/nightly-$1.log"; return 1; }
  [ "$step" = configure ] && return 0
  targets="all programs"
  [ "$1" = torch ] && targets="qrtool qrtool_capi"
  # shellcheck disable=SC2086 # the list is meant to be split
  cmake --build "build/$1" --target $targets --parallel "$jobs" >>"build/nightly-$1.log" 2>&1 || { tail -40 "build/nightly-$1.log"; return 1; }
  [ "$step" = build ] && return 0
  (run_tests "$1")
}

mkdir -p build
failed=""
for name in "$@"; do
  echo "== $name"
  one "$name" || failed="$failed $name"
done
[ -z "$failed" ] && echo "all pass" && exit 0
echo "failed:$failed"
exit 1
