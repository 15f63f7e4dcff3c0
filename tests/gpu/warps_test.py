#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's bodies of the kernels, without a GPU: tests/gpu/warps is an OpenCL library whose device
runs them on the CPU. Every variant factors matrices there, `solve` solves systems, and the CPU
verifies what they wrote. Everyday runs take two shapes of each variant and kind of numbers. With
--all they take every shape, the device checks every run itself, and large matrices go through the
plain float64 bodies as well."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

# variant, rows, columns, type, matrices
FACTORED = [
    ("tiny", 4, 4, "f4", 5), ("tiny", 6, 3, "f8", 5), ("small", 20, 17, "f4", 5),
    ("small", 33, 31, "f8", 3), ("leading", 20, 60, "f4", 3), ("leading", 17, 41, "f8", 3),
    ("gram", 96, 48, "f4", 4), ("gram", 61, 39, "f8", 4), ("gram", 96, 96, "f4", 2),
    ("gram", 90, 65, "f4", 4), ("gram", 90, 83, "f4", 2), ("gram", 500, 3, "f4", 4),
    ("gram", 64, 32, "f8", 4), ("gram", 60, 20, "f8", 4), ("gram_group", 101, 98, "f4", 2),
    ("gram_group", 97, 97, "f8", 2), ("gram_group", 131, 129, "f8", 1),
    ("gram_tiles", 140, 130, "f4", 1), ("gram_twice", 135, 130, "f8", 1),
    ("gram_twice", 40, 20, "f8", 2),
    ("blocked", 100, 40, "f4", 1), ("blocked", 90, 33, "f8", 1), ("large", 150, 140, "f4", 1),
    ("reconstruct", 100, 33, "f8", 2), ("reconstruct", 20, 60, "f4", 2),
    ("reconstruct", 64, 64, "f4", 2), ("reconstruct", 150, 140, "f8", 1),
    ("large", 140, 130, "f8", 1), ("tall", 1500, 20, "f4", 1), ("tall", 1100, 17, "f8", 1),
    ("complex", 9, 6, "c8", 3), ("complex", 70, 30, "c16", 2),
    ("gram", 16, 16, "c8", 4), ("gram", 21, 15, "c16", 3), ("gram", 40, 33, "c8", 3),
    ("gram_group", 9, 6, "c8", 3), ("gram_group", 21, 15, "c16", 2),
    ("gram_group", 90, 70, "c16", 1), ("gram_passes", 9, 6, "c8", 2),
    ("gram_passes", 150, 70, "c16", 1),
]
# The device checks these itself, with kernels of its own for each shape: square, tall, few and many
# columns, V in place of Q, both types. What the others wrote the CPU verifies.
CHECKED = {("tiny", 6, 3), ("gram", 96, 48), ("gram", 64, 32), ("large", 140, 130),
           ("reconstruct", 100, 33), ("tall", 1500, 20), ("leading", 20, 60), ("complex", 9, 6)}
# The same as FACTORED with a column twice, which every guard refuses: a warp has the matrix, or a
# group, or tiles. In `large` the first panel has both, and no further pass follows.
REFUSED = [("gram", 520, 39, "f8", 2), ("gram_twice", 820, 81, "f8", 1),
           ("gram_group", 260, 67, "f8", 2), ("gram_tiles", 270, 40, "f4", 1),
           ("tall", 1500, 50, "f4", 1), ("large", 260, 129, "f4", 1), ("large", 100, 40, "f4", 2)]
LARGE_REFUSED = [("gram_tiles", 1030, 97, "f4", 1)]
# rows, columns, type, systems, options; gpu_systems_test has more
SOLVED = [
    (40, 3, "f4", 5, ""), (30, 9, "f8", 9, ""), (97, 33, "f8", 3, ""), (120, 97, "f4", 2, ""),
    (60, 20, "f4", 4, "--missing skip"), (60, 18, "f8", 4, "--weights {weights}"),
]

tool, library = sys.argv[1:3]
ALL = sys.argv[3:] == ["--all"]
DEVICE = dict(os.environ, LD_LIBRARY_PATH=library, CUDA_CACHE_DISABLE="1")
random = np.random.default_rng(4)
failed = 0


def matrices(count, m, n, kind):
    """Gaussian, and every second one around a common mean."""
    a = random.normal(size=(count, m, n))
    a[1::2] = 288 + a[1::2] / 2
    return (a + 1j * random.normal(size=a.shape) if kind.startswith("c") else a).astype(kind)


def run(what, arguments, environment):
    global failed
    done = subprocess.run([tool] + arguments, capture_output=True, text=True, env=environment)
    if done.returncode == 0 and "warps:" not in done.stderr:
        return done.stdout
    failed += 1
    print(f"{what}: {' '.join(arguments)}\nreturned {done.returncode}\n{done.stdout}{done.stderr}")
    return ""


def expect(what, is_so):
    global failed
    if not is_so:
        failed += 1
        print(what)


def factor(folder, variant, m, n, kind, count, is_refused=False):
    what = f"{variant} {m}x{n} {kind}{' refused' if is_refused else ''}"
    a = matrices(count, m, n, kind)
    if is_refused:
        a[:, :, 20 if variant == "large" else n - 1] = a[:, :, 3]
    np.save(folder / "a.npy", a)
    files = [str(folder / "a.npy"), str(folder / "qr.h5")]
    options = ["--force", "--json", "--backend", "opencl", "--variant", f"opencl/{variant}"]
    by_gram = "gram" in variant or (variant == "reconstruct" and m >= n)
    if variant == "reconstruct":
        options += ["--mode", "raw"]
    if not ALL and (variant, m, n) not in CHECKED:
        options += ["--check", "none"]
    routes = json.loads(run(what, ["factor"] + options + files, DEVICE) or "{}").get("routes", {})
    # A fault of a kernel must not hide behind other ways, or behind the CPU.
    hides = routes.get("second_try", 1) + (routes.get("reflectors", 1) if by_gram else 0)
    is_passed_on = is_refused and variant != "large"
    further = count if is_passed_on or variant == "gram_passes" else 0
    expect(f"{what}: {routes}", hides == 0 and routes.get("further_passes", 0) == further)
    run(what, ["verify"] + files, os.environ)


def solve(folder, m, n, kind, count, options):
    what = f"solve {m}x{n} {kind} {options}"
    a, b = matrices(count, m, n, kind), random.normal(size=(count, m)).astype(kind)
    if "missing" in options:
        b[:, 3] = np.nan
    weights = folder / "weights.npy"
    np.save(weights, np.where(np.arange(m) == 5, 0, random.uniform(0.5, 2, m)).astype(kind))
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    files = [str(folder / name) for name in ("a.npy", "b.npy", "x.h5")]
    said_options = options.format(weights=weights).split()
    said = run(what, ["solve", "--force", "--backend", "opencl"] + said_options + files, DEVICE)
    expect(f"{what}: {said}", "second try" not in said)
    run(what, ["verify"] + said_options + files, os.environ)


def hard_matrices(m, n):
    """Kernels, exponentials, Cauchy and Vandermonde: leading columns are nearly dependent."""
    def sort(k):
        return np.sort(random.uniform(0, 1, k))
    x, t = sort(m)[:, None], sort(n)[None, :]
    return np.stack([np.exp(-((x - t) / 0.3) ** 2), np.exp(-20 * np.linspace(0, 1, m)[:, None] * t),
                     1 / (x + t), np.vander(x[:, 0], n)])


def factor_unchecked(folder, variant, a, mode="reduced"):
    """Factors without a check, verifies on the CPU, and returns the routes, Q and R."""
    what = f"{variant} {a.shape} {mode}"
    np.save(folder / "a.npy", a)
    files = [str(folder / "a.npy"), str(folder / "qr.npz")]
    said = run(what, ["factor", "--force", "--json", "--backend", "opencl", "--check", "none",
                      "--mode", mode, "--variant", f"opencl/{variant}"] + files, DEVICE)
    run(what, ["verify"] + files, os.environ)
    with np.load(files[1]) as made:
        return json.loads(said or "{}").get("routes", {}), made.get("Q"), made["R"]


def expect_further_passes_to_finish(folder):
    for m, n, kind in ((260, 65, "f8"), (300, 66, "f4")):
        a = hard_matrices(m, n).astype(kind)
        a = a[:4 if ALL else 2]
        routes = factor_unchecked(folder, "gram_group", a)[0]
        expect(f"{m}x{n} {kind}: {routes}", routes.get("further_passes") == len(a))


def expect_the_bits_of_any_scale(folder):
    """Powers of two change exponents alone, wherever the squares of columns are."""
    for variant, m, n, most in (("gram", 40, 20, 1000), ("gram_group", 70, 65, 1000),
                                ("gram_twice", 40, 20, 430)):
        a = random.normal(size=(1, m, n))
        routes, q, r = factor_unchecked(folder, variant, a)
        for power in (170, -174, 430, -430, most, -most) if ALL else (170, -most):
            other = factor_unchecked(folder, variant, np.ldexp(a, power))
            expect(f"{variant} 2^{power}: {other[0]}",
                   other[0] == routes and (other[1] == q).all()
                   and (np.ldexp(other[2], -power) == r).all())


def expect_q_of_alike_rows(folder):
    """One row or two that repeat, in products of halves."""
    for rows in (1, 2):
        a = np.tile(random.normal(size=(1, rows, 130)), (1, 140 // rows, 1)).astype("f4")
        factor_unchecked(folder, "large", a)


# With these the products of float64 blocks are formed by shuffles and fma.
PLAIN = [("gram", 64, 32, "f8", 2), ("gram", 96, 48, "f4", 2), ("gram_twice", 40, 20, "f8", 2),
         ("leading", 17, 41, "f8", 2), ("reconstruct", 64, 32, "f8", 2)]
LARGE_PLAIN = [("gram_group", 97, 97, "f8", 1), ("gram_tiles", 140, 130, "f4", 1),
               ("gram_twice", 135, 130, "f8", 1)]
FOR_CPUS_ALONE = {"vector"}
FOR_BENCH_ALONE = {"textbook"}


def expect_every_variant():
    """The lists above have a case for each variant that the program has."""
    said = json.loads(run("devices", ["devices", "--json"], DEVICE) or "{}")
    names = {variant["name"].removeprefix("opencl/") for place in said["places"]
             for variant in place["variants"] if variant["name"].startswith("opencl/")}
    cases = {case[0] for case in FACTORED} | FOR_CPUS_ALONE | FOR_BENCH_ALONE
    expect(f"cases {sorted(cases)}, variants {sorted(names)}", names == cases)


def expect_portable_kernels():
    """bench --portable has neither shuffles nor float64 blocks, which gram needs."""
    case = ["bench", "--quick", "--shape", "64x48", "--batch", "2", "--backend", "opencl",
            "--against", "none", "--json"]
    for options, runs in ((["--variant", "opencl/gram"], True),
                          (["--variant", "opencl/gram", "--portable"], False),
                          (["--portable"], True)):
        said = json.loads(run("portable", case + options, DEVICE) or "{}")
        expect(f"{options}: {said}", (said["cases"][0]["seconds"] is not None) == runs)


def everyday(cases):
    """The first two of each variant for real matrices, and for complex ones; all with --all."""
    seen = collections.Counter()
    for case in cases:
        kind = case[0], case[3][0]
        seen[kind] += 1
        if ALL or seen[kind] <= 2:
            yield case


expect_every_variant()
expect_portable_kernels()
with tempfile.TemporaryDirectory() as name:
    for case in everyday(FACTORED):
        factor(pathlib.Path(name), *case)
    for case in REFUSED + (LARGE_REFUSED if ALL else []):
        factor(pathlib.Path(name), *case, is_refused=True)
    for case in SOLVED:
        solve(pathlib.Path(name), *case)
    for expectation in (expect_further_passes_to_finish, expect_the_bits_of_any_scale,
                        expect_q_of_alike_rows):
        expectation(pathlib.Path(name))
    DEVICE["QRTOOL_FLOAT64_BODY"] = "plain"
    for case in PLAIN + (LARGE_PLAIN if ALL else []):
        factor(pathlib.Path(name), *case)
if failed:
    sys.exit(f"{failed} failed")
