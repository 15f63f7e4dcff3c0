#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_variables.py READER [--variables N] [--seed S]: variables as netCDF4, h5netcdf and h5py
write them, packed, unsigned and with missing values, read by the tool and by xarray: the same
numbers, or a refusal. READER is the program qrtool_read_variables."""
import argparse
import collections
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import h5py
import netCDF4
import numpy
import xarray

TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def value_of(text_or_number):
    """A number of the answer."""
    if text_or_number is None:
        return math.nan
    return float(text_or_number)


class Variable:
    """A file with one variable of matrices, and what is meant by it."""

    def __init__(self, rng, path):
        self.rng, self.path = rng, path
        self.writer = rng.choice(["netCDF4", "netCDF4", "netCDF4", "h5netcdf", "h5py", "netCDF-3"])
        types = ["i1", "i2", "i4", "f4", "f8"] if self.writer == "netCDF-3" else TYPES
        self.dtype = numpy.dtype(rng.choice(types))
        if self.writer == "h5py" and rng.random() < 0.4:
            self.dtype = numpy.dtype(rng.choice([">i2", ">f4", ">f8", "<f2", ">u4"]))
        self.is_integer = self.dtype.kind in "iu"
        self.bits = 8 * self.dtype.itemsize
        shape = [rng.randint(1, 4) for _ in range(rng.choice([0, 0, 1, 2]))]
        self.shape = tuple(shape + [rng.randint(1, 6), rng.randint(1, 6)])
        self.attributes = {}
        self.fill = None  # _FillValue
        self.is_filled = rng.random() < 0.9  # netCDF's fill mode
        # What only the tool, or only xarray, takes for missing; a text that a refusal must have.
        self.also_missing, self.refusal = [], None
        self.draw_sign()
        self.draw_missing()
        self.draw_scale()
        self.numbers = self.draw_numbers()

    def draw_sign(self):
        chosen = self.rng.random()
        self.means = self.dtype
        if self.is_integer and chosen < 0.35:
            word = "true" if chosen < 0.25 else "false"
            self.attributes["_Unsigned"] = word
            kind = "u" if word == "true" else "i"
            self.means = numpy.dtype(f"{kind}{self.dtype.itemsize}")

    def number(self, dtype):
        """A number of a type, small or near one of its ends."""
        rng = self.rng
        if dtype.kind == "f":
            scale = 10.0 ** rng.randint(-3, 4)
            return dtype.type(rng.choice(
                [rng.gauss(0, 1) * scale, float(rng.randint(-50, 50)), -999.9]))
        info, chosen = numpy.iinfo(dtype), rng.random()
        low, high = int(info.min), int(info.max)
        if chosen < 0.5:
            return dtype.type(rng.randint(max(low, -40), min(high, 40)))
        if chosen < 0.8:
            return dtype.type(rng.randint(low, high))
        return dtype.type(min(max(rng.choice([low, low + 1, low + 2, high, high - 1]), low), high))

    def draw_missing(self):
        rng = self.rng
        self.marks = []  # stored numbers that mean missing, and some that nearly do
        if rng.random() < 0.5:
            self.fill = self.number(self.dtype)
            self.marks.append(self.fill)
        if rng.random() < 0.45:
            values = [self.missing_value() for _ in range(rng.choice([1, 1, 2, 3]))]
            self.attributes["missing_value"] = (
                values[0] if len(values) == 1 else numpy.array(values))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.marks += [self.dtype.type(v) for v in values if self.fits(v)]

    def fits(self, value, dtype=None):
        """Whether the variable's type, or another, has this number."""
        if not self.is_integer:
            return True
        info = numpy.iinfo(dtype or self.dtype)
        if not numpy.isfinite(value):
            return False
        return value == int(value) and int(info.min) <= int(value) <= int(info.max)

    def missing_value(self):
        """Of the variable's type, or of another, as programs write them."""
        rng = self.rng
        of = rng.random()
        if of < 0.4:
            return self.number(self.dtype).astype(self.dtype.newbyteorder("="))
        if self.is_integer:
            return numpy.float64(rng.choice([-999.0, -9999.0, -1.0, 255.0, 0.5, 1e20, 65535.0]))
        return rng.choice([numpy.float64(-999.9), numpy.float64(1e20), numpy.float64(0.1),
                           numpy.int32(-999), numpy.float32(-999.9), numpy.float64("nan"),
                           numpy.float64(1e300)])

    def draw_scale(self):
        rng = self.rng
        for name, values in (
                ("scale_factor", [0.01, 0.1, 2.0, -0.5, 1 / 3, 1e-4, numpy.float32(0.1), 10]),
                ("add_offset", [280.0, -1.5, 0.1, 1e4, numpy.float32(273.15), 3])):
            if rng.random() < 0.4:
                value = rng.choice(values)
                chosen = rng.random()
                if chosen < 0.1 and self.writer != "netCDF-3":
                    value = numpy.array([value])  # one number in an array
                elif chosen < 0.15:
                    value, self.refusal = numpy.array([value, value]), name
                elif chosen < 0.18:
                    value, self.refusal = "0.5", name
                self.attributes[name] = value

    def draw_numbers(self):
        flat = [self.number(self.dtype) for _ in range(math.prod(self.shape))]
        marks = list(self.marks)
        native = self.dtype.newbyteorder("=")
        default = netCDF4.default_fillvals.get(native.str[1:])
        if default is not None and self.dtype.itemsize > 1 and self.rng.random() < 0.4:
            marks.append(native.type(default))
        for mark in marks:
            flat[self.rng.randrange(len(flat))] = mark
            if self.dtype.kind == "f":  # a neighbour is a number
                flat[self.rng.randrange(len(flat))] = numpy.nextafter(native.type(mark),
                                                                      native.type(0))
        return numpy.array(flat, dtype=self.dtype).reshape(self.shape)

    def write(self):
        names = [f"d{i}" for i in range(len(self.shape))]
        if self.writer in ("netCDF4", "netCDF-3"):
            kind = "NETCDF4" if self.writer == "netCDF4" else self.rng.choice(
                ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"])
            with netCDF4.Dataset(self.path, "w", format=kind) as file:
                for name, extent in zip(names, self.shape):
                    file.createDimension(name, extent)
                options = {} if kind != "NETCDF4" else {"zlib": self.rng.random() < 0.4}
                fill = self.fill if self.fill is not None else (None if self.is_filled else False)
                variable = file.createVariable("v", self.dtype, names, fill_value=fill, **options)
                variable.set_auto_maskandscale(False)
                if self.fill is None and self.is_filled and self.dtype.itemsize > 1:
                    self.also_missing.append(netCDF4.default_fillvals[self.dtype.str[1:]])
                variable.setncatts(self.attributes)
                variable[:] = self.numbers
            return
        if self.writer == "h5netcdf":
            data = xarray.DataArray(self.numbers, dims=names, name="v", attrs=self.attributes)
            if self.fill is not None:
                data.attrs["_FillValue"] = self.fill
            # xarray would pack the numbers again where it knew these as its encoding.
            import h5netcdf  # pylint: disable=import-outside-toplevel
            with h5netcdf.File(self.path, "w") as file:
                file.dimensions = dict(zip(names, self.shape))
                variable = file.create_variable("v", names, self.dtype, data=self.numbers)
                for name, value in data.attrs.items():
                    variable.attrs[name] = value
            return
        with h5py.File(self.path, "w") as file:
            data = file.create_dataset("v", data=self.numbers,
                                       chunks=self.rng.random() < 0.5 or None)
            for name, value in self.attributes.items():
                data.attrs[name] = value
            if self.fill is not None:
                data.attrs["_FillValue"] = self.fill

    def by_xarray(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine = "netcdf4" if self.writer == "netCDF4" else "h5netcdf"
            options = {"phony_dims": "access"} if engine == "h5netcdf" else {}
            with xarray.open_dataset(self.path, engine=engine, **options) as data:
                return data["v"].load().to_numpy()

    def only_ours(self):
        """Where the conventions mean missing and xarray reads a number: netCDF's own fill value,
        and a missing_value that has the other sign than _Unsigned says."""
        marks = [numpy.array(mark).astype(self.dtype) for mark in self.also_missing]
        if self.means != self.dtype:
            values = numpy.ravel(self.attributes.get("missing_value", []))
            marks += [numpy.array(v).astype(self.dtype) for v in values if self.fits(v)]
        missing = numpy.zeros(self.shape, dtype=bool)
        for mark in marks:
            missing |= self.numbers == mark
        return missing

    def only_xarray(self, wanted):
        """xarray compares integers of 64 bits as float64, which rounds them."""
        if not self.is_integer or self.bits < 64:
            return numpy.zeros(self.shape, dtype=bool)
        stated = [self.fill] if self.fill is not None else []
        stated += [v for v in numpy.ravel(self.attributes.get("missing_value", [])) if self.fits(v)]
        marks = [numpy.array(mark).astype(self.dtype) for mark in self.also_missing + stated]
        # A missing_value may be stated as what the numbers mean: -1 where _Unsigned is "false".
        marks += [numpy.array(v).astype(self.means).astype(self.dtype)
                  for v in numpy.ravel(self.attributes.get("missing_value", []))
                  if self.fits(v, self.means)]
        is_mark = numpy.isin(self.numbers, numpy.array(marks, dtype=self.dtype))
        # A large integer that is given as a float means all that round to it.
        floats = numpy.ravel(self.attributes.get("missing_value", []))
        if floats.dtype.kind == "f":
            large = floats[numpy.abs(floats) >= 2.0**53]
            is_mark |= numpy.isin(self.numbers.astype(self.means).astype(float), large)
        return numpy.isnan(wanted) & ~is_mark

    def by_hand(self):
        numbers = self.numbers.astype(self.means).astype(float)
        scale, offset = (float(numpy.ravel(self.attributes.get(name, usual))[0])
                         for name, usual in (("scale_factor", 1), ("add_offset", 0)))
        return numbers * scale + offset

    def judge(self, found, asked):
        if self.writer == "netCDF-3":
            named = ("netCDF-3" in found.get("error", "")
                     and "nccopy -k nc4" in found.get("hint", ""))
            return "netCDF-3 refused" if named else "wrong: netCDF-3"
        if asked.get("raw_values"):
            if "error" in found:
                return "wrong: raw values refused"
            wanted = self.numbers.astype(float)
        elif self.refusal is not None:
            named = self.refusal in found.get("error", "") and "--raw-values" in found["hint"]
            return "refused" if named else "wrong: should be refused"
        elif "error" in found:
            with numpy.errstate(all="ignore"):
                is_large = (numpy.abs(self.by_xarray()) > 3.4e38).any()
            named = asked.get("single") and "too large for float32" in found["error"] and is_large
            return "refused" if named else "wrong: refused"
        else:
            wanted = self.by_xarray()
        is_single = (wanted.dtype == numpy.float32 or found["type"] == "float32"
                     or asked.get("single"))
        wanted = wanted.astype(float)
        if not asked.get("raw_values"):
            wanted = numpy.where(self.only_ours(), math.nan, wanted)
            wanted = numpy.where(self.only_xarray(wanted), self.by_hand(), wanted)
        numbers = numpy.array([value_of(x) for x in found["numbers"]]).reshape(found["shape"])
        if numbers.shape != wanted.shape or (numpy.isnan(numbers) != numpy.isnan(wanted)).any():
            return "wrong"
        with numpy.errstate(all="ignore"):
            # A difference is measured against what was added, too.
            added = numpy.ravel(self.attributes.get("add_offset", 0))[0]
            offset = 0 if asked.get("raw_values") else float(added)
            size = numpy.abs(wanted) + abs(offset)
            near = numpy.abs(numbers - wanted) <= (2.0**-22 * size if is_single else 0)
        return "same" if (near | (numbers == wanted) | numpy.isnan(wanted)).all() else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader")
    parser.add_argument("--variables", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qrtool-variables-") as folder:
        variables, questions = [], []
        for i in range(args.variables):
            rng = random.Random(args.seed * 1000003 + i)
            variable = Variable(rng, str(pathlib.Path(folder) / f"v{i}.nc"))
            variable.write()
            variables.append(variable)
            asked = {"file": variable.path + ":/v"}
            if rng.random() < 0.15:
                asked["raw_values"] = True
            elif rng.random() < 0.3:
                asked["single"] = True
            questions.append(asked)
        done = subprocess.run([args.reader], capture_output=True, text=True, check=False,
                              timeout=3000, input="".join(json.dumps(q) + "\n" for q in questions))
        if done.returncode != 0:
            at = len(done.stdout.splitlines())
            sys.exit(f"the reader ends with {done.returncode}: {questions[at]} "
                     f"{variables[at].attributes}")
        counts, bad = collections.Counter(), []
        answers = done.stdout.splitlines()
        for variable, asked, line in zip(variables, questions, answers, strict=True):
            found = json.loads(line)
            verdict = variable.judge(found, asked)
            counts[verdict] += 1
            if verdict.startswith("wrong"):
                bad.append((verdict, variable, asked, found))
        print(f"{args.variables} variables: {dict(counts)}")
        for verdict, variable, asked, found in bad[:10]:
            print(f"\n{verdict}: {asked} {variable.writer} {variable.dtype} fill {variable.fill} "
                  f"{variable.attributes}\nstored {variable.numbers.ravel().tolist()}\n"
                  f"found {found}")
            if "error" not in found and variable.writer != "netCDF-3" and variable.refusal is None:
                print(f"xarray {variable.by_xarray().ravel().tolist()}")
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
