#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trial_test.py QRTOOL LIBRARY ROOT: forty tasks of eight kinds of users, with inputs as their
programs write them. Each answer is compared with what NumPy finds. A task ends at the first try,
after one message that says what to change, or not at all; the last test counts them.

Five tasks are not possible: to apply factors to other data, to read raw integers, to predict rows
by x alone, to join yearly files, and to compare two runs. Three have tests of their own, which
`ELSEWHERE` names."""
import csv
import glob
import json
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
import zipfile

import h5py
import numpy as np

from tool import QRTOOL, FolderTest, hint_of

os.environ["QRTOOL_LIBRARY"] = sys.argv[2]
sys.path.insert(0, str(pathlib.Path(sys.argv[3]) / "app/python"))
import qrtool  # noqa: E402  pylint: disable=wrong-import-position

NOT_POSSIBLE = ("whiten other data", "raw int16", "predict new rows", "yearly files",
                "compare two runs")
ELSEWHERE = {"types for a type checker": "app/python/qrtool/__init__.pyi has overloads",
             "C: the first program": "examples_test.py", "C: Q over A": "app/capi/overlap_test.c"}
LEAST = 32
VERDICTS = {}  # task -> commands


def table(name):
    with open(name, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def coefficients(name):
    return {line["term"]: float(line["x"]) for line in table(name)}


def least_squares(a, b):
    return np.linalg.lstsq(a, b, rcond=None)[0]


class Trial(FolderTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(40)
        self.commands, self.messages = 0, 0
        self.addCleanup(self.keep_verdict)

    def keep_verdict(self):
        outcome = self._outcome
        failed = any(error for test, error in getattr(outcome, "errors", []) if test is self)
        result = getattr(outcome, "result", None)
        for kind in ("failures", "errors"):
            failed = failed or any(test is self for test, _ in getattr(result, kind, []))
        if self.id().rsplit(".", maxsplit=1)[-1] != "test_zz_count" and not failed:
            VERDICTS[self.id()] = self.messages

    def tool(self, *args, status=0, text=None):
        """A command that must end so."""
        self.commands += 1
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, check=False,
                              timeout=300, input=text)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done

    def refused(self, hint, *args, status=3):
        """A command whose message says what to do."""
        self.messages += 1
        done = self.tool(*args, status=status)
        self.assertIn(hint, hint_of(done.stderr))

    # Machine learning
    def test_01_jacobians_of_an_archive(self):
        jacobians, r = self.rng.standard_normal((3000, 8, 3)), self.rng.standard_normal((3000, 8))
        np.savez("step.npz", J=jacobians, r=r)
        self.tool("factor", "step.npz:J", "q.h5")
        self.tool("solve", "step.npz:J", "step.npz:r", "x.npy")
        with h5py.File("q.h5") as file:
            np.testing.assert_allclose(file["Q"][:] @ file["R"][:], jacobians, atol=1e-13)
        np.testing.assert_allclose(np.load("x.X.npy")[7], least_squares(jacobians[7], r[7]),
                                   rtol=1e-9)

    def test_02_all_layers_of_an_archive(self):
        layers = {f"layer{i}": self.rng.standard_normal((9 + i, 4)) for i in range(3)}
        np.savez("layers.npz", bias=np.ones(4), **layers)
        self.tool("factor", "layers.npz", "q.h5", "--dataset", "*")
        with h5py.File("q.h5") as file:
            self.assertEqual(sorted(file["Q"]), sorted(layers))
            for name, layer in layers.items():
                np.testing.assert_allclose(file[f"Q/{name}"][:] @ file[f"R/{name}"][:], layer,
                                           atol=1e-13)

    def test_03_factors_of_another_program(self):
        a = self.rng.standard_normal((5, 7, 4))
        q, r = np.stack([np.linalg.qr(each)[0] for each in a]), \
            np.stack([np.linalg.qr(each)[1] for each in a])
        np.save("a.npy", a)
        np.savez("qr.npz", Q=q, R=r)
        self.tool("verify", "a.npy", "qr.npz")
        r[3, 0, 0] += 1e-6
        np.savez("qr.npz", Q=q, R=r)
        self.tool("verify", "a.npy", "qr.npz", status=1)

    def test_04_frames_to_begin_with(self):
        self.tool("generate", "q.npy", "--kind", "haar", "--shape", "64x32x8")
        q = np.load("q.npy")
        np.testing.assert_allclose(np.swapaxes(q, 1, 2) @ q, np.broadcast_to(np.eye(8), (64, 8, 8)),
                                   atol=1e-5)

    def test_05_a_type_that_numpy_lacks(self):
        class Tensor:
            dtype = "bfloat16"

            def __dlpack__(self, **_):
                raise BufferError("no such type")

            def __dlpack_device__(self):
                return 1, 0
        self.commands, self.messages = 2, 1
        with self.assertRaisesRegex(qrtool.CallError, "a is bfloat16; convert it to float32"):
            qrtool.qr(Tensor())
        self.assertEqual(qrtool.qr(np.eye(3, dtype=np.float32)).R.dtype, np.float32)

    def test_06_processes_threads_and_pickles(self):
        a = self.rng.standard_normal((50, 6, 3))
        expected = qrtool.qr(a).R
        found = []
        threads = [threading.Thread(target=lambda: found.append(qrtool.qr(a).R)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        child = os.fork()
        if child == 0:
            os._exit(0 if (qrtool.qr(a).R == expected).all() else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for each in (*found, pickle.loads(pickle.dumps(qrtool.qr(a))).R):
            np.testing.assert_array_equal(each, expected if each.ndim == 3 else expected[0])

    def test_08_one_right_side_for_each_matrix(self):
        a, b = self.rng.standard_normal((10, 5, 3)), self.rng.standard_normal((10, 5))
        self.commands, self.messages = 2, 1
        with self.assertRaisesRegex(qrtool.CallError, r"b\[\.\.\., None\]"):
            qrtool.lstsq(a, b)
        x = qrtool.lstsq(a, b[..., None]).x[..., 0]
        np.testing.assert_allclose(x[4], least_squares(a[4], b[4]), rtol=1e-9)

    # Radar
    def complex_normal(self, *shape):
        return self.rng.standard_normal(shape) + 1j * self.rng.standard_normal(shape)

    def test_09_r_of_snapshots(self):
        a = self.complex_normal(200, 12, 4).astype(np.complex64)
        np.save("a.npy", a)
        self.tool("factor", "a.npy", "r.npy", "--mode", "r")
        r = np.load("r.R.npy")
        adjoint = np.conj(np.swapaxes(a, 1, 2))
        np.testing.assert_allclose(np.conj(np.swapaxes(r, 1, 2)) @ r, adjoint @ a, atol=1e-4)

    def test_11_rank_and_condition_of_channels(self):
        a = self.complex_normal(500, 8, 3)
        a[::5, :, 2] = a[::5, :, 0]
        np.save("a.npy", a)
        self.tool("factor", "a.npy", "q.h5", "--pivot", "--condition")
        with h5py.File("q.h5") as file:
            np.testing.assert_array_equal(file["report/rank"][:], np.linalg.matrix_rank(a))
            found = file["report/condition"][:][1::5]
        np.testing.assert_array_less(found / np.linalg.cond(a[1::5]), 1.001)
        np.testing.assert_array_less(0.4, found / np.linalg.cond(a[1::5]))

    def test_12_pilots_to_channels(self):
        a, b = self.complex_normal(16, 3), self.complex_normal(16)
        np.savez("p.npz", A=a, b=b)
        self.tool("solve", "p.npz:A", "p.npz:b", "x.npz")
        x = least_squares(a, b)
        sigma = np.sum(np.abs(b - a @ x) ** 2) / 13
        with np.load("x.npz") as found:
            np.testing.assert_allclose(found["X"], x, rtol=1e-9)
            np.testing.assert_allclose(
                found["se"], np.sqrt(sigma * np.diag(np.linalg.inv(a.conj().T @ a)).real),
                rtol=1e-9)

    def test_13_what_a_projection_leaves(self):
        a, b = self.complex_normal(10, 3), self.complex_normal(10, 2000)
        np.savez("p.npz", A=a, B=b)
        self.tool("solve", "p.npz:A", "p.npz:B", "x.npz", "--residuals")
        q = np.linalg.qr(a)[0]
        with np.load("x.npz") as found:
            np.testing.assert_allclose(found["residuals"], b - q @ (q.conj().T @ b), atol=1e-12)

    def test_14_complex_numbers_of_other_programs(self):
        a = self.complex_normal(5, 3)
        with h5py.File("m.mat", "w") as file:
            file.create_dataset("A", data=np.array(
                [[(x.real, x.imag) for x in row] for row in a.T],
                dtype=[("real", "f8"), ("imag", "f8")])).attrs["MATLAB_class"] = np.bytes_("double")
        self.tool("factor", "m.mat", "m.h5")
        for name, form in (("p", "({0.real}{0.imag:+}j)"), ("o", "{0.real}{0.imag:+}i")):
            pathlib.Path(f"{name}.csv").write_text("".join(
                ",".join(form.format(x) for x in row) + "\n" for row in a), encoding="utf-8")
            self.tool("factor", f"{name}.csv", f"{name}.h5")
            with h5py.File(f"{name}.h5") as file:
                q, r = file["Q"][:], file["R"][:]
            if q.dtype.names:
                q, r = (x[x.dtype.names[0]] + 1j * x[x.dtype.names[1]] for x in (q, r))
            np.testing.assert_allclose(q @ r, a, atol=1e-13)

    # pandas
    def german(self, form, rows=30):
        x = self.rng.integers(1000, 900000, rows) / 100
        y = 3 + 2 * x + self.rng.standard_normal(rows)
        lines = [f"Nr. {i};{form(a)};{form(b)}" for i, (a, b) in enumerate(zip(x, y))]
        pathlib.Path("t.csv").write_bytes(
            ("Größe;x;y\n" + "\n".join(lines) + "\n").encode("cp1252"))
        numbers = [[round(v, 2) for v in pair] for pair in zip(x, y)]
        a, b = np.array(numbers).T
        return least_squares(np.column_stack([np.ones(rows), a]), b)

    def expect_line(self, expected, x="x"):
        found = coefficients("o.csv")
        np.testing.assert_allclose([found["(intercept)"], found[x]], expected, rtol=1e-7)

    def test_16_a_german_table_of_excel(self):
        expected = self.german(lambda v: f"{v:.2f}".replace(".", ","))
        self.tool("solve", "t.csv", "o.csv", "--response", "y", "--a", "x", "--intercept")
        self.expect_line(expected)

    def test_17_with_points_between_thousands(self):
        expected = self.german(
            lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,")))
        command = ["solve", "t.csv", "o.csv", "--response", "y", "--a", "x", "--intercept"]
        self.refused("--thousands point", *command)
        self.tool(*command, "--thousands", "point")
        self.expect_line(expected)

    def stores(self, has_gaps=True):
        keys = np.repeat(["north", "south", "west"], 12)
        x = self.rng.standard_normal(36)
        y = 1 + x * np.repeat([2., -1, 4], 12) + 0.1 * self.rng.standard_normal(36)
        dates = [f"2024-01-{i % 28 + 1:02}" for i in range(36)]
        texts = ["" if has_gaps and i % 9 == 4 else repr(float(v)) for i, v in enumerate(y)]
        pathlib.Path("t.csv").write_text("date,store,x,note,y\n" + "".join(
            f"{d},{k},{float(v)!r},some text,{t}\n" for d, k, v, t in zip(dates, keys, x, texts)),
            encoding="utf-8")
        return keys, x, np.array([float(t or "nan") for t in texts])

    def expect_stores(self, keys, x, y):
        for row in table("o.csv"):
            of = (keys == row["store"]) & ~np.isnan(y)
            expected = least_squares(np.column_stack([np.ones(of.sum()), x[of]]), y[of])
            np.testing.assert_allclose([float(row["(intercept)"]), float(row["x"])], expected,
                                       rtol=1e-9)

    BY_STORE = ("solve", "t.csv", "o.csv", "--response", "y", "--a", "x", "--intercept", "--by",
                "store")

    def test_18_a_regression_for_each_store(self):
        known = self.stores()
        self.refused("--missing skip", *self.BY_STORE, status=1)
        self.tool(*self.BY_STORE, "--missing", "skip")
        self.expect_stores(*known)

    def test_19_fitted_values_of_each_store(self):
        keys, x, y = self.stores()
        self.tool(*self.BY_STORE, "--missing", "skip", "--fitted")
        found = np.array([float(row["fitted_y"]) for row in table("o.fitted.csv")])
        for key in np.unique(keys):
            of, known = keys == key, (keys == key) & ~np.isnan(y)
            line = least_squares(np.column_stack([np.ones(known.sum()), x[known]]), y[known])
            np.testing.assert_allclose(found[of], line[0] + line[1] * x[of], rtol=1e-9)

    def test_20_dates_and_texts_beside_the_columns(self):
        known = self.stores(has_gaps=False)
        self.tool(*self.BY_STORE)
        self.expect_stores(*known)

    def test_21_a_number_that_means_a_missing_one(self):
        x = self.rng.standard_normal(20)
        y = np.column_stack([x, 2 * x, 3 * x]) + 1 + 0.1 * self.rng.standard_normal((20, 3))
        y[3, 0] = y[5, 1] = y[5, 2] = -999
        np.savetxt("t.csv", np.column_stack([x, y]), delimiter=",", header="x,p,q,r", comments="")
        self.tool("solve", "t.csv", "o.csv", "--response", "p,q,r", "--intercept", "--missing",
                  "skip", "--na-text", "-999")
        for line in table("o.csv"):
            column = y[:, "pqr".index(line["response"])]
            there = column != -999
            expected = least_squares(np.column_stack([np.ones(there.sum()), x[there]]),
                                     column[there])
            np.testing.assert_allclose(float(line["x"]), expected[int(line["term"] == "x")],
                                       rtol=1e-9)

    def test_22_a_masked_array(self):
        a = np.column_stack([np.ones(4), np.arange(4.)])
        b = np.ma.masked_values([3., 5., -999., 9.], -999)
        np.testing.assert_allclose(qrtool.lstsq(a, b, missing="skip")[0], [3, 2], rtol=1e-12)

    # R
    def test_23_residuals_hat_values_and_intervals(self):
        x = self.rng.standard_normal(15)
        y = 1 + 2 * x + self.rng.standard_normal(15)
        np.savetxt("t.csv", np.column_stack([x, y]), delimiter=",", header="x,y", comments="")
        self.tool("solve", "t.csv", "o.csv", "--response", "y", "--intercept", "--residuals",
                  "--leverage", "--confidence", "0.95")
        a = np.column_stack([np.ones(15), x])
        fit = least_squares(a, y)
        self.expect_line(fit)
        lines = table("o.csv")
        t_975 = 2.1603686564610127  # of 13 degrees of freedom
        for line in lines:
            half = t_975 * float(line["se"])
            np.testing.assert_allclose([float(line["lower"]), float(line["upper"])],
                                       [float(line["x"]) - half, float(line["x"]) + half],
                                       rtol=1e-9)
        np.testing.assert_allclose(np.loadtxt("o.residuals.csv", skiprows=1), y - a @ fit,
                                   atol=1e-12)
        q = np.linalg.qr(a)[0]
        np.testing.assert_allclose(np.loadtxt("o.leverage.csv", skiprows=1), (q**2).sum(1),
                                   atol=1e-12)

    def test_25_condition_of_a_design_with_gaps(self):
        x = self.rng.standard_normal((20, 2)) * [1, 50]
        y = x.sum(1) + self.rng.standard_normal(20)
        text = [[repr(float(v)) for v in row] for row in np.column_stack([x, y])]
        text[4][0] = text[9][2] = "NA"
        pathlib.Path("t.csv").write_text("u,v,y\n" + "".join(
            ",".join(row) + "\n" for row in text), encoding="utf-8")
        said = self.tool("solve", "t.csv", "o.csv", "--response", "y", "--intercept", "--missing",
                         "skip").stdout
        self.assertIn("18 of 20 rows used", said)
        there = np.setdiff1d(np.arange(20), [4, 9])
        true = np.linalg.cond(np.column_stack([np.ones(18), x[there]]))
        found = float(said.split("condition ")[1].split()[0].rstrip(";,"))
        self.assertLess(found / true, 1.01)
        self.assertGreater(found / true, 0.3)

    def test_26_files_that_no_program_of_numbers_writes(self):
        with zipfile.ZipFile("t.xlsx", "w") as archive:
            archive.writestr("[Content_Types].xml", "<Types/>")
            archive.writestr("xl/workbook.xml", "<workbook/>")
        with zipfile.ZipFile("t.pt", "w") as archive:
            archive.writestr("t/data.pkl", b"\x80\x02}.")
        header = b'{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
        pathlib.Path("t.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header + bytes(16))
        pathlib.Path("t.fits").write_bytes(b"SIMPLE  =                    T".ljust(2880))
        for name, hint in (("t.xlsx", "save the sheet as CSV"), ("t.pt", "torch.load('t.pt')"),
                           ("t.safetensors", "safetensors.numpy.load_file('t.safetensors')"),
                           ("t.fits", "astropy.io.fits.getdata('t.fits')")):
            self.refused(hint, "factor", name, "o.h5")
        self.messages = 1

    # Octave
    def octave(self, text):
        if shutil.which("octave-cli") is None:
            self.fail("octave-cli is missing; install-deps.sh installs what the tests need")
        done = subprocess.run(["octave-cli", "--no-gui", "--norc", "--eval", text], check=False,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_27_a_batch_of_squares_of_octave(self):
        a, b = self.rng.standard_normal((4, 3, 3)), self.rng.standard_normal((4, 3))
        with h5py.File("a.h5", "w") as file:  # as h5write stores 3 x 3 x 4 and 3 x 4
            file["A"] = np.swapaxes(a, 1, 2)
            file["b"] = b
        self.tool("solve", "a.h5:/A", "a.h5:/b", "x.h5", "--order", "column", "--rows", "last")
        self.messages = 1
        with h5py.File("x.h5") as file:
            np.testing.assert_allclose(file["X"][:].reshape(4, 3),
                                       np.stack([np.linalg.solve(*pair) for pair in zip(a, b)]),
                                       rtol=1e-9)

    def test_28_q_and_the_report_in_octave(self):
        np.save("a.npy", self.rng.standard_normal((6, 5, 3)))
        self.tool("factor", "a.npy", "q.h5")
        done = self.octave("s = load('q.h5'); disp(class(s.report.status)); "
                           "disp(double(s.report.status(:)')); disp(size(s.Q))")
        self.assertEqual(done.stdout.split(), ["uint8", *"000000", *"356"])
        self.assertNotIn("can't read", done.stderr)

    # xarray
    def cube(self, name, years=(2000,)):
        import xarray as xr  # pylint: disable=import-outside-toplevel
        days = np.arange(24 * len(years)) * 30.0
        values = self.rng.standard_normal((len(days), 3, 4)) + days[:, None, None] * 0.01
        values[5, 1, 2] = np.nan
        cube = xr.DataArray(values, dims=("time", "lat", "lon"), name="t2m", coords={
            "time": ("time", days, {"units": "days since 2000-01-01"}), "lat": [10., 20, 30],
            "lon": [1., 2, 3, 4]})
        cube.to_netcdf(name, engine="h5netcdf")
        return days, values

    def test_29_a_trend_of_each_pixel(self):
        import xarray as xr  # pylint: disable=import-outside-toplevel
        days, values = self.cube("c.nc")
        self.tool("solve", "c.nc", "c.nc:/t2m", "x.h5", "--a", "time", "--intercept", "--missing",
                  "skip", "--rows", "first")
        with xr.open_dataset("x.h5", engine="h5netcdf") as found:
            self.assertEqual(list(found.coefficient.values),
                             ["(intercept)", "time"])
            slope = found.X.sel(coefficient="time")
            self.assertEqual(slope.dims, ("lat", "lon"))
            there = ~np.isnan(values[:, 1, 2])
            np.testing.assert_allclose(slope.sel(lat=20, lon=3),
                                       np.polyfit(days[there], values[there, 1, 2], 1)[0],
                                       rtol=1e-9)

    def test_30_weights_for_time_and_pixel(self):
        days, values = self.cube("c.nc")
        w = self.rng.random(values.shape)
        np.save("w.npy", w)
        self.tool("solve", "c.nc", "c.nc:/t2m", "x.h5", "--a", "time", "--polynomial", "time:2",
                  "--intercept", "--missing", "skip", "--rows", "first", "--weights", "w.npy")
        a = np.column_stack([days**0, days, days**2])
        root = np.sqrt(w[:, 2, 1])
        with h5py.File("x.h5") as file:
            np.testing.assert_allclose(file["X"][:, 2, 1],
                                       least_squares(a * root[:, None], values[:, 2, 1] * root),
                                       rtol=1e-7)

    # The operator
    def files(self, count):
        os.mkdir("in")
        for i in range(count):
            np.save(f"in/{i:03}.npy", self.rng.standard_normal((6, 3)))
        return sorted(glob.glob("in/*"))

    def test_32_many_files_of_which_two_are_bad(self):
        inputs = self.files(60)
        pathlib.Path(inputs[10]).write_bytes(b"\x93NUMPY")
        np.save(inputs[20], np.full((6, 3), np.nan))
        done = self.tool("factor", *inputs, "--into", "out", "--json", status=3)
        result = json.loads(done.stdout)["inputs"]
        bad = [each["name"] for each in result if each["result"]["exit"] != 0]
        self.assertEqual(bad, [inputs[10], inputs[20]])
        self.assertEqual(len(glob.glob("out/*.R.npy")), 59)

    def test_33_the_rest_after_an_interrupt(self):
        inputs = self.files(800)
        with subprocess.Popen([QRTOOL, "factor", *inputs, "--into", "out", "--backend", "cpu"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
            end = time.monotonic() + 60
            while len(glob.glob("out/*.report.json")) < 3 and time.monotonic() < end:
                time.sleep(0.005)
            tool.send_signal(signal.SIGINT)
        self.assertNotEqual(tool.returncode, 0)
        done = self.tool("factor", *inputs, "--into", "out", "--skip-existing")
        self.assertRegex(done.stdout.splitlines()[-1], r"written to out; \d+ skipped")
        self.assertEqual(len(glob.glob("out/*.R.npy")), 800)

    def test_34_more_than_memory(self):
        np.save("a.npy", self.rng.standard_normal((400000, 16)))
        self.tool("factor", "a.npy", "r.npy", "--mode", "r", "--memory", "20MiB", "--dry-run")
        self.tool("factor", "a.npy", "r.npy", "--mode", "r", "--memory", "20MiB")
        r = np.load("r.R.npy")
        expected = np.linalg.qr(np.load("a.npy"), mode="r")
        np.testing.assert_allclose(np.abs(r), np.abs(expected), rtol=1e-9, atol=1e-9)

    def test_35_what_a_signal_leaves(self):
        self.tool("generate", "a.npy", "--shape", "40000x32x32")
        with subprocess.Popen([QRTOOL, "factor", "a.npy", "q.npy", "--backend", "cpu"],
                              stderr=subprocess.DEVNULL) as tool:
            time.sleep(0.2)
            tool.send_signal(signal.SIGTERM)
        if tool.returncode != 0:
            self.assertEqual(sorted(os.listdir(".")), ["a.npy"])
        self.tool("factor", "a.npy", "q.npy", "-f", "--mode", "r")

    def test_36_many_files_over_jobs(self):
        inputs = self.files(25)
        for job in range(1, 5):
            self.tool("factor", *inputs, "--into", "out", "--shard", f"{job}/4")
        self.assertEqual(len(glob.glob("out/*.R.npy")), 25)

    def test_38_what_ran_where(self):
        np.save("a.npy", np.eye(3))
        done = self.tool("factor", "a.npy", "q.h5", "--json")
        self.assertIn(json.loads(done.stdout)["backend"]["name"], ("cpu", "opencl", "cuda"))
        with h5py.File("q.h5") as file:
            self.assertIn("device", file.attrs)
        self.assertIn("--skip-existing", self.tool("complete", "factor", "--sk").stdout)
        self.assertIn("qrtool", self.tool("--version").stdout)

    def test_zz_count(self):
        done = {name for name, messages in VERDICTS.items() if messages <= 1}
        total = len(done) + len(ELSEWHERE)
        print(f"{total} of {total + len(NOT_POSSIBLE)} tasks at the first try or after one message")
        self.assertGreaterEqual(total, LEAST)
        self.assertEqual(len(VERDICTS) + len(ELSEWHERE) + len(NOT_POSSIBLE), 40)


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    unittest.main(argv=sys.argv[:1], verbosity=1)
