#!/bin/sh
# run.sh: installs what is needed, builds, runs every test. The one command behind "the tests pass".
set -eu
cd "$(dirname "$0")/.."

./install-deps.sh
cmake --preset release -DQRTOOL_TESTS=ON >/dev/null
cmake --build --preset release
ctest --preset release --parallel "$(nproc)" "$@"
