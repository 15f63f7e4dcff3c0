#!/bin/sh
# hdf5.sh PREFIX: builds HDF5 from the source package of Debian 12 as a static library, with deflate and szip and
# without the drivers for networks, because of which Debian's library needs curl, Kerberos and LDAP. It needs
# what `install-deps.sh --build-only` installs and a Debian mirror; a PREFIX that has the library is left as it is.
set -eu
prefix=${1:?usage: hdf5.sh PREFIX}
[ ! -e "$prefix/lib/libhdf5.a" ] || exit 0
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Lists of its own, so that the sources of packages of this machine stay as they are.
mkdir -p "$work/lists/partial"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm main" \
  > "$work/sources.list"
apt="apt-get -qq -o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$work/lists"
$apt update
cd "$work"
$apt source --download-only hdf5
tar -xzf hdf5_*.orig.tar.gz
mkdir build && cd build
../hdf5-*/configure --prefix="$prefix" --enable-build-mode=production --disable-shared --enable-static --with-pic \
  --disable-hl --disable-tools --disable-tests --with-szlib CFLAGS="-O2 -w" > configure.log
make -j"$(nproc)" > make.log
make install > install.log 2>&1
cp ../hdf5-*/COPYING "$prefix/COPYING"
