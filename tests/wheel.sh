#!/bin/sh
# wheel.sh [SUITE...]: installs dist/qrtool-*.whl, which app/package/wheel.sh makes, in a bare Debian without a compiler, and
# uses it there; as usual in Debian 11, 12 and 13. As root. It needs mmdebstrap and a Debian mirror, and pip here, which
# fetches NumPy and SciPy. Everything it writes is under build/wheel-test.
set -eu
cd "$(dirname "$0")/.."
work=$PWD/build/wheel-test
largest=15000000
newest_glibc=2.31
wheel=$(ls "$PWD"/dist/qrtool-*.whl)
complain() { echo "wheel.sh: $wheel $1" >&2 && exit 1; }
[ "$(stat -c %s "$wheel")" -lt $largest ] || complain "is larger than $largest bytes"
[ $# -gt 0 ] || set -- bullseye bookworm trixie

rm -rf "$work"
mkdir -p "$work/unpacked"
python3 -m zipfile -e "$wheel" "$work/unpacked"
found=$(find "$work/unpacked" -type f -exec objdump -T {} + 2>/dev/null | sed -nE 's/.*GLIBC_([0-9.]+).*/\1/p' | sort -uV | tail -n 1)
[ "$(printf '%s\n' "$found" $newest_glibc | sort -V | tail -n 1)" = $newest_glibc ] || complain "needs glibc $found"
if find "$work/unpacked" -type f -exec objdump -p {} + 2>/dev/null | grep 'NEEDED *libstdc++'; then
  complain "needs a C++ library"
fi

cat > "$work/use.sh" <<'END_OF_USE'
set -eux
if command -v cc || command -v c++; then exit 1; fi
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet --no-index --find-links /tmp/wheels /tmp/qrtool-*.whl scipy
export PATH="/tmp/venv/bin:$PATH"
cd /tmp/samples
test "$(qrtool --version | cut -d ' ' -f 2)" = "$(python -c 'import importlib.metadata as of; print(of.version("qrtool"))')"
qrtool factor digits.h5:/images q.h5
qrtool verify digits.h5:/images q.h5
qrtool generate --shape 100x64x32 a.h5
qrtool factor a.h5 b.npz
qrtool verify a.h5 b.npz
qrtool factor a.h5 b.csv
qrtool verify a.h5 b.csv
# No driver is there: the CPU takes the matrices, and a device that is asked for is refused.
qrtool factor a.h5 c.h5 --backend auto
if qrtool factor a.h5 d.h5 --backend opencl; then exit 1; fi
# The licences: ours, and those of what is inside.
ls /tmp/venv/lib/python3*/site-packages/qrtool-*.dist-info/licenses
test "$(ls /tmp/venv/lib/python3*/site-packages/qrtool-*.dist-info/licenses | wc -l)" = 18
python /tmp/qrtool_test.py installed - 200
pip uninstall --quiet --yes qrtool
if [ -e /tmp/venv/bin/qrtool ] || python -c 'import qrtool' 2>/dev/null; then exit 1; fi
END_OF_USE

trap 'umount "$work"/*/proc 2>/dev/null || true' EXIT
for suite in "$@"; do
  bare=$work/$suite
  mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,python3-venv "$suite" "$bare" \
    "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
  mount -t proc proc "$bare/proc"
  cp -r "$wheel" "$work/use.sh" samples tests/app/python/qrtool_test.py "$bare/tmp"
  python=$(chroot "$bare" python3 -c 'import platform; print(platform.python_version())')
  python3 -m pip download --quiet --only-binary :all: --python-version "${python%.*}" --dest "$bare/tmp/wheels" numpy scipy
  chroot "$bare" sh /tmp/use.sh
  umount "$bare/proc"
done
echo "the wheel works with glibc $newest_glibc, in: $*"
