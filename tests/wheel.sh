#!/bin/sh
# wheel.sh: installs dist/qrtool-*.whl, which app/package/wheel.sh makes, in a bare Debian 12 without a compiler, and uses
# it there. As root. It needs mmdebstrap and a Debian mirror, and pip here, which fetches NumPy and SciPy. Everything it
# writes is under build/wheel-test.
set -eu
cd "$(dirname "$0")/.."
work=$PWD/build/wheel-test
bare=$work/bare
largest=15000000
wheel=$(ls dist/qrtool-*.whl)
[ "$(stat -c %s "$wheel")" -lt $largest ] || { echo "wheel.sh: $wheel is larger than $largest bytes" >&2; exit 1; }

rm -rf "$work"
mkdir -p "$work"
mmdebstrap --mode=root --variant=minbase --include=ca-certificates,python3-venv bookworm "$bare" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
trap 'umount "$bare/proc" 2>/dev/null || true' EXIT
mount -t proc proc "$bare/proc"
cp -r "$wheel" samples tests/app/python/qrtool_test.py "$bare/tmp"
python3 -m pip download --quiet --only-binary :all: --python-version 3.11 --dest "$bare/tmp/wheels" numpy scipy

cat > "$bare/tmp/use.sh" <<'END'
set -eux
if command -v cc || command -v c++; then exit 1; fi
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet --no-index --find-links /tmp/wheels /tmp/qrtool-*.whl scipy
export PATH="/tmp/venv/bin:$PATH"
cd /tmp/samples
qrtool --version
qrtool factor digits.h5:/images q.h5
qrtool verify digits.h5:/images q.h5
qrtool generate --shape 100x64x32 a.h5
qrtool factor a.h5 b.npz
qrtool verify a.h5 b.npz
# No driver is there: the CPU takes the matrices, and a device that is asked for is refused.
qrtool factor a.h5 c.h5 --backend auto
if qrtool factor a.h5 d.h5 --backend opencl; then exit 1; fi
# The name of every licence.
ls /tmp/venv/lib/python3*/site-packages/qrtool-*.dist-info/licenses
python /tmp/qrtool_test.py installed - 200
END
chroot "$bare" sh /tmp/use.sh
echo "the wheel works on a bare Debian 12"
