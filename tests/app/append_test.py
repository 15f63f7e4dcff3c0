#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""append: a state with further rows has the x, errors, R^2 and R of all rows, as NumPy and solve
find them from all rows; each bit follows from the state and the new rows alone; wrong states and
wrong rows are refused, and rounding errors that add up are seen. --problems N --seed S: N problems
by chance beside NumPy."""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import unittest

import h5py
import numpy as np

from tool import FolderTest, hint_of, kill_runs, limited, peak_kib, run


def contents(path):
    with h5py.File(path) as file:
        found = {}
        file.visititems(lambda name, item: found.update({name: item[()]})
                        if isinstance(item, h5py.Dataset) else None)
        return found


def attribute(path, name):
    with h5py.File(path) as file:
        return file.attrs[name]


def lstsq(a, b):
    """x in more digits than float64 has, for columns that are not nearly dependent."""
    norms = np.linalg.norm(a, axis=0)
    x = np.linalg.lstsq(a / norms, b, rcond=None)[0]
    wide = np.clongdouble if np.iscomplexobj(a) or np.iscomplexobj(b) else np.longdouble
    for _ in range(2):
        residual = b.astype(wide) - (a / norms).astype(wide) @ x
        x = x + np.linalg.lstsq(a / norms, residual.astype(x.dtype), rcond=None)[0]
    return x / norms[:, None]


def table(path, names, columns):
    np.savetxt(path, np.column_stack(columns), fmt="%.17g", delimiter=",", header=",".join(names),
               comments="")


class Chain:
    """Rows of A and B in parts, which become states s0.h5, s1.h5, ..."""

    def __init__(self, a, b, cuts, *options, weights=None):
        self.parts = list(zip(np.split(a, cuts, axis=-2), np.split(b, cuts, axis=-2)))
        weights = None if weights is None else np.split(weights, cuts)
        for i, (rows, sides) in enumerate(self.parts):
            np.save("a.npy", rows)
            np.save("b.npy", sides)
            more = []
            if weights is not None:
                np.save("w.npy", weights[i])
                more = ["--weights", "w.npy"]
            if i == 0:
                run("solve", "a.npy", "b.npy", "s0.h5", "-f", "--state", "--rows", "matrix",
                    *options, *more)
            else:
                run("append", f"s{i - 1}.h5", "a.npy", "b.npy", f"s{i}.h5", "-f", *more)
        self.last = f"s{len(self.parts) - 1}.h5"


def problem_by_chance(chance):
    n, p, parts = int(chance.integers(1, 9)), int(chance.integers(1, 4)), int(chance.integers(2, 6))
    sizes = chance.integers(1, 60, parts)
    sizes[0] += n
    m, kind = int(sizes.sum()), chance.choice(["f8", "f8", "f4", "c16", "c8"])
    a, b = chance.standard_normal((m, n)), chance.standard_normal((m, p))
    if kind[0] == "c":
        a, b = a + 1j * chance.standard_normal((m, n)), b + 1j * chance.standard_normal((m, p))
    a *= 10.0**chance.integers(-6, 7, n)
    if chance.integers(2):
        a[:, 0] = 10.0**chance.integers(0, 4) + chance.standard_normal(m) * (kind in ("f8", "c16"))
    weights = chance.choice([None, 1])
    if weights is not None:
        weights = chance.uniform(0.1, 10, m)
    return a.astype(kind), b.astype(kind), list(np.cumsum(sizes)[:-1]), weights


def check_problem(a, b, cuts, weights):
    state = contents(Chain(a, b, cuts, weights=weights).last)
    wide = "c16" if a.dtype.kind == "c" else "f8"
    root = np.ones(len(a)) if weights is None else np.sqrt(weights)
    of_a, of_b = root[:, None] * a.astype(wide), root[:, None] * b.astype(wide)
    x, u = lstsq(of_a, of_b), np.finfo(a.dtype).eps
    scaled = of_a / np.linalg.norm(of_a, axis=0)
    condition = np.linalg.cond(scaled)
    norms = np.linalg.norm(of_a, axis=0)[:, None]
    # Each part adds rounding errors of R; the last solution adds its own.
    residual = np.linalg.norm(of_b - of_a @ x, axis=0)
    size = (np.abs(norms * x).max(axis=0) + residual * condition + np.linalg.norm(of_b, axis=0))
    error = np.abs(norms * (state["X"] - x)).max(axis=0)
    assert (error <= 20 * len(cuts) * u * condition * size).all(), (error / size / u, condition)
    assert (state["report/status"] == 0).all(), state["report/status"]
    assert np.allclose(state["report/residual_norm"], residual, rtol=100 * u * condition)
    assert (state["report/degrees_of_freedom"] == len(a) - a.shape[1]).all()


class Append(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(70)

    def two_days(self, n, p):
        return Chain(self.random.standard_normal((60, n)), self.random.standard_normal((60, p)),
                     [30])

    def assert_same_solution(self, appended, whole, rtol):
        found, wanted = contents(appended), contents(whole)
        for name, numbers in wanted.items():
            if name.startswith("report/") and name.split("/")[1] in ("backward_error", "tries"):
                continue
            np.testing.assert_allclose(found[name], numbers, rtol=rtol, atol=1e-300, err_msg=name)

    # ---- the same as from all rows

    def test_by_chance_beside_numpy(self):
        for _ in range(25):
            check_problem(*problem_by_chance(self.random))

    def test_everything_in_the_report_is_that_of_all_rows(self):
        a, b = self.random.standard_normal((400, 5)) + 30, self.random.standard_normal((400, 2))
        weights = self.random.uniform(0, 3, 400)
        chain = Chain(a, b, [7, 9, 300, 301], weights=weights)
        for name, numbers in (("a", a), ("b", b), ("w", weights)):
            np.save(name + "_all.npy", numbers)
        run("solve", "a_all.npy", "b_all.npy", "all.h5", "--weights", "w_all.npy")
        self.assert_same_solution(chain.last, "all.h5", 1e-9)
        state = contents(chain.last)
        root = np.sqrt(weights)[:, None]
        whole = np.hstack([root * a, root * b])
        r = np.hstack([state["state/R"], state["state/Qtb"]])
        self.assertTrue((np.tril(r, -1) == 0).all())
        np.testing.assert_allclose(r.T @ r, whole.T @ whole, rtol=1e-12)
        np.testing.assert_allclose(np.triu(state["state/gram"]), np.triu(whole.T @ whole),
                                   rtol=1e-12)
        self.assertEqual(list(state["state/sums"][:2]), [400, 400])
        np.testing.assert_allclose(state["state/sums"][2:8],
                                   [weights.sum(), np.average(b[:, 0], weights=weights),
                                    (weights * (b[:, 0] - np.average(b[:, 0], weights=weights))**2
                                     ).sum(), (weights * b[:, 0]**2).sum(), b[:, 0].min(),
                                    b[:, 0].max()], rtol=1e-12)

    def test_columns_of_a_table_by_name(self):
        names = ["t", "u", "w", "y", "z"]
        columns = [self.random.normal(9, 2, 500) for _ in names]
        columns[2] = np.abs(columns[2])
        columns[3][[5, 77, 400]] = np.nan
        options = ("--response", "y", "--a", "u,t", "--polynomial", "t:2", "--weights", "w",
                   "--missing", "skip", "--intercept")
        cuts = (0, 100, 101, 420, 500)
        for i, (first, end) in enumerate(zip(cuts, cuts[1:])):
            table(f"{i}.csv", names, [c[first:end] for c in columns])
        table("all.csv", names, columns)
        run("solve", "all.csv", "all.h5", *options)
        run("solve", "0.csv", "s0.h5", "--state", *options)
        for i in (1, 2, 3):
            run("append", f"s{i - 1}.h5", f"{i}.csv", f"s{i}.h5")
        self.assert_same_solution("s3.h5", "all.h5", 1e-9)
        self.assertEqual(list(contents("s3.h5")["state/sums"][:2]), [500, 497])
        # The order of the columns does not matter where they have been named.
        table("1.csv", names[::-1], [c[100:101] for c in columns[::-1]])
        run("append", "s0.h5", "1.csv", "t1.h5")
        self.assertEqual(contents("t1.h5")["X"].tobytes(), contents("s1.h5")["X"].tobytes())

    def test_a_batch_and_one_bad_matrix_in_it(self):
        a, b = (self.random.standard_normal((2, 3, 60, columns)) for columns in (4, 2))
        good = contents(Chain(a, b, [20, 40]).last)
        x = np.stack([[lstsq(*pair) for pair in zip(*row)] for row in zip(a, b)])
        np.testing.assert_allclose(good["X"], x, rtol=1e-10)
        for name in ("solve", "append"):
            with self.subTest(name=name):
                bad = a.copy()
                bad[1, 0, 3 if name == "solve" else 50, 2] = np.nan
                np.save("b.npy", b[..., :40, :])
                np.save("a.npy", bad[..., :40, :])
                run("solve", "a.npy", "b.npy", "t0.h5", "-f", "--state",
                    status=int(name == "solve"))
                np.save("b.npy", b[..., 40:, :])
                np.save("a.npy", bad[..., 40:, :])
                run("append", "t0.h5", "a.npy", "b.npy", "t1.h5", "-f", status=1)
                found = contents("t1.h5")
                self.assertTrue((found["report/status"][1, 0] == 2).all())
                self.assertTrue(np.isnan(found["X"][1, 0]).all())
                found["X"][1, 0] = good["X"][1, 0]
                np.testing.assert_allclose(found["X"], good["X"], rtol=1e-10)

    def test_rows_of_a_bad_state_are_not_missing(self):
        a, b = self.random.standard_normal((50, 3)), self.random.standard_normal((50, 1))
        np.save("b.npy", b)
        np.save("a.npy", np.where(np.arange(150).reshape(50, 3) == 70, np.inf, a))
        run("solve", "a.npy", "b.npy", "s0.h5", "--state", "--missing", "skip", status=1)
        np.save("a.npy", a)
        run("append", "s0.h5", "a.npy", "b.npy", "s1.h5", status=1)
        self.assertEqual(contents("s1.h5")["report/status"].tolist(), [2])

    def test_fewer_rows_than_columns_at_first(self):
        a, b = self.random.standard_normal((30, 6)), self.random.standard_normal((30, 1))
        a[:3, 0] = 0
        for more in ([], ["--missing", "skip"]):
            state = contents(Chain(a, b, [2, 5], *more).last)
            np.testing.assert_allclose(state["X"], lstsq(a, b), rtol=1e-11)
        self.assertEqual(contents("s1.h5")["report/status"].tolist(), [5])

    def test_dependent_columns_stay_dependent(self):
        a, b = self.random.standard_normal((90, 4)), self.random.standard_normal((90, 1))
        a[:, 2] = a[:, 0] - 3 * a[:, 1]
        state = contents(Chain(a, b, [30, 60]).last)
        self.assertEqual(state["report/rank"], 3)
        np.testing.assert_allclose(state["X"], np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-11)

    def test_r_alone(self):
        for kind in ("f4", "f8", "c16"):
            with self.subTest(kind=kind):
                a = self.random.standard_normal((2, 90, 5)).astype(kind)
                if kind == "c16":
                    a += 1j * self.random.standard_normal(a.shape)
                np.save("a.npy", a[:, :40])
                run("factor", "a.npy", "r0.npz", "-f", "--mode", "r")
                np.save("a.npy", a[:, 40:41])
                run("append", "r0.npz", "a.npy", "r1.h5", "-f")
                np.save("a.npy", a[:, 41:])
                run("append", "r1.h5", "a.npy", "r2.npz", "-f")
                np.save("all.npy", a)
                run("verify", "all.npy", "r2.npz")
                run("verify", "a.npy", "r2.npz", status=2)
                with np.load("r2.npz") as out:
                    r = out["R"]
                self.assertEqual(r.dtype, a.dtype)
                self.assertTrue((np.diagonal(r, axis1=1, axis2=2).real > 0).all())
        table("1.csv", ["t", "u"], self.random.standard_normal((2, 30)))
        table("2.csv", ["t", "u"], self.random.standard_normal((2, 30)))
        run("factor", "1.csv", "r.h5", "--mode", "r", "--intercept")
        run("append", "r.h5", "2.csv", "s.h5")
        both = np.concatenate([np.loadtxt(name, delimiter=",", skiprows=1)
                               for name in ("1.csv", "2.csv")])
        r = contents("s.h5")["R"]
        whole = np.column_stack([np.ones(60), both])
        np.testing.assert_allclose(r.T @ r, whole.T @ whole, rtol=1e-12)

    # ---- bits, memory, disks

    def test_the_same_bits_whatever_the_memory_and_threads(self):
        a, b = self.random.standard_normal((60000, 20)) + 5, self.random.standard_normal((60000, 1))
        np.save("a.npy", a[:5000])
        np.save("b.npy", b[:5000])
        run("solve", "a.npy", "b.npy", "s.h5", "--state")
        np.save("a.npy", a[5000:])
        np.save("b.npy", b[5000:])
        outputs = set()
        for i, options in enumerate(([], ["--threads", "1"], ["--memory", "40MiB"])):
            run("append", "s.h5", "a.npy", "b.npy", f"t{i}.h5", *options)
            outputs.add(pathlib.Path(f"t{i}.h5").read_bytes())
        self.assertEqual(len(outputs), 1)

    def test_memory_is_bounded(self):
        rows = 200000
        for name, shape in (("a", (rows, 40)), ("b", (rows, 1))):
            numbers = np.lib.format.open_memmap(name + ".npy", "w+", "f8", shape)
            numbers[:] = self.random.standard_normal(shape)
            del numbers
        run("solve", "a.npy", "b.npy", "s.h5", "--state", "--memory", "32MiB")
        peak = peak_kib("append", "s.h5", "a.npy", "b.npy", "t.h5", "--memory", "32MiB")
        self.assertLess(peak, (32 + 24) * 1024)

    def test_a_full_disk_leaves_the_old_state(self):
        chain = self.two_days(9, 1)
        before = pathlib.Path(chain.last).read_bytes()
        for most in (0, 4096, 20000):
            run("append", "s0.h5", "a.npy", "b.npy", chain.last, "-f", status=5,
                preexec_fn=limited(most))
            self.assertEqual(pathlib.Path(chain.last).read_bytes(), before)
        self.assertEqual(sorted(os.listdir(".")), ["a.npy", "b.npy", "s0.h5", "s1.h5"])

    def test_a_killed_run_leaves_the_old_state_or_the_new_one(self):
        a, b = self.random.standard_normal((40000, 30)), self.random.standard_normal((40000, 1))
        Chain(a, b, [100])
        new = pathlib.Path("s1.h5").read_bytes()
        pathlib.Path("s1.h5").write_bytes(b"old")
        self.assertGreater(kill_runs(
            lambda: self.assertIn(pathlib.Path("s1.h5").read_bytes(), (b"old", new)),
            "append", "s0.h5", "a.npy", "b.npy", "s1.h5", "-f"), 2)

    # ---- checks

    def test_verify_takes_all_rows(self):
        a, b = self.random.standard_normal((60, 3)), self.random.standard_normal((60, 1))
        chain = Chain(a, b, [30])
        said = run("verify", "a.npy", "b.npy", chain.last, status=2).stderr
        self.assertIn("s1.h5: goes on from s0.h5, and rows before were not read", said)
        self.assertEqual(hint_of(said), "give all rows, in one file of another name")
        np.save("a_all.npy", a)
        np.save("b_all.npy", b)
        run("verify", "a_all.npy", "b_all.npy", chain.last)

    def test_an_r_that_differs_from_the_sums_is_seen(self):
        chain = self.two_days(3, 1)
        self.assertLess(contents(chain.last)["report/state_error"], 1e-15)
        with h5py.File("s0.h5", "r+") as file:
            r = file["state/R"][()]
            r[1, 2] *= 1 + 1e-12
            file["state/R"][...] = r
        said = run("append", "s0.h5", "a.npy", "b.npy", "t.h5", status=1).stderr
        self.assertIn("misses the bar", said)
        self.assertEqual(contents("t.h5")["report/status"].tolist(), [1])
        self.assertGreater(contents("t.h5")["report/state_error"], 1e-14)

    def test_a_damaged_state_is_refused(self):
        chain = self.two_days(3, 1)
        good = pathlib.Path("s0.h5").read_bytes()
        with h5py.File("s0.h5") as file:
            at = file["state/R"].id.get_chunk_info(0).byte_offset
        for damaged in (good[:len(good) // 2], good[:at] + bytes([good[at] ^ 64]) + good[at + 1:]):
            pathlib.Path("d.h5").write_bytes(damaged)
            run("append", "d.h5", "a.npy", "b.npy", "t.h5", status=3)
        for name, change in (("sums", lambda x: -x), ("sums", lambda x: x[:5]),
                             ("gram", lambda x: x[:2]), ("Qtb", lambda x: x[:2])):
            pathlib.Path("d.h5").write_bytes(good)
            with h5py.File("d.h5", "r+") as file:
                numbers = change(file["state/" + name][()])
                del file["state/" + name]
                file["state/" + name] = numbers
            self.assertIn("d.h5: damaged: ",
                          run("append", "d.h5", "a.npy", "b.npy", "t.h5", status=3).stderr)
        self.assertFalse(os.path.exists("t.h5"))

    # ---- what is refused

    def refused(self, message, *args, status=2, hint=None):
        said = run(*args, status=status).stderr
        self.assertIn(message, said)
        if hint is not None:
            self.assertEqual(hint_of(said), hint)

    def test_rows_of_another_table(self):
        for name, names in (("1", "tuy"), ("2", "tvy"), ("3", "ty"), ("4", "utx")):
            table(name + ".csv", names, self.random.standard_normal((len(names), 30)))
        run("solve", "1.csv", "s.h5", "--response", "y", "--intercept", "--state")
        self.refused("2.csv: its columns are (intercept),t,v, and those in the state of s.h5 are "
                     "(intercept),t,u", "append", "s.h5", "2.csv", "t.h5", status=3)
        self.refused("3.csv: its columns are (intercept),t,", "append", "s.h5", "3.csv", "t.h5",
                     status=3)
        self.refused("4.csv", "append", "s.h5", "4.csv", "t.h5", status=3)
        np.save("a.npy", np.ones((9, 2)))
        self.refused("a.npy: --response is for tables", "append", "s.h5", "a.npy", "t.h5", status=3)
        self.refused("s.h5: was made from a table with the response y", "append", "s.h5", "a.npy",
                     "a.npy", "t.h5", hint="qrtool append s.h5 TABLE OUT")
        self.assertFalse(os.path.exists("t.h5"))

    def test_other_shapes_and_numbers(self):
        chain = self.two_days(3, 2)
        np.save("wide.npy", np.ones((30, 4)))
        np.save("one.npy", np.ones((30, 1)))
        np.save("batch.npy", np.ones((2, 30, 3)))
        np.save("sides.npy", np.ones((2, 30, 2)))
        np.save("z.npy", np.ones((30, 3)) + 1j)
        for a, b in (("wide", "b"), ("a", "one"), ("batch", "sides")):
            self.refused("the shapes do not fit", "append", chain.last, a + ".npy", b + ".npy",
                         "t.h5", "--rows", "matrix", status=3)
        self.refused("z.npy: is complex128", "append", chain.last, "z.npy", "b.npy", "t.h5",
                     status=3)
        self.refused("s1.h5: was made from A and B", "append", chain.last, "a.npy", "t.h5",
                     hint="qrtool append s1.h5 A B OUT")
        self.refused("append: OUT is missing", "append", chain.last, "a.npy")
        self.refused("input and output are the same file", "append", chain.last, "a.npy", "b.npy",
                     chain.last, "-f")
        self.refused("", "append", chain.last, "a.npy", "b.npy", "s0.h5", status=5)

    def test_what_is_no_state(self):
        a, b = self.random.standard_normal((30, 3)), self.random.standard_normal((30, 1))
        np.save("a.npy", a)
        np.save("b.npy", b)
        run("solve", "a.npy", "b.npy", "x.h5")
        self.refused("x.h5: holds solutions without their state", "append", "x.h5", "a.npy",
                     "b.npy", "t.h5", status=3, hint="solve again with --state")
        for options, what in ((["--mode", "reduced"], "holds Q"), (["--mode", "raw"], "reflectors"),
                              (["--mode", "r", "--pivot"], "holds P"),
                              (["--mode", "r", "--precision", "mixed"], "mixed precision")):
            run("factor", "a.npy", "f.h5", "-f", "--backend", "cpu", *options)
            self.refused(what, "append", "f.h5", "a.npy", "t.h5")
        run("factor", "a.npy", "r.h5", "--mode", "r")
        self.refused("r.h5: holds R alone", "append", "r.h5", "a.npy", "b.npy", "t.h5")
        self.refused("b.npy: is 30x1", "append", "r.h5", "b.npy", "t.h5", status=3)
        run("append", "missing.h5", "a.npy", "t.h5", status=3)

    def test_what_has_no_state(self):
        np.save("a.npy", np.ones((30, 3)))
        np.save("b.npy", np.ones((30, 1)))
        np.save("rows.npy", np.ones((5, 30)))
        np.save("two.npy", np.ones((30, 2)))
        for out in ("x.npz", "x.csv", "-"):
            self.refused("a state is a group of HDF5", "solve", "a.npy", "b.npy", out, "--state")
        run("solve", "a.npy", "b.npy", "s.h5", "--state")
        self.refused("a state is a group of HDF5", "append", "s.h5", "a.npy", "b.npy", "x.npz")
        for out in ("-", "x.csv"):
            run("append", "s.h5", "a.npy", "b.npy", out, status=2)
        for more in (["--ridge", "1"], ["--leverage"], ["--window", "9"]):
            self.refused("--state contradicts " + more[0], "solve", "a.npy", "b.npy", "x.h5",
                         "--state", *more)
        for b, more in (("rows", []), ("two", ["--missing", "skip"]),
                        ("two", ["--weights", "two.npy"])):
            self.refused("no state can be kept", "solve", "a.npy", b + ".npy", "x.h5", "--state",
                         *more, hint="without --state it can be solved")
        self.assertFalse(os.path.exists("x.h5"))

    def test_what_is_said(self):
        table("1.csv", "tuy", self.random.standard_normal((3, 30)))
        run("solve", "1.csv", "s.h5", "--response", "y", "--state")
        said = run("append", "s.h5", "1.csv", "t.h5").stdout
        self.assertIn("60x2", said)
        self.assertIn("58 degrees of freedom", said)
        said = json.loads(run("append", "t.h5", "1.csv", "u.h5", "--json").stdout)
        self.assertEqual((said["schema"], said["a"]["shape"]), ("qrtool.solve/1", [90, 2]))
        self.assertEqual(attribute("u.h5", "appended_to"), "t.h5")
        run("factor", "1.csv", "r.h5", "--mode", "r")
        for state, out, shape in (("t.h5", "v.h5", "33x2"), ("r.h5", "q.h5", "33x3")):
            said = run("append", state, "1.csv", out, "--dry-run").stdout
            self.assertIn(shape, said)
            said = json.loads(run("append", state, "1.csv", out, "--dry-run", "--json").stdout)
            self.assertEqual(said["command"], "append")
        self.assertFalse(os.path.exists("v.h5") or os.path.exists("q.h5"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--problems", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.problems:
        with tempfile.TemporaryDirectory(prefix="qrtool-test-") as folder:
            os.chdir(folder)
            draw = np.random.default_rng(asked.seed)
            for _ in range(asked.problems):
                check_problem(*problem_by_chance(draw))
            print(asked.problems, "problems agree")
            os.chdir("/")
    else:
        unittest.main(argv=sys.argv[:1])
