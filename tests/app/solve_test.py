#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `qrtool solve` and `qrtool verify A B X` as a user does, and compares with NumPy."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

import h5py
import numpy as np

from tool import has_device

QRTOOL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
RANDOM = np.random.default_rng(1)
SKIPPED = []


def run(*arguments, status=0):
    done = subprocess.run([QRTOOL, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def write(name, **datasets):
    with h5py.File(name, "w") as file:
        for key, value in datasets.items():
            file[key] = value


def read(name, dataset="X"):
    with h5py.File(name) as file:
        return file[dataset][...]


def solve(a, b, *options, status=0, verify=()):
    """Solves, verifies, and returns X."""
    write("a.h5", A=a)
    write("b.h5", b=b)
    run("solve", "a.h5", "b.h5", "x.h5", "-f", *options, status=status)
    run("verify", "a.h5", "b.h5", "x.h5", *verify, status=status)
    return read("x.h5")


def lstsq(a, b):
    return np.linalg.lstsq(a.astype("f8"), b.astype("f8"), rcond=None)[0]


def near(x, y, bound=1e-12):
    assert x.shape == y.shape, (x.shape, y.shape)
    assert np.nanmax(np.abs(x - y), initial=0) <= bound, np.abs(x - y).max()
    assert (np.isnan(x) == np.isnan(y)).all()


def one_vector_for_each_matrix():
    a, b = RANDOM.standard_normal((50, 12, 5)), RANDOM.standard_normal((50, 12))
    near(solve(a, b), np.stack([lstsq(*each) for each in zip(a, b)]))
    norms = [np.linalg.norm(bi - ai @ xi) for ai, bi, xi in zip(a, b, read("x.h5"))]
    near(read("x.h5", "report/residual_norm"), np.array(norms))
    assert (read("x.h5", "report/rank") == 5).all()
    assert (read("x.h5", "report/status") == 0).all()
    condition = read("x.h5", "report/condition") / np.linalg.cond(a)
    assert (0.5 < condition).all() and (condition <= 1 + 1e-9).all()


def one_matrix_with_rows_first_or_last():
    a = RANDOM.standard_normal((120, 4)).astype("f4")
    b = RANDOM.standard_normal((120, 30, 40)).astype("f4")
    expected = lstsq(a, b.reshape(120, -1)).reshape(4, 30, 40)
    x = solve(a, b)
    assert x.dtype == np.float32
    near(x, expected, 1e-6)
    near(solve(a, np.moveaxis(b, 0, -1)), np.moveaxis(expected, 0, -1), 1e-6)
    # X is float32 only where both are.
    assert solve(a.astype("f8"), b).dtype == np.float64
    near(solve(a, b[:, :2, 0]), expected[:, :2, 0], 1e-6)


def leading_dimensions_broadcast():
    a, b = RANDOM.standard_normal((5, 9, 3)), RANDOM.standard_normal((2, 1, 9, 2))
    expected = np.array([[lstsq(a[i], b[k, 0]) for i in range(5)] for k in range(2)])
    near(solve(a, b), expected)
    near(solve(a, b[0, 0, :, 0]), expected[0, :, :, 0])
    # Each A with more right sides than it has columns.
    many = RANDOM.standard_normal((5, 9, 40))
    near(solve(a, many), np.stack([lstsq(*each) for each in zip(a, many)]))
    # Stored by columns.
    x = solve(a.transpose(0, 2, 1), many.transpose(0, 2, 1), "--order", "column",
              verify=("--order", "column"))
    near(x, np.stack([lstsq(*each).T for each in zip(a, many)]))


def arrays_of_numpy():
    a, b = RANDOM.standard_normal((40, 3)), RANDOM.standard_normal(40)
    np.save("a.npy", a)
    np.save("b.npy", b)
    run("solve", "a.npy", "b.npy", "x.h5", "-f")
    near(read("x.h5"), lstsq(a, b))
    np.savez("ab.npz", a=a, b=b)
    run("solve", "ab.npz:a", "ab.npz:b", "x.h5", "-f")
    near(read("x.h5"), lstsq(a, b))
    np.save("x.npy", lstsq(a, b))
    run("verify", "a.npy", "b.npy", "x.npy")
    tall, right = RANDOM.standard_normal((60000, 2)), RANDOM.standard_normal(60000)
    np.save("a.npy", tall)
    np.save("b.npy", right)
    run("solve", "a.npy", "b.npy", "x.h5", "-f")
    near(read("x.h5"), lstsq(tall, right))


def two_ways_are_refused_and_named():
    write("a.h5", A=RANDOM.standard_normal((9, 4)))
    write("b.h5", b=RANDOM.standard_normal((9, 9)))
    done = run("solve", "a.h5", "b.h5", "x.h5", "-f", status=2)
    assert "--rows matrix or --rows last" in done.stderr, done.stderr
    a, b = read("a.h5", "A"), read("b.h5", "b")
    run("solve", "a.h5", "b.h5", "x.h5", "-f", "--rows", "last")
    near(read("x.h5"), lstsq(a, b.T).T)
    run("verify", "a.h5", "b.h5", "x.h5")  # knows the rows
    write("b.h5", b=b[:8])
    done = run("solve", "a.h5", "b.h5", "x.h5", "-f", "--rows", "first", status=3)
    assert "A is 9x4, B is 8x9" in done.stderr, done.stderr


def conditions_of_dependent_columns():
    """Columns that all depend on one leave R with rounding errors of rounding errors."""
    ones = np.ones((2, 20, 20))
    ones[1] = np.vander(np.linspace(0, 1, 20), 20) @ np.diag([1.] * 2 + [0.] * 18)
    solve(ones, RANDOM.standard_normal((2, 20)))
    assert np.isinf(read("x.h5", "report/condition")).all(), read("x.h5", "report/condition")
    write("a.h5", A=ones)
    run("factor", "a.h5", "q.h5", "-f", "--condition")
    assert np.isinf(read("q.h5", "report/condition")).all(), read("q.h5", "report/condition")
    # The scale of columns says nothing of their dependence.
    graded = np.diag(10.0 ** -np.arange(0, 60, 3))[None]
    solve(graded, np.ones((1, 20)))
    assert abs(read("x.h5", "report/condition")[0] / 1e57 - 1) < 1e-10


def rank_deficient_and_wide():
    a, b = RANDOM.standard_normal((6, 4, 9)), RANDOM.standard_normal((6, 4))
    a[2, 3] = a[2, 1]
    x = solve(a, b)
    near(x, np.stack([lstsq(*each) for each in zip(a, b)]))
    assert (read("x.h5", "report/rank") == [4, 4, 3, 4, 4, 4]).all()
    a = RANDOM.standard_normal((3, 20, 5))
    a[1, :, 4] = a[1, :, 0] + a[1, :, 2]
    b = RANDOM.standard_normal((3, 20))
    near(solve(a, b), np.stack([lstsq(*each) for each in zip(a, b)]))
    basic = solve(a, b, "--basic")
    assert (basic == 0).sum() == 1
    # Units of columns do not matter.
    a[0] *= 10.0 ** (-3 * np.arange(5))
    solve(a, b)
    assert (read("x.h5", "report/rank") == [5, 4, 5]).all()
    solve(a, b, "--rank-tolerance", "0.9")
    assert (read("x.h5", "report/rank") < 5).all()


def other_programs_solutions():
    a, b = RANDOM.standard_normal((6, 20, 5)), RANDOM.standard_normal((6, 20))
    write("a.h5", A=a)
    write("b.h5", b=b)
    x = np.stack([lstsq(*each) for each in zip(a, b)])
    write("y.h5", x=x)
    run("verify", "a.h5", "b.h5", "y.h5")
    x[3, 2] += 1e-6
    write("y.h5", x=x)
    done = run("verify", "a.h5", "b.h5", "y.h5", status=1)
    assert "solution 3 fails" in done.stdout and "5 of 6 pass" in done.stdout, done.stdout
    found = json.loads(run("verify", "a.h5", "b.h5", "y.h5", "--json", status=1).stdout)
    assert found["check"]["failed"] == 1 and found["first_failures"][0]["solution"] == 3
    x[3, 2] = np.nan
    write("y.h5", x=x)
    run("verify", "a.h5", "b.h5", "y.h5", status=1)
    write("y.h5", x=x[:5])
    run("verify", "a.h5", "b.h5", "y.h5", status=3)


def bad_numbers_stay_alone():
    a, b = RANDOM.standard_normal((6, 20, 5)), RANDOM.standard_normal((6, 20))
    good = solve(a, b)
    a[1, 3, 2], b[4, 7] = np.nan, np.inf
    x = solve(a, b, status=1)
    good[[1, 4]] = np.nan
    assert np.array_equal(x, good, equal_nan=True)
    assert (read("x.h5", "report/status") == [0, 2, 0, 0, 2, 0]).all()


def missing_rows_and_weights():
    a, full = RANDOM.standard_normal((30, 4)), RANDOM.standard_normal((30, 6, 7))
    gaps = RANDOM.random(full.shape) < 0.2
    gaps[:, 0, 0] = False
    gaps[2:, 1, 1] = True  # two rows are left of four columns
    b = np.where(gaps, np.nan, full)
    weights = RANDOM.random(30)
    weights[5] = 0
    write("w.h5", w=weights)
    x = solve(a, b, "--missing", "skip", "--weights", "w.h5", verify=("--weights", "w.h5"))
    se, rank = read("x.h5", "se"), read("x.h5", "report/rank")
    for i, j in np.ndindex(6, 7):
        used = ~gaps[:, i, j] & (weights > 0)
        root = np.sqrt(weights[used])
        scaled, right = a[used] * root[:, None], b[used, i, j] * root
        if used.sum() < 4:
            assert rank[i, j] == -1 and np.isnan(x[:, i, j]).all() and np.isnan(se[:, i, j]).all()
            continue
        near(x[:, i, j], lstsq(scaled, right), 1e-10)
        assert rank[i, j] == 4
        residual = right - scaled @ x[:, i, j]
        sigma = np.sqrt(residual @ residual / (used.sum() - 4))
        near(se[:, i, j], sigma * np.sqrt(np.diag(np.linalg.inv(scaled.T @ scaled))), 1e-10)
    done = run("verify", "a.h5", "b.h5", "x.h5", status=2)
    assert "--weights" in done.stderr
    # Weights of their own for every right side, and a ridge.
    weights = RANDOM.random(full.shape)
    write("w.h5", w=weights)
    x = solve(a, full, "--weights", "w.h5", "--ridge", "0.5", verify=("--weights", "w.h5"))
    for i, j in np.ndindex(6, 7):
        weighted = a * weights[:, i, j, None]
        near(x[:, i, j], np.linalg.solve(weighted.T @ a + np.eye(4) / 2,
                                         weighted.T @ full[:, i, j]))
    write("w.h5", w=-weights)
    done = run("solve", "a.h5", "b.h5", "x.h5", "-f", "--weights", "w.h5", status=3)
    assert "not negative" in done.stderr


def weights_beyond_single_precision():
    """Their scale changes neither x nor its standard errors, and the residual norm by its root."""
    a = RANDOM.standard_normal((30, 3)).astype("f4")
    b = (a @ [1, 2, 3] + RANDOM.standard_normal(30)).astype("f4")
    weights = RANDOM.random(30) + 0.5
    weights[7] = 0
    found = {}
    for scale in (1, 2.0 ** -150, 2.0 ** -300, 2.0 ** 200):
        write("w.h5", w=weights * scale)
        ridge = 0.25 * scale
        x = solve(a, b, "--weights", "w.h5", verify=("--weights", "w.h5"))
        root = np.sqrt(weights)
        near(x, lstsq(a * root[:, None], b * root).astype("f4"), 1e-5)
        norm = read("x.h5", "report/residual_norm") / np.sqrt(scale)
        assert read("x.h5", "report/degrees_of_freedom") == 26
        found[scale] = [x, read("x.h5", "se"), norm]
        x = solve(a, b, "--weights", "w.h5", "--ridge", ridge, verify=("--weights", "w.h5"))
        found[scale].append(x)
        with h5py.File("x.h5") as file:
            assert float(file.attrs["ridge"]) == ridge
    for scale, each in found.items():
        for mine, usual in zip(each, found[1]):
            assert np.allclose(mine, usual, rtol=1e-5, atol=0), (scale, mine, usual)
    weights[8] = 1e-60
    write("w.h5", w=weights)
    done = run("solve", "a.h5", "b.h5", "x.h5", "-f", "--weights", "w.h5", status=3)
    assert "span more than single precision holds" in done.stderr, done.stderr
    run("solve", "a.h5", "b.h5", "x.h5", "-f", "--weights", "w.h5", "--precision", "double")


def columns_of_very_different_size():
    """Least-norm solutions whose squares are no numbers of float64 are right, and judged so."""
    for m, n in (15, 17), (8, 8), (20, 12):
        a = RANDOM.standard_normal((100, m, n))
        a *= 10 ** RANDOM.uniform(-140, 140, (100, 1, n))
        if m >= n:
            a[..., 5] = 3 * a[..., 2]  # dependent
        solve(a, RANDOM.standard_normal((100, m)))
        assert np.isfinite(read("x.h5", "report/least_norm_error")).all()


def degrees_of_freedom():
    """On every route: rows of weight 0 and rows that are left out do not count, and the rank is
    taken off."""
    backends = ("cpu", "opencl") if has_device() else ("cpu",)
    for shape, sides in (((40, 20, 3), (40, 20)), ((20, 3), (4100, 20)), ((20, 3), (20, 50)),
                         ((20, 3), (20, 2)), ((2, 300, 140), (2, 300)), ((30000, 2), (30000,)),
                         ((3, 5), (3,))):
        a, b = RANDOM.standard_normal(shape), RANDOM.standard_normal(sides)
        m, n = shape[-2:]
        a[..., -1] = a[..., 0] if len(sides) == 1 and m > n else a[..., -1]  # dependent
        axis = sides.index(m) if len(shape) == 2 else 1
        weights = RANDOM.random(m) * (RANDOM.random(m) < 0.8)
        write("w.h5", w=weights)
        for has_gaps in (False, True):
            if has_gaps:
                b[RANDOM.random(sides) < 0.1] = np.nan
            for backend in backends:
                options = ["--weights", "w.h5", "--backend", backend]
                if has_gaps:
                    options += ["--missing", "skip"]
                solve(a, b, *options, verify=("--weights", "w.h5"))
                counts = (~np.isnan(np.moveaxis(b, axis, -1)) & (weights > 0)).sum(axis=-1)
                freedom = read("x.h5", "report/degrees_of_freedom")
                rank = read("x.h5", "report/rank")
                rank = rank.reshape(counts.shape) if rank.size == counts.size else rank
                few = np.broadcast_to(rank < 0, counts.shape)  # too few rows count
                assert (counts[few] < (n if m >= n else 1)).all(), (shape, sides, options)
                assert (freedom == np.where(few, np.nan, counts - rank))[~few].all()
                assert np.isnan(freedom[few]).all(), (shape, sides, options)
    solve(a, b, "--missing", "skip", "--ridge", "1")
    assert np.isnan(read("x.h5", "report/degrees_of_freedom")).all()
    a, b = RANDOM.standard_normal((6, 9, 2)), RANDOM.standard_normal((6, 9))
    b[3, 4] = np.inf
    solve(a, b, status=1)
    freedom = read("x.h5", "report/degrees_of_freedom")
    assert np.isnan(freedom[3]) and (np.delete(freedom, 3) == 7).all()


def the_deviation_of_a_table():
    """sqrt(sum w r^2 / (rows that count - rank)), as R's lm gives it; a ridge has none."""
    table = RANDOM.standard_normal((20, 4))
    table[:, 3] = np.where(np.arange(20) < 5, 0, RANDOM.uniform(0.5, 2, 20))
    with open("t.csv", "w", encoding="utf-8") as file:
        rows = [",".join(repr(float(number)) for number in row) for row in table]
        file.write("\n".join(["u,v,y,w", *rows, ""]))
        file.write(",1,2,3\n")
    root = np.sqrt(table[:, 3:])
    a, b = table[:, :2] * root, table[:, 2] * root[:, 0]
    deviation = np.linalg.norm(b - a @ lstsq(a, b)) / np.sqrt(13)
    options = "--response", "y", "--weights", "w", "--missing", "skip"
    text = run("solve", "t.csv", "t.h5", "-f", *options).stdout
    assert f"residual standard deviation {deviation:.6g}, 13 degrees of freedom" in text, text
    ridged = run("solve", "t.csv", "t.h5", "-f", "--ridge", "1", *options).stdout
    assert "degrees of freedom" not in ridged


def must_skip():
    """Whether there is no device. A test that leaves then is counted as skipped."""
    if has_device():
        return False
    SKIPPED.append("no OpenCL device")
    return True


def one_matrix_on_a_device():
    """Right sides as rows and as columns, with gaps and weights, as the CPU solves them."""
    if must_skip():
        return
    a = RANDOM.standard_normal((30, 4))
    b = RANDOM.standard_normal((30, 64, 65))
    b[RANDOM.random(b.shape) < 0.2] = np.nan
    b[:, 5, 6] = np.nan  # no row is left
    b[3:, 7, 8] = np.nan  # fewer rows than columns
    weights = np.ones(30)
    weights[[2, 9]] = 0, 4
    write("w.h5", w=weights)
    for right in (b, np.moveaxis(b, 0, -1)):
        found = {}
        for backend in ("cpu", "opencl"):
            options = "--missing", "skip", "--weights", "w.h5", "--backend", backend
            x = solve(a, right, *options, verify=("--weights", "w.h5"))
            found[backend] = x, *(read("x.h5", f"report/{key}")
                                  for key in ("rank", "status", "residual_norm")), \
                read("x.h5", "se")
            with h5py.File("x.h5") as file:
                assert file.attrs["backend"] == backend
                assert file.attrs["variant"] == "one QR for all"
        for of_cpu, of_device in zip(found["cpu"], found["opencl"]):
            near(of_cpu, of_device, 1e-11)


def alike_on_a_device(a, b, *options, verify):
    """Solves on the CPU and on a device, which find the same, and returns X."""
    found = {}
    for backend in ("cpu", "opencl"):
        x = solve(a, b, *options, "--backend", backend, verify=verify)
        found[backend] = x, *(read("x.h5", f"report/{key}")
                              for key in ("rank", "status", "residual_norm")), read("x.h5", "se")
        with h5py.File("x.h5") as file:
            assert file.attrs["backend"] == backend, file.attrs["backend"]
    for of_cpu, of_device in zip(found["cpu"], found["opencl"]):
        near(of_cpu, of_device, 1e-10)
    return x


def one_matrix_with_weights_of_each_on_a_device():
    """Each right side of one A has weights of its own: the device makes its system from A. Rows and
    columns of a file give the same bits."""
    if must_skip():
        return
    a, b = RANDOM.standard_normal((30, 5)), RANDOM.standard_normal((200, 30))
    weights = 1 + RANDOM.random(b.shape)
    weights[RANDOM.random(b.shape) < 0.1] = 0
    weights[3, 4:] = 0  # fewer rows than columns
    weights[7] = 1
    write("w.h5", w=weights)
    for options in (["--weights", "w.h5"], ["--weights", "w.h5", "--missing", "skip"]):
        if "--missing" in options:
            b[9, 2] = np.nan
        x = alike_on_a_device(a, b, *options, verify=options)
        roots = np.sqrt(weights[11])
        near(x[11], lstsq(roots[:, None] * a, roots * b[11]))
    write("w.h5", w=weights.T)
    columns = solve(a, b.T, *options, "--backend", "opencl", verify=options)
    with h5py.File("x.h5") as file:
        assert file.attrs["backend"] == "opencl"
    assert np.array_equal(columns.T, x, equal_nan=True)


def own_matrices_with_weights_on_a_device():
    """Weights and missing rows of matrices of their own, as the CPU takes them."""
    if must_skip():
        return
    a, b = RANDOM.standard_normal((40, 20, 3)), RANDOM.standard_normal((40, 20))
    b[RANDOM.random(b.shape) < 0.2] = np.nan
    a[5, 6, 1] = np.nan
    b[7, 2:] = np.nan  # fewer rows than columns
    weights = 1 + RANDOM.random((40, 20))
    weights[RANDOM.random(weights.shape) < 0.1] = 0
    for of_rows in (None, weights, weights[0]):
        options = ["--missing", "skip"]
        if of_rows is not None:
            write("w.h5", w=of_rows)
            options += ["--weights", "w.h5"]
        alike_on_a_device(a, b, *options, verify=options[2:])
    # Several right sides with weights stay on the CPU, whatever is asked for.
    write("w.h5", w=weights[0])
    b = RANDOM.standard_normal((40, 20, 2))
    x = solve(a[:5], b[:5], "--weights", "w.h5", "--backend", "opencl",
              verify=("--weights", "w.h5"))
    roots = np.sqrt(weights[0])[:, None]
    near(x, np.stack([lstsq(roots * ai, roots * bi) for ai, bi in zip(a[:5], b[:5])]))
    with h5py.File("x.h5") as file:
        assert file.attrs["backend"] == "cpu"


def tall_matrices_go_by_rows():
    a, b = RANDOM.standard_normal((200000, 6)), RANDOM.standard_normal((200000, 3))
    for right in (b[:, 0], b, np.ascontiguousarray(b.T)):
        expected = lstsq(a, right.T if right.shape == (3, 200000) else right)
        x = solve(a, right)
        near(x, expected.T if right.shape == (3, 200000) else expected)
        with open("x.h5", "rb") as file:
            whole = file.read()
        run("solve", "a.h5", "b.h5", "x.h5", "-f", "--memory", "24MiB", "--threads", "1")
        with open("x.h5", "rb") as file:
            assert file.read() == whole
        run("verify", "a.h5", "b.h5", "x.h5", "--memory", "24MiB")
    # The tree takes a third of this limit, so that half of it would not do.
    a, wide_b = RANDOM.standard_normal((400000, 64)), RANDOM.standard_normal(400000)
    x = solve(a, wide_b)
    run("solve", "a.h5", "b.h5", "x.h5", "-f", "--memory", "58MiB", "--threads", "1")
    assert (read("x.h5") == x).all()
    done = run("solve", "a.h5", "b.h5", "x.h5", "-f", "--memory", "8MiB", status=6)
    assert "--scratch" not in done.stderr and "--memory" in done.stderr, done.stderr
    a = a[:200000, :6].copy()
    b[5, 1] = np.nan
    good = lstsq(a, np.nan_to_num(b))
    x = solve(a, b, status=1)
    near(x[:, [0, 2]], good[:, [0, 2]])
    assert np.isnan(x[:, 1]).all()
    keep = np.arange(len(a)) != 5
    good[:, 1] = lstsq(a[keep], b[keep, 1])
    near(solve(a, b, "--missing", "skip"), good)
    near(solve(a, np.ascontiguousarray(b.T), "--missing", "skip"), good.T)


def empty_problems():
    assert solve(np.zeros((0, 9, 3)), np.zeros((0, 9))).shape == (0, 3)
    assert (solve(np.zeros((4, 0, 3)), np.zeros((4, 0))) == np.zeros((4, 3))).all()
    assert solve(np.zeros((4, 3, 0)), np.ones((4, 3))).shape == (4, 0)
    assert solve(np.ones((9, 3)), np.ones((9, 0))).shape == (3, 0)
    assert (solve(np.zeros((5, 2)), np.ones(5)) == 0).all()


def tables():
    longley = ROOT / "samples/strd/longley.csv"
    options = ("--response", "y", "--intercept")
    text = run("solve", longley, "out.csv", "-f", *options).stdout
    certified = certified_values()["longley"]
    with open("out.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    x, se = ([float(line[name]) for line in lines] for name in ("x", "se"))
    for j in range(7):
        estimate, deviation = certified[f"B{j}"]
        assert abs(x[j] / estimate - 1) < 1e-9 and abs(se[j] / deviation - 1) < 1e-9
    assert "(intercept)" in text and "9 degrees of freedom" in text, text
    with open("out.report.json", encoding="utf-8") as file:
        assert json.load(file)["report"]["rank"]["values"] == [7]
    run("verify", longley, "out.csv", *options)
    run("solve", longley, "out.h5", "-f", *options)
    run("verify", longley, "out.h5", "--response", "y")  # knows the intercept
    run("verify", longley, "out.h5")  # and the response
    done = run("solve", longley, "out.h5", "-f", "--response", "x7", status=3)
    assert "there is no column 'x7'" in done.stderr, done.stderr
    assert "OUT is missing" in run("solve", longley, "out.h5", status=2).stderr
    assert "solve: B is missing" in run("solve", longley, status=2).stderr
    done = run("solve", "a.h5", "b.h5", "x.h5", "--rank-tolerance", "1", status=2)
    assert "takes every column for dependent" in done.stderr
    write("a.h5", A=np.eye(3))
    assert "--response" in run("solve", "a.h5", "a.h5", "o.h5", "--response", "y", status=2).stderr


def one_row_is_a_table():
    with open("row.csv", "w", encoding="utf-8") as file:
        file.write("a,b,y\n1,2,3\n")
    run("solve", "row.csv", "x.h5", "-f", "--response", "y")
    near(read("x.h5"), np.array([[0.6], [1.2]]))
    run("verify", "row.csv", "x.h5", "--response", "y")
    with open("two.csv", "w", encoding="utf-8") as file:
        file.write("a,y\n1,2\n3,4\n")
    text = run("solve", "two.csv", "x.h5", "-f", "--response", "y").stdout
    assert "deviation 0.632456, 1 degree of freedom, R^2 0.98, condition 1\n" in text, text


def mistakes_with_tables_are_named():
    def refused(*arguments):
        return run("solve", *arguments, status=3).stderr

    with open("t.csv", "w", encoding="utf-8") as file:
        file.write("age,height,y\n1,2,3\n4,5,7\n6,7,9\n")
    np.save("t.npy", np.eye(3))
    text = refused("t.npy", "o.h5", "--response", "y")
    assert "t.npy: --response is for tables in CSV" in text, text
    text = refused("t.csv", "o.h5", "--response", "y", "--weights", "heigth")
    assert "neither a column nor a file heigth; did you mean height?" in text, text
    assert "hint: its columns are age, height, y" in text, text
    with open("y.csv", "w", encoding="utf-8") as file:
        file.write("y\n1\n2\n3\n")
    text = refused("y.csv", "o.h5", "--response", "y")
    assert "no column is left for A" in text and "hint: --intercept" in text, text
    run("solve", "y.csv", "x.h5", "-f", "--response", "y", "--intercept")
    near(read("x.h5"), np.array([[2.]]))


def bad_weights_are_named():
    def refused(a, b, weights, *options):
        write("a.h5", A=a)
        write("b.h5", b=b)
        write("w.h5", w=weights)
        done = run("solve", "a.h5", "b.h5", "o.h5", "--weights", "w.h5", *options, status=3)
        assert "hint: a weight of 0 leaves its row out" in done.stderr, done.stderr
        return done.stderr

    for m, options in ((9, ()), (20000, ()), (200000, ("--memory", "16MiB"))):
        a, b = RANDOM.standard_normal((m, 3)), RANDOM.standard_normal((m, 2))
        last = m - 2
        weights = np.ones(m)
        weights[last] = -1
        text = refused(a, b, weights, *options)
        assert f"w.h5: weight {last} is -1; weights are finite" in text, text
        text = refused(a, b, weights[:, None], *options)
        assert f"w.h5: weight {last} is -1; weights are finite" in text, text
        weights = np.ones((m, 2))
        weights[last, 1] = np.nan
        text = refused(a, b, weights, *options)
        assert f"w.h5: weight [{last},1] is nan" in text, text
        text = refused(a, b.T, weights.T, *options)
        assert f"w.h5: weight [1,{last}] is nan" in text, text
    weights = np.ones((4, 5, 9))
    weights[2, 3, 7] = np.inf
    a, b = RANDOM.standard_normal((4, 5, 9, 3)), RANDOM.standard_normal((4, 5, 9))
    text = refused(a, b, weights)
    assert "w.h5: weight [2,3,7] is inf" in text, text
    with open("t.csv", "w", encoding="utf-8") as file:
        file.write("x,y,w\n1,2,1\n2,3,1\n3,5,-2\n")
    done = run("solve", "t.csv", "o.h5", "--response", "y", "--weights", "w", status=3)
    assert "t.csv: weight 2 is -2" in done.stderr, done.stderr


def certified_values():
    values = {}
    with open(ROOT / "samples/strd/certified.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            deviation = float(row["standard_deviation"] or "nan")
            values.setdefault(row["set"], {})[row["parameter"]] = float(row["estimate"]), deviation
    return values


# The largest relative error of a coefficient by LAPACK's gelsy (rcond = 0, reference LAPACK 3.11)
# against the exact solution of the rounded matrix, and the degree of the polynomial.
CERTIFIED_SETS = {
    "norris": (1.79e-13, 1), "pontius": (4.45e-13, 2), "noint1": (1.24e-17, None),
    "noint2": (4.86e-16, None), "filip": (2.82e-08, 10), "longley": (6.83e-12, 1),
    "wampler1": (5.23e-10, 5), "wampler2": (7.21e-14, 5), "wampler3": (4.45e-10, 5),
    "wampler4": (3.77e-09, 5), "wampler5": (3.36e-07, 5),
}


def exact_solution(a, b):
    """By the normal equations in rational numbers."""
    a = [[Fraction(x) for x in row] for row in a.tolist()]
    b = [Fraction(x) for x in b.tolist()]
    n = len(a[0])
    system = [[sum(row[i] * row[j] for row in a) for j in range(n)]
              + [sum(row[i] * y for row, y in zip(a, b))] for i in range(n)]
    for i in range(n):
        system[i] = [x / system[i][i] for x in system[i]]
        for k in range(n):
            if k != i:
                system[k] = [x - system[k][i] * y for x, y in zip(system[k], system[i])]
    return [row[n] for row in system]


def certified_sets():
    for name, (error_of_gelsy, degree) in CERTIFIED_SETS.items():
        table = np.genfromtxt(ROOT / f"samples/strd/{name}.csv", delimiter=",", skip_header=1)
        b, columns = table[:, 0], table[:, 1:]
        if columns.shape[1] > 1:
            a = np.hstack([np.ones((len(b), 1)), columns])
        else:
            powers = range(1, 2) if degree is None else range(degree + 1)
            # Python's power rounds as C's does.
            a = np.array([[float(x) ** k for k in powers] for x in columns[:, 0]])
        x, exact = solve(a, b), exact_solution(a, b)
        error = max(abs(float((Fraction(float(xi)) - e) / e)) for xi, e in zip(x, exact))
        # A last bit is allowed where gelsy's solution is exact.
        assert error <= max(10 * error_of_gelsy, 2.3e-16), (name, error, error_of_gelsy)
        assert read("x.h5", "report/rank") == [a.shape[1]], name
        print(f"{name}: error {error:.2g}, gelsy {error_of_gelsy:.2g}")


def main():
    tests = [one_vector_for_each_matrix, one_matrix_with_rows_first_or_last,
             leading_dimensions_broadcast, arrays_of_numpy, two_ways_are_refused_and_named,
             rank_deficient_and_wide, other_programs_solutions, bad_numbers_stay_alone,
             missing_rows_and_weights, conditions_of_dependent_columns,
             weights_beyond_single_precision, columns_of_very_different_size, degrees_of_freedom,
             one_matrix_on_a_device, one_matrix_with_weights_of_each_on_a_device,
             own_matrices_with_weights_on_a_device,
             tall_matrices_go_by_rows, empty_problems, tables, one_row_is_a_table,
             mistakes_with_tables_are_named, bad_weights_are_named, certified_sets]
    global QRTOOL, ROOT
    QRTOOL, ROOT = str(pathlib.Path(QRTOOL).resolve()), ROOT.resolve()
    with tempfile.TemporaryDirectory() as folder:

        os.chdir(folder)
        for test in tests:
            print(test.__name__, flush=True)
            test()
    if SKIPPED:
        print(f"OK (skipped={len(SKIPPED)})")  # as unittest says it, for tests/skipped.sh


if __name__ == "__main__":
    main()
