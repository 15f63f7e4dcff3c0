#!/bin/sh
# package.sh: builds the Debian packages, installs them in a bare Debian 12 and uses them there. As root. What it
# needs beside the packages of `install-deps.sh --build-only`: mmdebstrap and a Debian mirror. Everything it
# writes is under build/package.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build/package
bare=$build/bare

cmake --preset package >/dev/null
cmake --build --preset package --target package
cmake --build --preset package --target source

rm -rf "$bare"
mmdebstrap --mode=root --variant=minbase --include=ca-certificates bookworm "$bare" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
trap 'umount "$bare/proc" 2>/dev/null || true' EXIT
mount -t proc proc "$bare/proc"
cp "$build"/qrtool_*.deb "$build"/qrtool-mpi_*.deb "$build"/qrtool-*.tar.gz "$bare/tmp"
cp /etc/resolv.conf "$bare/etc/resolv.conf"

cat > "$bare/tmp/use.sh" <<'EOF'
set -eux
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends /tmp/qrtool_*.deb >/dev/null
cd /tmp
test "$(qrtool --version | cut -d ' ' -f 2)" = "$(dpkg-query -W -f '${Version}' qrtool)"
qrtool --help
qrtool factor /usr/share/qrtool/samples/digits.h5:/images q.npz
qrtool verify /usr/share/qrtool/samples/digits.h5:/images q.npz
qrtool factor /usr/share/qrtool/samples/longley.csv q.csv
qrtool verify /usr/share/qrtool/samples/longley.csv q.csv
qrtool solve /usr/share/qrtool/samples/strd/longley.csv x.csv --response y --intercept
qrtool verify /usr/share/qrtool/samples/strd/longley.csv x.csv --response y
qrtool devices
test -s /usr/share/man/man1/qrtool.1 && test -s /usr/share/man/man3/qrtool.3 && test -s /usr/share/qrtool/schemas/factor-1.schema.json
# The library, from Python.
apt-get install -y -qq --no-install-recommends python3-numpy >/dev/null
env -u PYTHONDONTWRITEBYTECODE python3 -c 'import numpy, qrtool; a = numpy.ones((9, 3)) + numpy.eye(9, 3); q, r = qrtool.qr(a); assert qrtool.verify(a, q, r)'
# The program for several processes, which brings Open MPI along.
apt-get install -y -qq --no-install-recommends /tmp/qrtool-mpi_*.deb >/dev/null
mpirun --allow-run-as-root --oversubscribe -n 2 qrtool-mpi factor /usr/share/qrtool/samples/digits.h5:/images p.h5
qrtool verify /usr/share/qrtool/samples/digits.h5:/images p.h5
# Completions, in their shells.
apt-get install -y -qq --no-install-recommends bash-completion zsh fish >/dev/null
bash -c 'source /usr/share/bash-completion/completions/qrtool; COMP_WORDS=(qrtool factor --mode ""); COMP_CWORD=3
         compopt() { :; }; _qrtool; [[ "${COMPREPLY[*]}" == "reduced complete r raw" ]]'
fish -c 'complete -C "qrtool factor --sign "' | grep -q '^lapack'
fish -c 'complete -C "qrtool-mpi fac"' | grep -q '^factor'
zsh -c 'fpath=(/usr/share/zsh/vendor-completions $fpath); autoload -Uz compinit && compinit -u -d /tmp/zc
        [[ "${_comps[qrtool]}" == _qrtool && "${_comps[qrtool-mpi]}" == _qrtool ]]'
apt-get remove -y -qq qrtool >/dev/null
for left in /usr/bin/qrtool /usr/bin/qrtool-mpi /usr/lib/python3/dist-packages/qrtool; do test ! -e $left; done
# The tarball holds a tree that configures, without git.
tar -xzf /tmp/qrtool-*.tar.gz && test -x qrtool-*/install-deps.sh
EOF
chroot "$bare" sh /tmp/use.sh
echo "the packages work on a bare Debian 12"
