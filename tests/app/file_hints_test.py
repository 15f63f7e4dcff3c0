#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hint about a file of HDF5, netCDF or NumPy leads on: what the hint says is done, and then
the tool reads the numbers that were meant."""
import dataclasses
import importlib.util
import io
import pathlib
import re
import shutil
import subprocess
import sys
import typing
import unittest
import zipfile

import h5py
import numpy
import pandas

from tool import FOLLOWED, FolderTest, hint_of, run

A = numpy.array([[1.0, 2], [3, 4], [5, 7]])
BIG = numpy.array([[1e39, 1], [2, 3]])


@dataclasses.dataclass
class Hint:
    name: str  # the file
    write: typing.Callable  # writes the file of this name
    message: str  # a part of what is refused
    follow: str  # what the hint says: a regular expression
    becomes: str = "{}"  # the input that is read then, where {} is group 1
    part: str = ""  # of the file that is named at first
    code: str = ""  # what is run in Python, where {} is group 1; a is the array that was meant
    shell: bool = False  # group 1 is a command of the shell
    options: str = ""  # of the first run
    then: str = ""  # options of the second, where {} is group 1
    reads: numpy.ndarray = dataclasses.field(default_factory=lambda: A)


def saves(array):
    return lambda name: numpy.save(name, array)


def saves_two(name):
    with open(name, "wb") as file:
        numpy.save(file, A)
        numpy.save(file, A)


def saves_members(name):
    numpy.savez(name, a=A, b=BIG)


def saves_with_bzip2(name):
    array = io.BytesIO()
    numpy.save(array, A)
    with zipfile.ZipFile(name, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.npy", array.getvalue())


def saves_sheet(member):
    def saves(name):
        with zipfile.ZipFile(name, "w") as archive:
            for each in ("other.xml", member):
                archive.writestr(each, "<a/>")
    return saves


def saves_zipped_text(name):
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("t.csv", "".join("%r,%r\n" % tuple(row) for row in A.tolist()))
        archive.writestr("notes.txt", "more")


def saves_damaged_text(name):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", "1,2\n" * 99)
    content = bytearray(pathlib.Path(name).read_bytes())
    content[-57] ^= 1  # of the checksum
    pathlib.Path(name).write_bytes(content)


def saves_datasets(name):
    with h5py.File(name, "w") as file:
        file.create_group("g")["u"] = A
        file["big"] = BIG
        packed = file.create_dataset("packed", data=A.astype("i2"))
        packed.attrs["scale_factor"] = [0.5, 0.25]


def saves_netcdf3(name):
    import netCDF4  # pylint: disable=import-outside-toplevel
    with netCDF4.Dataset(name, "w", format="NETCDF3_CLASSIC") as file:
        for dimension, extent in zip("mn", A.shape):
            file.createDimension(dimension, extent)
        file.createVariable("v", "f8", ("m", "n"))[:] = A


def saves_text(text):
    return lambda name: pathlib.Path(name).write_bytes(text)


BANNER = b"%%%%MatrixMarket matrix array %s\n"
# Modules that are not installed here.
STAND_IN = """
import types
class Tensor:
    def numpy(self):
        return a
torch, safetensors, astropy = (types.SimpleNamespace() for _ in range(3))
safetensors.numpy = types.SimpleNamespace()
astropy.io = types.SimpleNamespace(fits=types.SimpleNamespace())
%s
"""
CODE = r"(numpy\.save\(.*?\)\))"
HINTS = [
    Hint("o.npy", saves(A.astype(object)), "Python objects", CODE, "numbers.npy", code="{}"),
    Hint("s.npy", saves(A.astype(str)), "holds strings", CODE, "numbers.npy", code="{}"),
    Hint("d.npy", saves(A.astype("M8[s]")), "holds dates", CODE, "numbers.npy", code="{}"),
    Hint("v.npy", saves(A.view("V8")), "holds raw bytes", CODE, "numbers.npy", code="{}"),
    Hint("g.npy", saves(A.astype("g")), "long double", CODE, "numbers.npy", code="{}"),
    Hint("one.npy", saves(A[:, 0]), "one dimension", r"(numpy\.save\(.*?1\)\))", "column.npy",
         code="{}", reads=A[:, :1]),
    Hint("one.npy", saves(A[:, 0]), "one dimension", r"or (a\.reshape\(.*?\))", "row.npy",
         code="numpy.save('row.npy', {})", reads=A[:, :1].T),
    Hint("two.npy", saves_two, "bytes after the array", r"store (one array) in each",
         "one.npy", code="numpy.save('one.npy', a)"),
    Hint("big.npy", saves(BIG), "too large for float32", r"use (--precision double)", "big.npy",
         options="--precision single", then="{}", reads=BIG),
    Hint("m.npz", saves_members, "2 members", r"as in (\S+)"),
    Hint("m.npz", saves_members, "no member", r"one of (\w+)", "m.npz:{}", part=":zz"),
    Hint("b.npz", saves_with_bzip2, "compressed with bzip2", r"with (numpy\.savez) or", "again.npz",
         code="{}('again.npz', a=a)"),
    Hint("x.xlsx", saves_sheet("xl/workbook.xml"), "an Excel workbook",
         r"save the sheet as (CSV)", "sheet.csv",
         code="numpy.savetxt('sheet.csv', a, delimiter=',')"),
    Hint("x.ods", saves_sheet("META-INF/manifest.xml"), "a spreadsheet",
         r"save the sheet as (CSV)", "sheet.csv",
         code="numpy.savetxt('sheet.csv', a, delimiter=',')"),
    Hint("x.xls", saves_text(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99)),
         "an Excel workbook", r"save the sheet as (CSV)", "sheet.csv",
         code="numpy.savetxt('sheet.csv', a, delimiter=',')"),
    Hint("x.pt", saves_sheet("x/data.pkl"), "a file of PyTorch", r"(numpy\.savez\(.*\))", "a.npz",
         code=STAND_IN % "torch.load = lambda name: {{'a': Tensor()}}" + "{}"),
    Hint("x.safetensors", saves_text(b"\x40" + bytes(7) + b'{"a":' + bytes(99)),
         "a file of safetensors", r"(numpy\.savez\(.*\))", "a.npz",
         code=STAND_IN % "safetensors.numpy.load_file = lambda name: {{'a': a}}" + "{}"),
    Hint("x.fits", saves_text(b"SIMPLE  =                    T".ljust(2880)), "a FITS file", CODE,
         "a.npy", code=STAND_IN % "astropy.io.fits.getdata = lambda name: a" + "{}"),
    Hint("t.zip", saves_zipped_text, "a zip archive of text", r"(unzip -p \S+ \S+ > (\S+))",
         "t.csv",
         code="import zipfile; zipfile.ZipFile('t.zip').extract('t.csv')"),
    Hint("d.zip", saves_damaged_text, "the zip archive is damaged", r"(download) the file again",
         "d.zip", code="import io, zipfile; f = io.StringIO(); numpy.savetxt(f, a, delimiter=','); "
         "z = zipfile.ZipFile('d.zip', 'w', 8); z.writestr('t.csv', f.getvalue()); z.close()"),
    Hint("h.h5", saves_datasets, "3 datasets", r"as in (\S+)", reads=BIG),
    Hint("h.h5", saves_datasets, "is a group", r"as in (\S+)", part=":/g"),
    Hint("h.h5", saves_datasets, "no dataset", r"one of \S+, (\S+),", "h.h5:{}", part=":/zz"),
    Hint("h.h5", saves_datasets, "cannot read", r"with a slash: (\S+)", part=":g/u"),
    Hint("h.h5", saves_datasets, "scale_factor is not one number", r"(--raw-values) takes",
         "h.h5:/packed", part=":/packed", then="{}"),
    Hint("h.h5", saves_datasets, "too large for float32", r"use (--precision double)", "h.h5:/big",
         part=":/big", options="--precision single", then="{}", reads=BIG),
    Hint("n.nc", saves_netcdf3, "netCDF-3", r"(nccopy -k nc4 \S+ (\S+))", "", shell=True),
    Hint("p.h5", saves_text(b"PAR1\x15" + bytes(99)), "a Parquet file", CODE, "a.npy", code="{}"),
    Hint("b.dat", saves_text(bytes(range(1, 99))), "not an HDF5 file", r"write .* as HDF5, (\.npy)",
         "b{}", code="numpy.save('b{}', a)"),
    Hint("r.mtx", saves_text(BANNER % b"real hermitian" + b"2 2\n1\n2\n4\n"), "hermitian",
         r"write (symmetric) in place of hermitian", "r.mtx",
         code="import pathlib as p; f = p.Path('r.mtx'); "
         "f.write_text(f.read_text().replace('hermitian', '{}'))",
         reads=numpy.array([[1.0, 2], [2, 4]])),
    Hint("o.mtx", saves_text(b"%MatrixMarket matrix array real general\n3 2\n1\n3\n5\n2\n4\n7\n"),
         "begins with two signs", r"write (%%MatrixMarket)", "o.mtx",
         code="import pathlib as p; f = p.Path('o.mtx'); "
         "f.write_text(f.read_text().replace('%MatrixMarket', '{}'))"),
    Hint("p.mtx", saves_text(BANNER % b"pattern general" + b"1 1\n"), "no numbers",
         r"the field (real)", "p.mtx",
         code="import pathlib as p; f = p.Path('p.mtx'); "
         "f.write_text(f.read_text().replace('pattern', '{}') + '5\\n')",
         reads=numpy.array([[5.0]])),
    Hint("t.dat", saves_text(b"1,2\n3,4\n5,7\n"), "looks like text", r"end in (\.csv)", "t{}",
         code="import os; os.rename('t.dat', 't{}')"),
]


class FileHints(FolderTest):
    def follow(self, hint):
        if hint.shell and not (shutil.which("nccopy") and importlib.util.find_spec("netCDF4")):
            self.skipTest("nccopy or netCDF4 is not there")
        hint.write(hint.name)
        refused = run("factor", hint.name + hint.part, "-", "--mode", "r", *hint.options.split(),
                      status=3)
        self.assertIn(hint.message, refused.stderr)
        said = hint_of(refused.stderr)
        found = re.search(hint.follow, said)
        self.assertIsNotNone(found, said)
        group = found.group(1)
        if hint.shell:
            subprocess.run(group, shell=True, check=True)
        known = {"numpy": numpy, "a": self.meant(hint), "frame": pandas.DataFrame(A)}
        exec(hint.code.format(group), known)  # pylint: disable=exec-used
        name = hint.becomes.format(group) or found.group(2)
        done = run("factor", name, "-", "--mode", "r", *hint.then.format(group).split())
        r = numpy.loadtxt(io.StringIO(done.stdout), delimiter=",", ndmin=2)
        numpy.testing.assert_allclose(r.T @ r, hint.reads.T @ hint.reads, rtol=1e-6, atol=1e-12)
        FOLLOWED.add(said)

    def meant(self, hint):
        """The array that the program holds that wrote the file."""
        if hint.message == "holds raw bytes" or not hint.name.endswith(".npy"):
            return A
        return numpy.load(hint.name, allow_pickle=True)

    def test_every_hint_leads_on(self):
        for hint in HINTS:
            with self.subTest(message=hint.message):
                self.follow(hint)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
