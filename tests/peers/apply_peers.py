#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apply_peers.py LIBQRTOOL JSON [--rounds N]: Q'B by the reflectors of LAPACK's geqrf, in float64
and complex128, with qrtool.apply and with ormqr and unmqr of SciPy, matrix by matrix. Needs SciPy.

qrtool measures each product by the inverse one, which doubles the work. Times are processor time on
one thread, the median of all rounds, so that other programs on the machine change little."""
import argparse
import json
import os
import pathlib
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402
from scipy.linalg import lapack  # noqa: E402

CASES = [(1000, 16, 8, 1), (1000, 64, 64, 1), (200, 64, 64, 64), (20, 512, 256, 64),
         (1, 2000, 500, 200)]


def median_seconds(call, rounds):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("json")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    os.environ["QRTOOL_LIBRARY"] = os.path.abspath(options.library)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app/python"))
    import qrtool
    cases = []
    for kind, (geqrf, ormqr, transposed) in {
            "float64": (lapack.dgeqrf, lapack.dormqr, "T"),
            "complex128": (lapack.zgeqrf, lapack.zunmqr, "C")}.items():
        for count, m, n, sides in CASES:
            random = np.random.default_rng(1)

            def draw(shape):
                x = random.standard_normal(shape)
                return (x if kind == "float64" else x + 1j * random.standard_normal(shape))
            a, b = draw((count, m, n)), draw((count, m, sides))
            factors = [geqrf(one)[:2] for one in a]
            columns = [np.asfortranarray(one) for one in b]
            work = max(1, int(ormqr("L", transposed, *factors[0], columns[0], -1)[1][0].real))
            h = np.stack([one.T for one, _ in factors])
            tau = np.stack([one for _, one in factors])

            def by_scipy():
                return [ormqr("L", transposed, vr, t, c, work)[0]
                        for (vr, t), c in zip(factors, columns)]

            def by_qrtool():
                return qrtool.apply(b, h=h, tau=tau)
            np.testing.assert_allclose(by_qrtool(), np.stack(by_scipy()), rtol=1e-9, atol=1e-9)
            cases.append({"type": kind, "count": count, "m": m, "n": n, "sides": sides,
                          "found": {name: median_seconds(call, options.rounds)
                                    for name, call in (("qrtool", by_qrtool),
                                                       ("SciPy", by_scipy))}})
            print(cases[-1], flush=True)
    pathlib.Path(options.json).write_text(json.dumps({"cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
