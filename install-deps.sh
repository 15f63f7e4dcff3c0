#!/bin/sh
# install-deps.sh [--build-only | --wheel]: the Debian 12 packages that qrtool is built and tested with, built with
# alone, or built into a wheel with. As root or with sudo; does nothing where they are all there.
set -eu

build="g++ cmake ninja-build dpkg-dev file libeigen3-dev libboost-dev libhdf5-dev zlib1g-dev libdeflate-dev libzip-dev pkg-config libcli11-dev libfast-float-dev libfmt-dev
nlohmann-json3-dev libopenmpi-dev ocl-icd-opencl-dev opencl-clhpp-headers"
tests="libgtest-dev openmpi-bin python3-h5py python3-pandas python3-xarray python3-netcdf4 python3-h5netcdf netcdf-bin r-base-core python3-jsonschema pocl-opencl-icd oclgrind clang clang-format gnuplot-nox octave python3-scipy python3-tables"

case "${1:-}" in
  --build-only) tests="" ;;
  --wheel) tests="python3-venv mmdebstrap" ;;
  "") ;;
  *) echo "usage: install-deps.sh [--build-only | --wheel]" >&2 && exit 2 ;;
esac

missing=""
for package in $build $tests; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=""
elif command -v sudo >/dev/null 2>&1; then
  as_root="sudo"
else
  echo "install-deps.sh: not root and no sudo; please install:$missing" >&2
  exit 1
fi

echo "installing:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086 # the list is meant to be split
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
