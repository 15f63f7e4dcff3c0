#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backward error of R alone in float64, computed with 60 digits: the smallest ||A - QR|| /
||A|| over all Q with orthonormal columns. R of a variant must not have more than twice the error of
Householder's reflectors (cpu/eigen), or than a tenth of the bar. Needs mpmath.

    backward_error.py QRTOOL [--variants opencl/gram,opencl/gram_twice] [--shape 24x20]
                             [--matrices 2]"""
import argparse
import os
import subprocess
import sys
import tempfile

import mpmath

KINDS = [("gauss", None), ("kahan", None), ("hilbert", None), ("counts", None),
         ("graded-rows", "1e8"),
         ("graded-columns", "1e8"), ("clustered", None), ("near-deficient", None),
         ("rank-deficient", None),
         ("constant", None)]
KINDS += [(kind, f"1e{e}") for kind in ("cond", "offset", "near-duplicates")
          for e in (2, 5, 7, 8, 10, 14, 16)]


def read_matrices(path):
    """CSV with blank lines between matrices."""
    found, rows = [], []
    with open(path) as file:
        for line in [*file, ""]:
            line = line.split("#")[0].strip()
            if line:
                rows.append([mpmath.mpf(float(x)) for x in line.split(",")])
            elif rows:
                found.append(mpmath.matrix(rows))
                rows = []
    return found


def least_error(a, r):
    """min ||A - QR||: with A = Q0 R0 it is min ||R0 - WR|| over orthogonal W, and W = UV' from R0
    R' = U S V'."""
    _, r0 = mpmath.qr(a, mode="skinny")
    u, _, v = mpmath.svd_r(r0 * r.T)
    return mpmath.mnorm(r0 - u * v * r, "f") / mpmath.mnorm(a, "f")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qrtool")
    parser.add_argument("--variants", default="opencl/gram,opencl/gram_twice")
    parser.add_argument("--shape", default="24x20")
    parser.add_argument("--matrices", type=int, default=2)
    args = parser.parse_args()
    mpmath.mp.dps = 60
    m, n = (int(x) for x in args.shape.split("x"))
    bar = mpmath.mpf(2)**-52 * min(max(m, 16), 30 * n)
    worst, failures, count = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        a, out = os.path.join(folder, "a.csv"), os.path.join(folder, "r.csv")
        for kind, cond in KINDS:
            subprocess.run([args.qrtool, "generate", "--shape", f"{args.matrices}x{args.shape}",
                            "--kind", kind,
                            "--precision", "double", *(["--cond", cond] if cond else []), "-fq", a],
                            check=True)
            errors = {}
            for variant in ["cpu/eigen", *args.variants.split(",")]:
                subprocess.run([args.qrtool, "factor", a, out, "--mode", "r", "--variant", variant,
                                "-fq"], check=True)
                pairs = zip(read_matrices(a), read_matrices(out.replace(".csv", ".R.csv")))
                errors[variant] = [least_error(x, r) for x, r in pairs]
            for variant in args.variants.split(","):
                for own, other in zip(errors[variant], errors["cpu/eigen"]):
                    count += 1
                    worst[variant] = max(worst.get(variant, 0), own / bar)
                    if not own <= max(2 * other, bar / 10):
                        failures += 1
                        print(f"{kind} {cond or ''} {variant}: {float(own / bar):.3g} of the bar, "
                              f"cpu/eigen {float(other / bar):.3g}")
    for variant, error in worst.items():
        print(f"{variant}: at most {float(error):.3g} of the bar")
    print(f"{count} factors R, {failures} above the limit")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
