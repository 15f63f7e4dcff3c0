#!/bin/sh
# wheel_root.sh ROOT: makes ROOT (an absolute path), a folder with the libraries of Debian 11 that the wheel is linked with.
# Copied from this Debian 12 are the compiler's own files, its static C++ library among them, and libraries of headers that
# have to be newer. A ROOT that is there is left as it is.
set -eu
root=${1:?usage: wheel_root.sh ROOT}
[ ! -e "$root" ] || exit 0
part=$root.part
rm -rf "$part"
mkdir -p "$part"
mmdebstrap --quiet --variant=extract \
  --include=libc6-dev,libgomp1,libboost-dev,libzip-dev,zlib1g-dev,libaec-dev,ocl-icd-opencl-dev \
  bullseye "$part" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"

# libdeflate works with any glibc. Of libfmt the headers are used; its CMake file wants the library to be there.
dpkg -L gcc-12-base libgcc-12-dev libstdc++-12-dev libeigen3-dev libcli11-dev libfast-float-dev nlohmann-json3-dev \
  opencl-clhpp-headers libdeflate-dev libdeflate0 libfmt-dev libfmt9 |
  tar --create --absolute-names --no-recursion --files-from=- --transform 's|^/||' | tar --extract --directory "$part"

# An absolute link would lead to the libraries of this system.
find "$part" -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
mv "$part" "$root"
