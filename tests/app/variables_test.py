#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Variables of HDF5 and netCDF mean the same to the tool and to other programs: scale, sign,
missing values, order; what was applied is recorded, and verify repeats it."""
import os
import re
import subprocess
import sys
import unittest

import h5py
import netCDF4
import numpy
import xarray

from tool import QRTOOL, FolderTest



def qrtool(*args):
    done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stdout, done.stderr


def lstsq(a, b):
    return numpy.linalg.lstsq(a, b, rcond=None)[0]


def write_netcdf(name, numbers, dtype, fill_value=None, dimensions=("t", "y"), **attributes):
    with netCDF4.Dataset(name, "w") as file:
        for dimension, extent in zip(dimensions, numbers.shape):
            file.createDimension(dimension, extent)
        variable = file.createVariable("v", dtype, dimensions, fill_value=fill_value)
        variable.set_auto_maskandscale(False)
        variable.setncatts(attributes)
        variable[:] = numbers


class VariableTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.rng = numpy.random.default_rng(3)
        self.v = numpy.vander(numpy.arange(30.0), 3, increasing=True)
        numpy.save("V.npy", self.v)
        self.u = self.rng.integers(0, 255, (30, 2)).astype("u1")


class Variables(VariableTest):
    def solve(self, *args, code=0):
        found, out, err = qrtool("solve", *args)
        self.assertEqual(found, code, out + err)
        return err

    def attributes(self, name="x.h5"):
        with h5py.File(name) as file:
            return {key: value for key, value in file.attrs.items() if isinstance(value, str)}

    def test_sign_and_scale_are_applied_and_repeated(self):
        write_netcdf("u.nc", self.u.view("i1"), "i1", _Unsigned="true")
        write_netcdf("s.nc", self.u, "i2", scale_factor=0.01, add_offset=280.0)
        for name, numbers in (("u.nc", self.u.astype(float)), ("s.nc", self.u * 0.01 + 280)):
            self.solve("V.npy", name, "x.h5", "-q", "-f", "--rows", "first")
            with h5py.File("x.h5") as file:
                numpy.testing.assert_allclose(file["X"][:], lstsq(self.v, numbers), rtol=1e-9)
            code, out, err = qrtool("verify", "V.npy", name, "x.h5")
            self.assertEqual((code, err), (0, ""), out)
        recorded = self.attributes()
        self.assertEqual(recorded["right_side_netcdf_scale_factor"], "0.01")
        self.assertEqual(recorded["right_side_netcdf_add_offset"], "280")

    def write_times(self, units, calendar=None, dtype="f8", **attributes):
        """Writes t.nc with a time coordinate and a series; returns both, as they are stored."""
        times = numpy.cumsum(self.rng.integers(1, 40, 30)).astype(dtype)
        series = self.rng.standard_normal(30)
        with netCDF4.Dataset("t.nc", "w") as file:
            file.createDimension("time", 30)
            time = file.createVariable("time", dtype, ("time",))
            time.set_auto_maskandscale(False)
            attributes["units"] = units
            time.setncatts(attributes | ({"calendar": calendar} if calendar else {}))
            time[:] = times
            file.createVariable("v", "f8", ("time",))[:] = series
        return times, series

    def solve_times(self, *options, out="x.h5", code=0):
        return self.solve("t.nc", "t.nc:/v", out, "--a", "time", "--polynomial", "time:2",
                          "--intercept", "-f", *options, code=code)

    def test_times_are_what_has_passed_in_their_calendar(self):
        seconds = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "months": 30 * 86400}
        for units, calendar in (("days since 1950-01-01", None), ("Days since 1582-10-01", None),
                                ("hours since 1900-01-01 00:00:0.0", "Gregorian"),
                                ("minutes since 2000-02-28", "noleap"),
                                ("seconds since 1970-01-01T00:00:00Z", "proleptic_gregorian"),
                                ("days since 1950-02-30", "360_day"),
                                ("days since 1996-01-01", "365_day"),
                                ("days since 1950-02-29", "all_leap"),
                                ("months since 1960-01-01", "360_day")):
            times, series = self.write_times(units, calendar)
            self.assertEqual(self.solve_times("-q"), "")
            dates = netCDF4.num2date(times, units, (calendar or "standard").lower(),
                                     only_use_cftime_datetimes=True)
            passed = numpy.array([(date - dates[0]).total_seconds() for date in dates])
            unit = seconds[units.split()[0].lower()]
            # From the first date on, and then from the reference.
            wanted = numpy.polynomial.Polynomial(
                lstsq(numpy.vander(passed / unit, 3, increasing=True), series))(
                    numpy.polynomial.Polynomial([-times[0], 1])).coef
            with h5py.File("x.h5") as file:
                numpy.testing.assert_allclose(file["X"][:], wanted, rtol=1e-8)
            attributes = self.attributes()
            self.assertEqual(attributes["netcdf_time_units"], units)
            self.assertEqual(attributes["netcdf_time_calendar"], calendar or "standard")
            self.assertEqual(qrtool("verify", "t.nc", "t.nc:/v", "x.h5")[::2], (0, ""))
        self.assertIn("time units months since 1960-01-01, time calendar 360_day",
                      self.solve_times("-v"))
        self.solve_times(out="x.csv")
        self.assertEqual(qrtool("verify", "t.nc", "t.nc:/v", "x.csv")[::2], (0, ""))

    def test_months_and_years_of_several_lengths_are_noted(self):
        for units, calendar, is_noted in (("months since 1960-01-01", None, True),
                                          ("months since 1960-01-01", "noleap", True),
                                          ("years since 1960-01-01", "noleap", False),
                                          ("year since 1960-01-01", "standard", True)):
            self.write_times(units, calendar)
            self.assertEqual("not equally long in the calendar" in self.solve_times(), is_noted)

    def test_unknown_times_are_refused_by_name(self):
        for attribute, wrong, right in (("units", "fortnights since 1950-01-01", "days"),
                                        ("units", "hors since 1950-01-01", "hours"),
                                        ("calendar", "360", "360_day"),
                                        ("calendar", "none", "standard")):
            words = {"units": "days since 1950-01-01", attribute: wrong}
            self.write_times(**words)
            text = self.solve_times(code=3)
            self.assertIn(f"t.nc: /time has the {attribute} '{wrong}'", text)
            exec(re.search(r"for example (h5py.*'); or ", text)[1])  # pylint: disable=exec-used
            self.solve_times()
            self.assertTrue(self.attributes()["netcdf_time_" + attribute].startswith(right))

    def test_vectors_as_they_are_stored(self):
        times, series = self.write_times("hours since 1900-01-01", dtype="i2", scale_factor=24.0,
                                         add_offset=788400.0)
        for options, numbers in (((), 24.0 * times + 788400), (("--raw-values",), 1.0 * times)):
            self.solve_times("-q", *options)
            with h5py.File("x.h5") as file:
                fitted = numpy.vander(numbers, 3, increasing=True) @ file["X"][:]
            wanted = numpy.vander(times - times.mean(), 3)
            numpy.testing.assert_allclose(fitted, wanted @ lstsq(wanted, series), atol=1e-6)
            self.assertEqual("netcdf_raw_values" in self.attributes(), bool(options))
            self.assertEqual(qrtool("verify", "t.nc", "t.nc:/v", "x.h5")[0], 0)

    def test_raw_values(self):
        write_netcdf("s.nc", self.u, "i2", scale_factor=0.01, add_offset=280.0)
        raw = lstsq(self.v, self.u.astype(float))
        for out in ("x.h5", "x.npz", "x.csv"):
            self.solve("V.npy", "s.nc", out, "-q", "--raw-values")
            # verify repeats what the output records.
            code, text, err = qrtool("verify", "V.npy", "s.nc", out)
            self.assertEqual((code, err), (0, ""), out + text)
        with h5py.File("x.h5") as file:
            numpy.testing.assert_allclose(file["X"][:], raw, rtol=1e-9)
        self.assertEqual(qrtool("factor", "s.nc", "q.h5", "--raw-values")[0], 0)
        self.assertEqual(self.attributes("q.h5")["netcdf_raw_values"], "yes")
        self.assertEqual(qrtool("verify", "s.nc", "q.h5")[:1], (0,))
        # An option wins, with a note.
        self.assertEqual(qrtool("factor", "s.nc", "q.h5", "-f")[0], 0)
        code, _, err = qrtool("verify", "s.nc", "q.h5", "--raw-values")
        self.assertEqual(code, 1)
        self.assertIn("q.h5 was made with scale factor 0.01, and s.nc is read without scale factor",
                      err)
        self.assertIn("read with raw values yes", err)
        code, _, err = qrtool("factor", "V.npy", "w.h5", "--raw-values")
        self.assertEqual(code, 2)
        self.assertIn("--raw-values is for HDF5 and netCDF", err)

    def test_info_says_how_it_is_read(self):
        write_netcdf("s.nc", self.u, "i2", scale_factor=0.01, fill_value=-1,
                     missing_value=numpy.int16(7), valid_max=numpy.int16(200))
        out = qrtool("info", "s.nc")[1]
        self.assertIn("read with missing value -1 7, scale factor 0.01", out)
        self.assertIn("its valid_max is not applied", out)
        self.assertIn("by rows (netCDF stores rows)", out)
        self.assertNotIn("--order column", out)
        self.assertIn("read with raw values yes", qrtool("info", "s.nc", "--raw-values")[1])

    def test_missing_values_are_compared_as_stored(self):
        a = self.rng.standard_normal((30, 3)).astype("f4")
        b = a.astype("f8") @ [1, 2, 3] + 0.01 * self.rng.standard_normal(30)
        a[7, 1] = a[20, 0] = numpy.float32(-999.9)
        with h5py.File("m.h5", "w") as file:
            file["A"], file["b"] = a, b
            file["A"].attrs["missing_value"] = numpy.float64(-999.9)
        present = numpy.isin(numpy.arange(30), [7, 20], invert=True)
        for options in ([], ["--precision", "single"], ["--precision", "double"]):
            self.solve("m.h5:/A", "m.h5:/b", "x.h5", "-f", "--missing", "skip", *options)
            with h5py.File("x.h5") as file:
                numpy.testing.assert_allclose(
                    file["X"][:], lstsq(a[present].astype("f8"), b[present]), rtol=1e-5)

    def test_default_fill(self):
        z = self.u.astype("f4")
        z[3, 1] = netCDF4.default_fillvals["f4"]
        write_netcdf("f.nc", z, "f4")
        self.solve("V.npy", "f.nc", "x.h5", "-q", "--missing", "skip")
        present = numpy.arange(30) != 3
        with h5py.File("x.h5") as file:
            numpy.testing.assert_allclose(file["X"][:][:, 1], lstsq(self.v[present], z[present, 1]),
                                          rtol=1e-5)
        # Where no fill value was asked for, the number is one.
        write_netcdf("n.nc", z, "f4", fill_value=False)
        self.assertEqual(qrtool("factor", "n.nc", "q.h5")[0], 0)

    def test_what_cannot_be_decoded_is_refused(self):
        with h5py.File("a.h5", "w") as file:
            file["A"] = self.u
            file["A"].attrs["scale_factor"] = numpy.array([1.0, 2.0])
        code, _, err = qrtool("factor", "a.h5", "q.h5")
        self.assertEqual(code, 3)
        self.assertIn("its attribute scale_factor is not one number", err)
        self.assertIn("hint: --raw-values", err)
        self.assertEqual(qrtool("factor", "a.h5", "q.h5", "--raw-values")[0], 0)
        with netCDF4.Dataset("c.nc", "w", format="NETCDF3_CLASSIC") as file:
            file.createDimension("x", 3)
            file.createVariable("v", "f8", ("x", "x"))
        code, _, err = qrtool("factor", "c.nc", "q.h5", "-f")
        self.assertEqual(code, 3)
        self.assertRegex(err, r"netCDF-3 file.*\n.*nccopy -k nc4 c\.nc")
        with h5py.File("e.h5", "w") as file:
            file["A"] = numpy.array([0, 3], dtype="u8")
            file["A"].attrs["MATLAB_class"] = numpy.bytes_("double")
            file["A"].attrs["MATLAB_empty"] = numpy.uint8(1)
        self.assertIn("an empty array of MATLAB", qrtool("factor", "e.h5", "q.h5", "-f")[2])

    def test_names_of_dimensions_stay(self):
        with xarray.Dataset(
                {"v": (("t", "lat", "lon"), self.rng.standard_normal((30, 4, 5)))},
                coords={"lat": [10.0, 20, 30, 40],
                        "lon": ("lon", numpy.arange(5) * 2.5, {"units": "deg"})}
        ) as data:
            data.to_netcdf("map.nc")
        self.solve("V.npy", "map.nc:/v", "x.h5", "-q")
        for engine in ("netcdf4", "h5netcdf"):
            with xarray.open_dataset("x.h5", engine=engine) as data:
                self.assertEqual(data["X"].dims, ("coefficient", "lat", "lon"))
                self.assertEqual(data["lon"].values.tolist(), [0, 2.5, 5, 7.5, 10])
                self.assertEqual(data["lon"].attrs["units"], "deg")
            # What belongs to the one A has no dimension of B.
            options = {"phony_dims": "access"} if engine == "h5netcdf" else {}
            with xarray.open_dataset("x.h5", engine=engine, group="report", **options) as report:
                self.assertEqual(report["residual_norm"].dims, ("lat", "lon"))
        self.assertEqual(qrtool("factor", "map.nc:/v[::2]", "q.h5")[0], 0)
        with xarray.open_dataset("q.h5", engine="netcdf4") as data:
            self.assertEqual(data["Q"].dims, ("t", "lat", "factor"))
            self.assertEqual(data["R"].dims, ("t", "factor", "lon"))
            self.assertEqual(data["lat"].values.tolist(), [10, 20, 30, 40])
        self.assertEqual(qrtool("verify", "map.nc:/v[::2]", "q.h5")[0], 0)

    def test_pivots_say_from_what_they_count(self):
        numpy.save("A.npy", self.rng.standard_normal((6, 3)))
        for name in ("p.h5", "p.csv"):
            self.assertEqual(qrtool("factor", "A.npy", name, "--pivot")[0], 0)
        with h5py.File("p.h5") as file:
            self.assertEqual(file["P"].attrs["base"], 0)
            self.assertIn("counted from 0", file["P"].attrs["description"])
        with open("p.P.csv", encoding="utf-8") as file:
            self.assertIn("counted from 0", file.readline())
        self.assertEqual(qrtool("verify", "A.npy", "p.csv")[0], 0)


class Orders(VariableTest):
    def write(self, name, **attributes):
        """A and b as h5write of MATLAB, Julia and R stores them, without a mark."""
        self.a, self.b = self.rng.standard_normal((6, 6)), self.rng.standard_normal(6)
        with h5py.File(name, "w") as file:
            file["A"], file["b"], file["c"] = self.a.T, self.b[None, :], self.b
            for key, value in attributes.items():
                file["A"].attrs[key] = value

    def test_a_square_matrix_gets_a_note(self):
        self.write("s.h5")
        code, _, err = qrtool("factor", "s.h5:/A", "q.h5")
        self.assertEqual(code, 0)
        self.assertRegex(
            err, "note: s.h5: /A is square, and nothing in the file says .*--order column")
        self.assertIn("/A is square", qrtool("solve", "s.h5:/A", "s.h5:/c", "x.h5")[2])
        # verify repeats the doubt.
        self.assertIn("/A is square", qrtool("verify", "s.h5:/A", "q.h5")[2])
        self.assertIn("/A is square", qrtool("verify", "s.h5:/A", "s.h5:/c", "x.h5")[2])
        for order in ("row", "column"):
            self.assertEqual(qrtool("factor", "s.h5:/A", "q.h5", "-f", "--order", order)[2], "")
            self.assertEqual(qrtool("verify", "s.h5:/A", "q.h5")[2], "")

    def test_a_right_side_of_one_row_is_a_sign(self):
        self.write("s.h5")
        code, _, err = qrtool("solve", "s.h5:/A", "s.h5:/b", "x.h5")
        self.assertEqual(code, 0)
        self.assertRegex(err, "/b is stored as 1x6, as MATLAB.*give --order column")
        self.assertEqual(qrtool("verify", "s.h5:/A", "s.h5:/b", "x.h5")[2], err)
        code, _, err = qrtool("solve", "s.h5:/A", "s.h5:/b", "x.h5", "-f", "--order", "column")
        self.assertEqual((code, err), (0, ""))
        with h5py.File("x.h5") as file:
            numpy.testing.assert_allclose(file["X"][:].ravel(), numpy.linalg.solve(self.a, self.b),
                                          rtol=1e-9)

    def test_marks_decide(self):
        marks = {"MATLAB": {"MATLAB_class": numpy.bytes_("double")},
                 "rhdf5": {"rhdf5-NA.OK": numpy.int32(1)}}
        for program, attributes in marks.items():
            self.write("s.h5", **attributes)
            self.assertIn(f"by columns (it has the marks of {program}",
                          qrtool("info", "s.h5:/A")[1])
            code, _, err = qrtool("factor", "s.h5:/A", "q.h5", "-f")
            self.assertEqual((code, err), (0, ""))
        with h5py.File("j.jld2", "w", userblock_size=512) as file:
            file["A"] = self.a.T
        with open("j.jld2", "r+b") as file:
            file.write(b"HDF5-based Julia Data Format, version 0.1.1 (Julia 1.9)")
        self.assertIn("by columns (it has the marks of Julia)", qrtool("info", "j.jld2:/A")[1])
        write_netcdf("s.nc", self.a, "f8")
        code, _, err = qrtool("factor", "s.nc", "q.h5", "-f")
        self.assertEqual((code, err), (0, ""))

    def test_message_names_the_order_that_fits(self):
        a, b = self.rng.standard_normal((30, 4)), self.rng.standard_normal((30, 1))
        with h5py.File("t.h5", "w") as file:
            file["A"], file["b"] = a.T, b.T
        code, _, err = qrtool("solve", "t.h5:/A", "t.h5:/b", "x.h5")
        self.assertEqual(code, 3)
        self.assertIn("hint: --order column would read A as 30x4 and B as 30x1, which fit", err)
        self.assertEqual(qrtool("solve", "t.h5:/A", "t.h5:/b", "x.h5", "--order", "column")[0], 0)
        with h5py.File("x.h5") as file:
            numpy.testing.assert_allclose(file["X"][:].ravel(), lstsq(a, b).ravel(), rtol=1e-9)

    def test_right_sides_with_an_order_of_their_own(self):
        a, b = self.rng.standard_normal((6, 4)), self.rng.standard_normal((6, 6))
        with h5py.File("a.h5", "w") as file:
            file["A"] = a.T
            file["A"].attrs["MATLAB_class"] = numpy.bytes_("double")
        numpy.save("B.npy", b)
        numpy.savetxt("B.csv", b, delimiter=",")
        for name in ("B.npy", "B.csv"):
            code, _, err = qrtool("solve", "a.h5:/A", name, "x.h5", "-f")
            if code != 0:  # the hint leads to the columns of B
                self.assertIn("columns of matrices, [..., m, p]", err)
            code, _, err = qrtool("solve", "a.h5:/A", name, "x.h5", "-f", "--rows", "matrix")
            self.assertEqual((code, err), (0, ""))
            with h5py.File("x.h5") as file:
                numpy.testing.assert_allclose(file["X"][:], lstsq(a, b), rtol=1e-9)
            self.assertEqual(qrtool("verify", "a.h5:/A", name, "x.h5")[0], 0)
        # B of the same kind of file is stored as A is.
        with h5py.File("b.h5", "w") as file:
            file["B"] = b[:, :5].T
        self.assertEqual(qrtool("solve", "a.h5:/A", "b.h5", "x.h5", "-f")[0], 0)
        with h5py.File("x.h5") as file:
            numpy.testing.assert_allclose(file["X"][:].T, lstsq(a, b[:, :5]), rtol=1e-9)

    def test_factors_in_the_place_of_a_system(self):
        a = self.rng.standard_normal((50, 20, 8))
        q, r = numpy.linalg.qr(a)
        for name, array in (("A.npy", a), ("Q.npy", q), ("R.npy", r)):
            numpy.save(name, array)
        code, _, err = qrtool("verify", "A.npy", "Q.npy", "R.npy")
        self.assertEqual(code, 2)
        self.assertIn("look like the factors R and Q", err)
        follow = re.search(r"name them (\S+) and (\S+): qrtool (verify .*)", err)
        os.rename("Q.npy", follow[1])
        os.rename("R.npy", follow[2])
        self.assertEqual(qrtool(*follow[3].split())[0], 0)

    def test_raw_factors_of_numpy(self):
        a = self.rng.standard_normal((5, 20, 8))
        h, tau = numpy.linalg.qr(a, mode="raw")
        numpy.save("A.npy", a)
        numpy.savez("v.npz", V=h, tau=tau)
        code, _, err = qrtool("verify", "A.npy", "v.npz")
        self.assertEqual(code, 3)
        self.assertIn("tau 5x8", err)
        self.assertIn("numpy.swapaxes(h, -1, -2)", err)
        numpy.savez("v.npz", V=numpy.swapaxes(h, -1, -2), tau=tau)
        self.assertEqual(qrtool("verify", "A.npy", "v.npz")[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
