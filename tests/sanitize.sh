#!/bin/sh
# sanitize.sh: builds the C interface with the address and undefined-behaviour sanitizers, and runs its tests and
# those of the Python package with it. What leaks is found, too; leaks.supp names what is not ours.
set -eu
cd "$(dirname "$0")/.."
cmake --preset asan-ubsan -DQRTOOL_TESTS=ON
cmake --build --preset asan-ubsan --target qrtool_capi_factor qrtool_capi_solve qrtool_capi_overlap \
  qrtool_capi_abi
ctest --preset asan-ubsan --no-tests=error -R '^app/(capi/|python$)'
