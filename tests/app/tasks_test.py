#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks of people who come from pandas, R, Octave, xarray and the shell. Each is done by at
most two commands that --help alone leads to; the program that made the data judges the answer."""
import json
import shutil
import subprocess
import sys
import unittest

try:
    import h5netcdf  # pylint: disable=unused-import
    import numpy as np
    import pandas as pd
    import xarray as xr
except ImportError as error:
    sys.exit(f"tasks_test: {error}; install-deps.sh installs what the tests need")
from tool import QRTOOL, FolderTest

RNG = np.random.default_rng(20)


class Tasks(FolderTest):
    def setUp(self):
        super().setUp()
        self.commands = 0

    def tool(self, *args, standard_input=None):
        self.commands += 1
        self.assertLessEqual(self.commands, 2)
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, check=False,
                              timeout=120, input=standard_input)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def program(self, *command):
        if shutil.which(command[0]) is None:
            self.fail(f"{command[0]} is missing; install-deps.sh installs what the tests need")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def octave(self, text):
        return self.program("octave-cli", "--no-gui", "--norc", "--eval", text)

    @staticmethod
    def frame(rows=60):
        frame = pd.DataFrame({"gdp": RNG.normal(40, 9, rows), "area": RNG.normal(3, 1, rows)})
        frame["y"] = 2 + 0.5 * frame.gdp - frame.area + RNG.normal(0, 1, rows)
        frame.index = [f"c{i}" for i in range(rows)]
        return frame

    def test_pandas_coefficients_come_back_as_a_frame(self):
        frame = self.frame()
        frame.to_csv("countries.csv")
        self.tool("solve", "countries.csv", "fit.csv", "--response", "y", "--intercept")
        fit = pd.read_csv("fit.csv", index_col="term")
        a = np.column_stack([np.ones(len(frame)), frame.gdp, frame.area])
        x = np.linalg.lstsq(a, frame.y.to_numpy(), rcond=None)[0]
        np.testing.assert_allclose(fit.x[["(intercept)", "gdp", "area"]], x, rtol=1e-10)

    def test_pandas_weights_and_missing_values(self):
        frame = self.frame()
        frame["w"] = RNG.uniform(0.5, 2, len(frame))
        frame.loc["c7", "gdp"] = np.nan
        frame.to_csv("countries.csv")
        self.tool("solve", "countries.csv", "fit.csv", "--response", "y", "--weights", "w",
                  "--missing", "skip")
        fit = pd.read_csv("fit.csv", index_col="term")
        there = frame.dropna()
        root = np.sqrt(there.w.to_numpy())
        a = there[["gdp", "area"]].to_numpy() * root[:, None]
        x = np.linalg.lstsq(a, there.y.to_numpy() * root, rcond=None)[0]
        np.testing.assert_allclose(fit.x[["gdp", "area"]], x, rtol=1e-10)

    def test_pandas_limits_of_two_responses(self):
        frame = self.frame()
        frame["z"] = frame.area + RNG.normal(0, 1, len(frame))
        frame.to_csv("countries.csv", index=False)
        self.tool("solve", "countries.csv", "fit.csv", "--columns", "gdp,y,z", "--response", "y,z",
                  "--intercept", "--confidence", "0.9")
        fit = pd.read_csv("fit.csv", index_col=["response", "term"])
        a = np.column_stack([np.ones(len(frame)), frame.gdp])
        x = np.linalg.lstsq(a, frame[["y", "z"]].to_numpy(), rcond=None)[0]
        np.testing.assert_allclose(fit.x, x.T.ravel(), rtol=1e-10)
        np.testing.assert_allclose((fit.lower + fit.upper) / 2, fit.x, rtol=1e-10)
        # Of Student's t with 58 degrees of freedom.
        np.testing.assert_allclose((fit.upper - fit.x) / fit.se, 1.671553, rtol=1e-5)

    def test_r_summary_of_a_linear_model(self):
        self.program("Rscript", "-e", 'write.csv(mtcars, "cars.csv")')
        self.tool("solve", "cars.csv", "fit.csv", "--response", "mpg", "--intercept", "--columns",
                  "mpg,wt,hp")
        said = self.program("Rscript", "-e", """
            f <- read.csv("fit.csv"); s <- summary(lm(mpg ~ wt + hp, mtcars))$coefficients
            cat(max(abs(as.matrix(f[, c("x", "se", "t", "p")]) / s - 1)))""")
        self.assertLess(float(said), 1e-9)

    def test_r_table_with_decimal_commas(self):
        self.program("Rscript", "-e",
                     'write.csv2(mtcars[, c("mpg", "wt", "qsec")], "cars.csv")')
        self.tool("factor", "cars.csv", "cars-qr.csv", "--mode", "r")
        said = self.program("Rscript", "-e", """
            r <- as.matrix(read.csv("cars-qr.R.csv", header = FALSE, comment.char = "#"))
            q <- qr.R(qr(as.matrix(mtcars[, c("mpg", "wt", "qsec")])))
            cat(max(abs(abs(r) - abs(q))))""")
        self.assertLess(float(said), 1e-10)

    def test_r_weights_in_a_file_of_their_own(self):
        self.program("Rscript", "-e", """
            for (name in c("wt", "mpg", "hp"))
              write.csv(mtcars[, name, drop = FALSE], paste0(name, ".csv"), row.names = FALSE)""")
        self.tool("solve", "wt.csv", "mpg.csv", "x.csv", "--weights", "hp.csv")
        said = self.program("Rscript", "-e", """
            x <- scan("x.X.csv", comment.char = "#", quiet = TRUE)
            cat(abs(x - coef(lm(mpg ~ wt - 1, mtcars, weights = hp))))""")
        self.assertLess(float(said), 1e-12)

    def test_octave_solves_what_it_saved(self):
        self.octave("rand('seed', 1); A = rand(9, 4); b = rand(9, 1); save -hdf5 ls.h5 A b; "
                    "x = A \\ b; save -ascii -double x.txt x")
        self.tool("solve", "ls.h5:/A", "ls.h5:/b", "x.csv")
        own = np.loadtxt("x.txt")
        x = np.loadtxt("x.X.csv", delimiter=",", comments="#").ravel()
        np.testing.assert_allclose(x, own, rtol=1e-10)

    def test_octave_reads_the_factors(self):
        self.octave("rand('seed', 2); A = rand(9, 4); save -hdf5 a.h5 A; "
                    "save -ascii -double a.txt A")
        self.tool("factor", "a.h5", "qr.h5")
        said = self.octave("s = load('qr.h5'); A = load('a.txt'); "
                           "printf('%g', norm(s.Q * s.R - A))")
        self.assertLess(float(said), 1e-12)

    def temperatures(self):
        time, lat, lon = 30, 4, 5
        data = 280 + RNG.normal(0, 3, (time, lat, lon)) + 0.1 * np.arange(time)[:, None, None]
        data[:, 1, 2] = np.nan
        xr.Dataset({"t2m": (("time", "lat", "lon"), data)}).to_netcdf(
            "t2m.nc", engine="h5netcdf",
            encoding={"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0,
                              "_FillValue": np.int16(-32768)}})
        np.save("trend.npy", np.vander(np.arange(float(time)), 2, increasing=True))

    def test_xarray_trend_of_every_pixel_of_a_packed_variable(self):
        self.temperatures()
        self.tool("solve", "trend.npy", "t2m.nc:/t2m", "fit.npz", "--missing", "skip")
        # By itself xarray decodes integers of 16 bits to float32.
        packed = xr.open_dataset("t2m.nc", engine="h5netcdf", mask_and_scale=False).t2m
        there = packed.where(packed != packed.attrs["_FillValue"]).astype("f8")
        decoded = (there * packed.scale_factor + packed.add_offset).to_numpy()
        x = np.load("fit.npz")["X"]
        sea = np.isnan(decoded).any(axis=0)
        want = np.linalg.lstsq(np.load("trend.npy"), decoded[:, ~sea], rcond=None)[0]
        np.testing.assert_allclose(x[:, ~sea], want, rtol=1e-10)
        self.assertTrue(np.isnan(x[:, sea]).all())

    def test_xarray_finds_its_dimensions_again(self):
        data = RNG.normal(size=(3, 2, 8, 4))
        xr.Dataset({"a": (("run", "level", "row", "column"), data)}).to_netcdf(
            "a.nc", engine="h5netcdf")
        self.tool("factor", "a.nc", "qr.h5")
        r = xr.open_dataset("qr.h5", engine="h5netcdf", phony_dims="sort").R
        self.assertEqual(r.dims[:2], ("run", "level"))
        np.testing.assert_allclose(abs(r), abs(np.linalg.qr(data, "r")), rtol=1e-9, atol=1e-12)

    def test_xarray_first_years_of_every_pixel(self):
        data = RNG.normal(size=(30, 4, 5))
        data[3, 1, 2] = np.nan
        xr.Dataset({"t": (("time", "lat", "lon"), data)}, coords={"lat": np.arange(4.0)}
                   ).to_netcdf("t.nc", engine="h5netcdf")
        np.save("trend.npy", np.vander(np.arange(20.0), 2))
        self.tool("solve", "trend.npy", "t.nc:/t[:20]", "fit.h5", "--missing", "skip")
        fit = xr.open_dataset("fit.h5", engine="h5netcdf", phony_dims="sort")
        self.assertEqual(fit.X.dims[1:], ("lat", "lon"))
        self.assertEqual(set(fit.X.coords), {"lat"})  # what has no coordinates gets none
        there = ~np.isnan(data[:20, 1, 2])
        x = np.linalg.lstsq(np.load("trend.npy")[there], data[:20, 1, 2][there], rcond=None)[0]
        np.testing.assert_allclose(fit.X[:, 1, 2], x, rtol=1e-10)

    def test_shell_coefficients_in_a_pipe(self):
        frame = self.frame()
        text = frame.to_csv(index=False)
        done = self.tool("solve", "-", "-", "--response", "y", "--intercept", standard_input=text)
        rows = [line.split(",") for line in done.stdout.splitlines()]
        self.assertEqual(rows[0][:2], ["term", "x"])
        self.assertEqual([row[0] for row in rows[1:]], ["(intercept)", "gdp", "area"])

    def test_shell_finds_the_worst_conditioned_matrix(self):
        self.tool("generate", "--shape", "50x8x5", "a.npy")
        self.tool("factor", "a.npy", "r.npy", "--mode", "r", "--condition", "--report", "r.csv")
        worst = self.program("sh", "-c", "sort -t, -k9 -g r.csv | tail -1 | cut -d, -f1")
        self.assertEqual(int(worst), np.linalg.cond(np.load("a.npy")).argmax())

    def test_shell_factors_and_asks_whether_all_is_well(self):
        np.save("a.npy", RNG.normal(size=(20, 8, 4)))
        self.tool("factor", "a.npy", "q.npz")
        said = json.loads(self.tool("verify", "a.npy", "q.npz", "--json").stdout)
        self.assertEqual(said["exit"], 0)
        with np.load("q.npz") as q:
            self.assertEqual(q["Q"].shape, (20, 8, 4))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
