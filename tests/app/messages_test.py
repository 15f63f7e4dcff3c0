#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of people who know other programs: the message says what is wrong, and the hint what to
do."""
import dataclasses
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import h5py
import netCDF4
import numpy

from tool import FOLLOWED, QRTOOL, FolderTest, hint_of

TABLE = b"a,b,y\n1,2.5,3\n2,3,5\n3,5,1\n4,1,2\n"
A, B = numpy.vander([1.5, 2, 3, 5, 8, 9], 3), numpy.arange(6.0)


def npy(array):
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    numpy.savez(file, **arrays)
    return file.getvalue()


OCTAVE = (b"# Created by Octave 6.4.0, Mon Jan 03 10:00:00 2022 UTC <user@host>\n"
          b"# name: a\n# type: scalar\n1\n\n\n# name: b\n# type: scalar\n2\n\n\n"
          b"# name: r\n# type: range\n# base, limit, increment\n1 5 1\n")


def hdf5(*names, array=A):
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        for name in names:
            h5[name] = array
    return file.getvalue()


def vectors():
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        h5["t"], h5["u"], h5["short"], h5["plane"] = B, (B - 2) ** 2, B[:5], A
    return file.getvalue()


VECTORS = vectors()


def times(**attributes):
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        h5["t"] = B
        h5["t"].attrs.update(attributes)
    return file.getvalue()


def sparse():
    """A sparse matrix as MATLAB saves it by -v7.3."""
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        group = h5.create_group("S")
        group.attrs["MATLAB_sparse"] = numpy.uint64(3)
        group["data"], group["ir"], group["jc"] = B[:2], [0, 2], [0, 1, 2]
    return file.getvalue()


SPARSE = sparse()


@dataclasses.dataclass
class Mistake:
    """A command that is refused: what is said, and the hint. `follow` turns the command into the
    one that the hint means, and this one succeeds. `prepare`: a command before it."""
    command: str
    code: int
    message: str
    hint: str
    file: str = "x.csv"
    content: bytes = TABLE
    follow: tuple = ()  # (pattern, replacement) of the command
    prepare: str = ""


MISTAKES = [
    Mistake("devices a.npy", 2, "'a.npy' is for --build", "add --build, or leave the file away",
            follow=(" a.npy", "")),
    Mistake("devices --build --timings", 2, "--build contradicts --timings", "give one of them",
            follow=("--build ", "")),
    Mistake("devices --build a.npy --shape 4x3", 2, "--shape and a file contradict",
            "give one of them"),
    Mistake("devices --build -", 2, "--build reads the shapes of a file", "name a file"),
    Mistake("factor a.npy - --into r", 2, "standard input has no name", "name files",
            follow=(" - ", " x.csv ")),
    Mistake("factor x.h5 a.npy --into r --dataset /A", 2, "--dataset is for one IN", "name each as",
            "x.h5", hdf5("A", "B"), follow=(r"x\.h5(.*) --dataset /A", r"x.h5:/A\1")),
    Mistake("factor a.npy --into r --report r.csv", 2, "--report is one file", "leave it away",
            follow=(" --report r.csv", "")),
    Mistake("factor a.npy r.npy --skip-existing", 2, "is for several inputs",
            "give --into DIR in place of OUT", follow=("r.npy", "--into r")),
    Mistake("solve a.npy b.npy r.npy --shard 1/2", 2, "is for several inputs",
            "give --into DIR in place of OUT", follow=("r.npy", "--into r")),
    Mistake("factor a.npy --into r --skip-existing -f", 2, "contradict each other",
            "leave one of them away", follow=(" -f", "")),
    Mistake("factor a.npy --into r --shard 2", 2, "is not I/N", "has --shard 2/8",
            follow=("--shard 2", "--shard 2/8")),
    Mistake("factor x.h5 o.h5 --dataset x*", 3, "no matrix has a name like",
            "qrtool info x.h5 lists all of them", "x.h5", hdf5("A", "B"),
            follow=("--dataset x[*]", "--dataset A")),
    Mistake("factor x.csv o.h5 --dataset *", 3, "holds no datasets", "leave --dataset away",
            follow=(" --dataset [*]", "")),
    Mistake("solve a.npy --into r", 2, "solve: B is missing", "qrtool solve A B1 B2 --into DIR",
            follow=("a.npy", "a.npy b.npy")),
    Mistake("factor a.npy ./a.npy --into r", 2, "would be the output of 'a.npy' and of './a.npy'",
            "give them in two runs", follow=(r"\./a.npy", "")),
    Mistake("factor a.npy --into .", 2, "is the input 'a.npy'", "name another folder",
            follow=(r"--into \.", "--into r")),
    Mistake("factor a.npy --into x.csv", 5, "files cannot be written there",
            "or a new one", follow=("--into x.csv", "--into r")),
    Mistake("factor a.npy --into r --log r/a.R.npy", 2, "would be an output of the run, too",
            "give the log a name of its own", follow=("r/a.R.npy", "l.log")),
    Mistake("factor a.npy --into r --mode r --format npy", 2, "--format is for OUT -",
            "the ending of OUT says its format", follow=(" --format npy", "")),
    Mistake("factor x.mat o.h5", 3, "MAT-file of version 5 to 7", "in Octave by save -hdf5",
            "x.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + b" " * 90),
    Mistake("factor x.parquet o.h5", 3, "a Parquet file", "numpy.save('a.npy', frame.to_numpy",
            "x.parquet", b"PAR1\x15\x04\x15\x10" * 8),
    Mistake("factor x.feather o.h5", 3, "an Arrow or Feather file",
            "numpy.save('a.npy', frame.to_numpy",
            "x.feather", b"ARROW1\0\0\xff\xff\xff\xff\x78\x01" * 4),
    Mistake("factor x.pkl o.h5", 3, "a pickle of Python", "numpy.save('a.npy', array)", "x.pkl",
            b"\x80\x04\x95\x10\0\0\0\0\0\0\0" * 4),
    Mistake("solve x.tab o.csv --response y", 3, "--response is for tables in CSV",
            "let the name end in .csv, .tsv or .txt", "x.tab", follow=(r"x\.tab", "x.csv")),
    Mistake("solve a.npy o.csv --response y", 3, "--response is for tables in CSV",
            "for other files give A and B", follow=("o.csv --response y", "b.npy o.csv")),
    Mistake("factor x.mat o.h5", 3, "is a part of /S, a sparse matrix of MATLAB",
            "in MATLAB: S = full(S), and save it again by save -v7.3", "x.mat", SPARSE),
    Mistake("bench --shape 64", 2, "'64' is not a shape; allowed is MxN", ""),
    Mistake("generate --shape 64 o.h5", 2, "'64' is not a shape; allowed are MxN and BxMxN", ""),
    Mistake("solve x.csv o.csv --response y --predict", 2, "there is no option '--predict'",
            "with the new rows as A", follow=(" --predict", "")),
    Mistake("solve x.csv o.csv --response y --formula y~a", 2, "there is no option '--formula'",
            "--columns the columns that are read", follow=("--formula y~a", "--columns a,y")),
    Mistake("factor x.csv o.h5 --foo", 2, "unknown option '--foo'", "qrtool factor --help lists",
            follow=(".+", "factor --help")),
    Mistake("solve x.csv o.csv --response y --dummies", 2, "there is no option '--dummies'",
            "a column of 0 and 1 for each category", follow=(" --dummies", "")),
    Mistake("solve x.csv o.csv --response y --group a", 2, "there is no option '--group'",
            "--by COLUMN is one regression for each group", follow=("--group", "--by")),
    Mistake("solve x.csv o.csv --by a", 2, "--by is for a table, with --response",
            "qrtool solve TABLE OUT.csv --response LIST --by",
            follow=("--by", "--response y --by")),
    Mistake("solve x.csv o.csv --response y --by y", 3, "--response: y holds the keys",
            "a column of --by is text; name another", follow=("--by y", "--by a")),
    Mistake("solve x.csv o.csv --response y --by a --weights q", 3, "no column q of weights",
            "--weights names a column of the table",
            "x.csv", b"a,b,c,y\n1,2,1,3\n1,3,2,5\n3,5,1,1\n",
            follow=("--weights q", "--weights c")),
    Mistake("solve x.csv o.csv --response y --by g", 3, "would have the name rank",
            "give the column rank of the table another name, or leave it out",
            "x.csv", b"g,rank,b,y\n1,2,1,3\n1,3,2,5\n3,5,1,1\n", follow=("$", " --columns b,y")),
    Mistake("solve x.csv o.csv --response y --groups b.npy", 2, "--groups is for A and B in files",
            "--by COLUMN is one regression for each group", follow=("--groups b.npy", "--by a")),
    Mistake("solve x.h5:/A b.npy o.csv --groups b.npy", 3, "divides the rows of one A",
            "name one matrix, as in 'x.h5:/A[0]'", "x.h5",
            hdf5("A", array=numpy.stack([A, A])), follow=("/A", "/A[0]")),
    Mistake("solve a.npy b.npy o.csv --groups a.npy", 3, "18 groups do not fit the 6 rows of A",
            "give one number for each row of A", follow=("--groups a.npy", "--groups b.npy")),
    Mistake("solve x.csv o.h5 --response y --by a", 2, "as text, which 'o.h5' is not",
            "let the name end in .csv, .tsv or .txt, or give - for", follow=("o.h5", "o.csv")),
    Mistake("solve x.csv:[0:3] o.csv --response y --by a", 2, "reads a whole table, not a part",
            "name the file alone", follow=(r"\S+0:3.", "x.csv")),
    Mistake("solve x.csv o.csv --response y --p-values", 2, "there is no option '--p-values'",
            "with --response and OUT.csv, t and p stand beside each", follow=(" --p-values", "")),
    Mistake("solve - - o.csv", 2, "cannot be standard input together", "name files",
            follow=("- -", "a.npy b.npy")),
    Mistake("factor x.csv o.h5.gz", 2, ".gz files cannot be written", "write o.h5",
            follow=(r"o\.h5\.gz", "o.h5")),
    Mistake("factor x.csv o.csv.gz", 2, ".gz files cannot be written", "write o.csv",
            follow=(r"o\.csv\.gz", "o.csv")),
    Mistake("factor x.csv o.pkl", 2, ".pkl files cannot be written", "write o.h5 ",
            follow=(r"o\.pkl", "o.h5")),
    Mistake("factor x.csv none/", 5, "there is no such directory", "name a file in a directory",
            follow=("none/", "o.h5")),
    Mistake("factor x.csv there.h5 --device H200x", 4, "H200x", "devices", follow=(
        "there.h5 --device H200x", "o.h5")),
    Mistake("solve x.csv there.h5 --response y --device H200x", 4, "H200x", "devices", follow=(
        "there.h5 (.*) --device H200x", r"o.csv \1")),
]

# First steps with vectors, weights, groups and what is written beside x.
MISTAKES += [
    Mistake("solve t.h5 b.npy o.h5 --polynomial t:2", 3, "t is a vector of the file",
            "qrtool solve t.h5 B OUT --a t --polynomial t:2 makes A of vectors", "t.h5", VECTORS,
            follow=("--poly", "--a t --poly")),
    Mistake("solve t.h5 b.npy o.h5 --a t --polynomial t^2", 2, "t^2 is not COLUMN:DEGREE",
            "for t and its square give t:2", "t.h5", VECTORS, follow=(r"t\^2", "t:2")),
    Mistake("solve t.h5 b.npy o.h5 --a t --polynomial :2", 2, ":2 is not COLUMN:DEGREE",
            "for t and its square give t:2", "t.h5", VECTORS, follow=(" :2", " t:2")),
    Mistake("solve t.h5:/t b.npy o.h5", 3, "has rank 1 (6)", "as the columns of A by --a NAME",
            "t.h5", VECTORS, follow=("(.*):/t (.*)", r"\1 \2 --a t")),
    Mistake("solve t.h5 u o.h5 --a t", 3, "there is no such file, but t.h5 has such a dataset",
            "name both: t.h5:/u", "t.h5", VECTORS, follow=(" u ", " t.h5:/u ")),
    Mistake("solve t.h5 b.npy o.h5 --a t --weights u", 3, "but t.h5 has such a dataset",
            "name both: t.h5:/u", "t.h5", VECTORS, follow=("u$", "t.h5:/u")),
    Mistake("solve t.h5:/plane b.npy o.csv --groups t", 3, "but t.h5 has such a dataset",
            "name both: t.h5:/t", "t.h5", VECTORS, follow=("t$", "t.h5:/t")),
    Mistake("solve t.npz u o.h5 --a t", 3, "but t.npz has such a dataset", "name both: t.npz:u",
            "t.npz", npz(t=B, u=B), follow=(" u ", " t.npz:u ")),
    Mistake("solve a.npy b.npy o.npy --a x", 2, "--a names datasets of a file, and this has none",
            "leave --a away: all of its columns", follow=(" --a x", "")),
    Mistake("solve a.npy b.npy o.npy --residuals r.npy", 2, "unexpected argument 'r.npy'",
            "--residuals takes no value; leave the last word away", follow=(" r.npy", "")),
    Mistake("solve a.npy b.npy o.npy --hat", 2, "there is no option '--hat'",
            "--leverage writes the diagonal of the hat matrix", follow=("--hat", "--leverage")),
    Mistake("solve a.npy b.npy o.csv --by b.npy", 2, "--by is for a table, with --response",
            "A and B in other files have --groups FILE:/path", follow=("--by", "--groups")),
    Mistake("solve x.csv o.csv --response y --by 9", 3, "--by 9: there are 3 columns",
            "the columns are a, b, y", follow=("9", "a")),
    Mistake("solve x.csv o.csv --response y --by a,1", 2, "'1' names column 1 a second time",
            "name it once", follow=("a,1", "a")),
]

# Options that contradict each other, and values that they do not take.
MISTAKES += [
    Mistake("solve a.npy b.npy o.csv --response y", 2, "--response LIST and a file B contradict",
            "solve TABLE OUT --response LIST", follow=("a.npy b.npy", "x.csv")),
    Mistake("solve a.npy b.npy", 2, "OUT is missing", "solve A B OUT", follow=("$", " o.h5")),
    Mistake("solve x.csv o.csv --response y --basic --least-norm", 2, "contradict each other",
            "leave one of them away", follow=(" --basic", "")),
    Mistake("solve x.csv o.csv --response y --covariance --no-se", 2, "contradict each other",
            "leave one of them away", follow=(" --no-se", "")),
    Mistake("solve x.csv o.csv --response y --covariance --ridge 1", 2, "whose x is biased",
            "leave one of them away", follow=(" --ridge 1", "")),
    Mistake("solve x.csv - --response y --residuals", 2, "standard output takes x alone",
            "name a file", follow=(" - ", " o.csv ")),
    Mistake("factor a.npy - --mode r --leverage", 2, "standard output takes R alone",
            "name a file", follow=(" - ", " o.h5 ")),
    Mistake("solve x.csv - --response y --leverage", 2, "standard output takes x alone",
            "name a file", follow=(" - ", " o.csv ")),
    Mistake("solve x.csv - --response y --fitted", 2, "standard output takes x alone",
            "name a file", follow=(" - ", " o.csv ")),
    Mistake("solve x.csv - --response y --covariance", 2, "standard output takes x alone",
            "name a file", follow=(" - ", " o.csv ")),
    Mistake("solve x.csv o.csv --response y --confidence 95", 2, "is no probability",
            "for 95 % give 0.95", follow=("95", "0.95")),
    Mistake("solve x.csv o.csv --response y --confidence 0.9 --no-se", 2, "needs standard errors",
            "leave one of them away", follow=(" --no-se", "")),
    Mistake("solve a.npy b.npy o.h5 --confidence 0.9", 2, "for the coefficients of a table",
            "leave it away", follow=(" --confidence 0.9", "")),
    Mistake("verify x.csv b.npy s.csv --response y", 2, "--response LIST and a file B contradict",
            "qrtool verify TABLE X --response LIST", prepare="solve x.csv s.csv --response y",
            follow=("b.npy ", "")),
    Mistake("devices --timings --forget", 2, "--timings shows what --forget removes",
            "give one of them", follow=(" --forget", "")),
    Mistake("solve x.csv o.csv --response y --rank-tolerance 2", 2, "takes every column",
            "such as 1e-10", follow=(" 2", " 1e-10")),
    Mistake("solve x.csv o.csv --response y --format npy", 2, "--format is for OUT -",
            "the ending of OUT says its format", follow=("o.csv (.*) --format npy", r"o.npy \1")),
    Mistake("solve x.csv o.csv --response y --columns a,,y", 2, "'a,,y' has an empty item",
            "--columns 2-5,8", follow=(",,", ",")),
    Mistake("factor x.csv o.h5 --mode raw --pivot", 2, "--pivot contradicts --mode raw",
            "use --mode reduced", follow=("raw", "reduced")),
    Mistake("factor x.csv o.h5 --pivot --mode r --sign lapack", 2, "has no Q", "leave --sign away",
            follow=(" --sign lapack", "")),
    Mistake("factor x.csv o.h5 --pivot --mode r --sign lapack", 2, "has no Q", "--mode reduced",
            follow=("mode r", "mode reduced")),
    Mistake("factor x.csv o.h5 --variant cpu/tall", 2, "does not take",
            "leave --variant away", follow=(" --variant cpu/tall", "")),
    Mistake("factor x.csv -", 2, "R alone, on standard output", "give --mode r",
            follow=("$", " --mode r")),
    Mistake("factor x.csv - --mode r --pivot", 2, "standard output takes R alone", "name a file",
            follow=(" - ", " o.csv ")),
    Mistake("factor x.csv o.h5 --mode raw --sign positive", 2, "which has LAPACK's signs",
            "leave --sign away", follow=(" --sign positive", "")),
    Mistake("factor x.csv o.h5 --precision mixed --arithmetic strict", 2, "contradicts",
            "leave one of them away", follow=(" --arithmetic strict", "")),
    Mistake("factor x.csv o.h5 --variant batched", 2, "'batched' is not BACKEND/NAME",
            "qrtool devices lists the variants", follow=("batched", "cpu/batched")),
    Mistake("factor x.csv o.h5 --variant cpu/bached", 2, "did you mean 'cpu/batched'?",
            "variants: cpu/batched", follow=("bached", "batched")),
    Mistake("factor x.csv o.h5 --backend opencl --variant cpu/batched", 2, "contradicts --variant",
            "leave --backend away", follow=(" --backend opencl", "")),
    Mistake("factor x.csv o.h5 --log o.h5", 2, "would be an output of the run", "a name of its own",
            follow=("log o.h5", "log o.log")),
    Mistake("factor x.csv o.h5 --log x.csv", 2, "exists and is no log", "name another file",
            follow=("log x.csv", "log o.log")),
    Mistake("factor x.csv o.csv --report o.R.csv", 2, "would be a file of the factors",
            "a name of its own", follow=("o.R.csv", "r.csv")),
    Mistake("factor x.csv o.h5 --scratch none", 5, "no file can be created there",
            "a directory that exists", follow=("none", ".")),
    Mistake("info q.h5 --plot o.jpg", 2, "neither in .svg nor in .png", "--plot picture.svg",
            prepare="factor a.npy q.h5", follow=("o.jpg", "picture.svg")),
    Mistake("factr x.csv o.h5", 2, "did you mean 'factor'?", "the commands are factor, solve",
            follow=("factr", "factor")),
    Mistake("x.csv o.h5", 2, "a command is missing before 'x.csv'", "qrtool factor x.csv o.h5,",
            follow=("^", "factor ")),
    Mistake("generate o.h5", 2, "--shape is missing", "--shape 1000x64x32",
            follow=("$", " --shape 2x5x3")),
    Mistake("generate o.h5 --shape 4x3 --kind hilbert --cond 10", 2, "--cond changes nothing",
            "it is for the kinds", follow=("hilbert", "cond")),
]

# What is in a file, and which part of it is meant.
MISTAKES += [
    Mistake("factor x.csv there.h5", 5, "'there.h5' exists", "use --force",
            follow=("$", " --force")),
    Mistake("factor x.csv o.zarr", 2, ".zarr files cannot be written", "write o.h5",
            follow=("zarr", "h5")),
    Mistake("factor a.npy o.h5:/Q", 2, "its datasets have fixed names", "write o.h5",
            follow=(":/Q", "")),
    Mistake("factor batch.npy o.mtx", 2, "a Matrix Market file holds one matrix, not 2",
            "let the name end in .h5", "batch.npy", npy(numpy.stack([A, A + 1])),
            follow=("mtx", "h5")),
    Mistake("factor x.npz o.h5", 3, "2 members with matrices", "choose one, as in x.npz:left",
            "x.npz", npz(left=A, right=A), follow=("x.npz", "x.npz:left")),
    Mistake("factor x.npz:lft o.h5", 3, "there is no member lft", "choose one of left, right",
            "x.npz", npz(left=A, right=A), follow=("lft", "left")),
    Mistake("factor x.txt o.h5", 3, "2 variables of numbers", "choose one, as in x.txt:/a",
            "x.txt", OCTAVE, follow=("x.txt", "x.txt:/a")),
    Mistake("factor x.txt:/r o.h5", 3, "/r is a range", "in Octave: r = full(r), and save it again",
            "x.txt", OCTAVE),
    Mistake("factor x.h5 o.h5", 3, "2 datasets of matrices", "choose one, as in x.h5:/g/left",
            "x.h5", hdf5("g/left", "right"), follow=("x.h5", "x.h5:/g/left")),
    Mistake("factor x.h5:/g o.h5", 3, "/g is a group", "choose one, as in x.h5:/g/left", "x.h5",
            hdf5("g/left", "right"), follow=("x.h5:/g", "x.h5:/g/left")),
    Mistake("factor x.h5:/lft o.h5", 3, "did you mean /left?", "", "x.h5", hdf5("left"),
            follow=("lft", "left")),
    Mistake("factor x.h5 o.csv --dataset left --dataset right", 2, "only an HDF5 file holds",
            "let the name of OUT end in .h5", "x.h5", hdf5("left", "right"),
            follow=("o.csv", "o.h5")),
    Mistake("factor x.h5 o.h5 --dataset left --dataset right --report r.json", 2,
            "--report is for one", "leave it away", "x.h5", hdf5("left", "right"),
            follow=(" --report r.json", "")),
    Mistake("verify x.h5 q.h5 --dataset lft", 3, "holds no factors of lft",
            "it holds those of /left, /right", "x.h5", hdf5("left", "right"),
            prepare="factor x.h5 q.h5 --dataset left --dataset right", follow=("lft", "left")),
    Mistake("verify x.h5 q.h5 --report r.json", 2, "for the factors of one dataset",
            "name one with --dataset", "x.h5", hdf5("left", "right"),
            prepare="factor x.h5 q.h5 --dataset left --dataset right",
            follow=("$", " --dataset left")),
    Mistake("verify x.h5 q.h5 --dataset left --dataset right", 2, "the factors of one dataset",
            "give one --dataset, or none", "x.h5", hdf5("left", "right"),
            prepare="factor x.h5:/left q.h5", follow=(" --dataset right", "")),
    Mistake("verify x.h5 x.h5:/b s.h5 --dataset left", 2, "--dataset is for the factors",
            "name A and B as FILE:/path", "x.h5", hdf5("left", "b"),
            prepare="solve x.h5:/left x.h5:/b s.h5",
            follow=("x.h5 (.*) --dataset left", r"x.h5:/left \1")),
    Mistake("solve a.npy:[0:1] b.npy:[0] o.h5", 3, "the indices leave a single number",
            "0:1 keeps a dimension", follow=(r"\[0\]", "[0:1]")),
    Mistake("factor a.npy:[0] o.h5", 3, "the index 0 takes dimension 0", "0:1 keeps it",
            follow=(r"\[0\]", "[0:1]")),
    Mistake("factor x.csv o.h5 --dataset a", 2, "has no datasets to choose from",
            "a part of it is for example 'x.csv:[0:100]'",
            follow=("x.csv (.*) --dataset a", r"x.csv:[0:100] \1")),
    Mistake("factor a.npy o.h5 --raw-values", 2, "is for HDF5 and netCDF",
            "leave --raw-values away", follow=(" --raw-values", "")),
    Mistake("factor huge.npy o.h5 --precision single", 3, "too large for float32",
            "use --precision double", "huge.npy", npy(A * 1e300), follow=("single", "double")),
    Mistake("factor x.dat o.h5", 3, "it looks like text", "let the name end in .csv", "x.dat",
            follow=("x.dat", "x.csv")),
    Mistake("factor h.csv o.h5", 3, "an HDF5 file, although its name says text",
            "rename it to end in .h5", "h.csv", hdf5("left")),
    Mistake("solve a.npy five.npy o.h5", 3, "A is 6x3, B is 5", "B needs a dimension of 6",
            "five.npy", npy(B[:5]), follow=("five", "b")),
    Mistake("solve a.npy five.npy o.h5 --rows last", 3, "the shapes do not fit",
            "leave --rows away", "five.npy", npy(numpy.stack([B, B + 1], 1)),
            follow=(" --rows last", "")),
    Mistake("solve square.npy square.npy o.h5", 2, "in 2 ways",
            "say which is meant: --rows matrix or --rows last", "square.npy", npy(A[:3]),
            follow=("$", " --rows matrix")),
    Mistake("solve x.h5 b.npy o.h5", 3, "the shapes do not fit",
            "--order column would read A as 6x3", "x.h5", hdf5("a", array=A.T),
            follow=("$", " --order column")),
    Mistake("solve a.npy b.npy o.h5 --device all", 2, "solve uses one device",
            "name one; see qrtool devices", follow=(" --device all", "")),
    Mistake("solve a.npy two.npy o.h5 --weights a.npy", 3, "weights of shape 6x3 do not fit",
            "or as many as B in its shape", "two.npy", npy(numpy.stack([B, B + 1], 1)),
            follow=("weights a", "weights two")),
    Mistake("solve a.npy b.npy o.h5 --weights five.npy", 3, "weights of shape 5 do not fit",
            "give 6 numbers", "five.npy", npy(B[:5]), follow=("five", "b")),
    Mistake("solve a.npy b.npy o.h5 --weights w.npy", 3, "weight 0 is -1", "a weight of 0 leaves",
            "w.npy", npy(B - 1), follow=("w.npy", "b.npy")),
    Mistake("solve a.npy two.npy o.h5 --leverage --weights two.npy", 2, "weights of its own for",
            "or one right side for each A", "two.npy", npy(numpy.stack([B, B + 1], 1)),
            follow=("two", "b")),
    Mistake("solve a.npy two.npy o.h5 --leverage --missing skip", 2, "each leaves out rows of its",
            "leave --missing skip away", "two.npy", npy(numpy.stack([B, B + 1], 1)),
            follow=(" --missing skip", "")),
    Mistake("solve v.h5 b.npy o.h5 --a t,short", 3, "t has 6 numbers, and short has 5",
            "one number for each row", "v.h5", VECTORS, follow=("short", "u")),
    Mistake("solve v.h5 b.npy o.h5 --a t,plane", 3, "plane is 6x3",
            "a matrix is named alone: qrtool solve v.h5:/plane B OUT", "v.h5", VECTORS,
            follow=(r"v.h5 (.*) --a t,plane", r"v.h5:/plane \1")),
    Mistake("solve v.h5 b.npy o.h5 --a t --polynomial s:2", 3, "A has no column s",
            "its columns are t", "v.h5", VECTORS, follow=("s:2", "t:2")),
    Mistake("solve v.h5 b.npy o.h5 --a t --polynomial t", 2, "t is not COLUMN:DEGREE",
            "give t:2", "v.h5", VECTORS, follow=("$", ":2")),
    Mistake("solve a.npy b.npy o.h5 --polynomial 4:2", 3, "A has no column 4",
            "the numbers 1 to 3", follow=("4:2", "3:2")),
    Mistake("solve x.csv o.csv --response y --a a,y", 3, "that is the response or the weights",
            "name the other columns", follow=("a,y", "a,b")),
    Mistake("solve x.csv four.npy o.h5 --a a", 2, "--a names columns of a table with --response",
            "--columns a chooses", "four.npy", npy(B[:4]), follow=("--a", "--columns")),
    Mistake("solve x.csv o.csv --response y --weights v", 3, "neither a column nor a file v",
            "its columns are a, b, y", follow=(" v", " b")),
    Mistake("solve x.csv o.csv --response y --weights y", 3, "both response and weights",
            "name two columns", follow=("weights y", "weights b")),
    Mistake("info x.csv --plot o.svg", 3, "there are none with a bar",
            "name the file that qrtool factor", prepare="factor a.npy q.h5",
            follow=("x.csv", "q.h5")),
    Mistake("verify a.npy q.Q.npy", 3, "there is no such file", "name all of them together: q.npy",
            prepare="factor a.npy q.npy", follow=(r"q\.Q", "q")),
    Mistake("verify a.npy q.npy", 3, "there is no such file", "q.npy stands for the files q.Q.npy",
            prepare="factor a.npy p.npy", follow=("q.npy", "p.npy")),
    Mistake("verify a.npy b.npy s.h5", 2, "from a table with the response y",
            "qrtool verify TABLE s.h5 --response y", prepare="solve x.csv s.h5 --response y",
            follow=(".+", "verify x.csv s.h5 --response y")),
    Mistake("verify s.h5 a.npy b.npy", 3, "", "the solutions come last: qrtool verify A B s.h5",
            prepare="solve a.npy b.npy s.h5", follow=(".+", "verify a.npy b.npy s.h5")),
    Mistake("verify a.npy b.npy s.h5 --report r.json", 2, "--report is for factors",
            "--json and --all list", prepare="solve a.npy b.npy s.h5",
            follow=("--report r.json", "--json --all")),
    Mistake("verify a.npy b.npy s.h5 --criteria m-eps", 2, "--criteria is for factors",
            "one bar for solutions", prepare="solve a.npy b.npy s.h5",
            follow=(" --criteria m-eps", "")),
    # A name without an ending is one of HDF5, which is no set of files.
    Mistake("verify a.npy out", 3, "cannot read 'out': No such file or directory", ""),
    Mistake("verify q.h5 a.npy", 3, "", "the matrices come first, then the factors",
            prepare="factor a.npy q.h5", follow=("q.h5 a.npy", "a.npy q.h5")),
    Mistake("verify a.npy s.h5", 2, "compared with A and b", "qrtool verify A B s.h5",
            prepare="solve a.npy b.npy s.h5", follow=("a.npy", "a.npy b.npy")),
    Mistake("verify a.npy b.npy s.h5", 2, "was made with the weights b.npy", "with --weights",
            prepare="solve a.npy b.npy s.h5 --weights b.npy", follow=("$", " --weights b.npy")),
]

# Of complex matrices.
MISTAKES += [
    Mistake("factor c.npy o.h5 --precision mixed", 2,
            "is complex128, and --precision mixed is for real matrices",
            "leave --precision mixed away", "c.npy", npy(1j * A),
            follow=(" --precision mixed", "")),
    Mistake("factor c.npy o.h5 --backend opencl", 4,
            "opencl/complex: takes at most 512 columns of A and Q",
            "--backend cpu takes every shape", "c.npy", npy(1j * numpy.ones((2, 513))),
            follow=("opencl", "cpu")),
    Mistake("solve a.npy b.npy o.h5 --weights c.npy", 3,
            "c.npy: is complex128; only real numbers are taken here",
            "complex numbers are for factor, verify and info, and for A and B of solve", "c.npy",
            npy(1j * A[:, 0]), follow=(" --weights.*", "")),
    Mistake("solve c.csv o.csv --by a --response y", 3, "holds complex numbers",
            "and for A and B of solve, each a file or a dataset of its own", "c.csv",
            b"a,b,y\n1,1+2j,2\n1,2+1j,3\n", follow=(r"solve c.csv (\S+) .*", r"factor c.csv \1")),
    Mistake("solve c.npy b.npy o.csv --groups b.npy", 2,
            "c.npy: A or b is complex, and --groups is for real systems",
            "leave --groups away", "c.npy", npy(1j * A), follow=(" --groups b.npy", "")),
    Mistake("factor c.csv o.h5", 3, "is a complex number, and the first rows are real ones",
            "write a number of the first row as a complex one", "c.csv",
            b"1\n2\n3\n4\n" * 6 + b"1+2j\n"),
    Mistake("verify c.npy q.npz", 3, "A is complex128, and Q is float64",
            "with numbers of one kind, real or complex", "c.npy", npy(1j * A),
            prepare="factor a.npy q.npz", follow=("c.npy", "a.npy")),
    Mistake("solve t.h5 b.npy o.h5 --a t", 3, "/t has the units 'fortnights since 1950-01-01'",
            "attrs['units'] = 'days since 1950-01-01'; or --raw-values", "t.h5",
            times(units="fortnights since 1950-01-01"), follow=("$", " --raw-values")),
    Mistake("solve t.h5 b.npy o.h5 --a t", 3, "/t has the calendar '360'",
            "attrs['calendar'] = '360_day'; or --raw-values", "t.h5",
            times(units="days since 1950-01-01", calendar="360"), follow=("$", " --raw-values")),
    Mistake("generate --kind haar --complex --special --shape 3x3 o.h5", 2,
            "--special is for real matrices", "leave --special or --complex away",
            follow=(" --complex", "")),
    Mistake("factor g.npy o.h5", 3, "is long double", "a.astype('c16')", "g.npy",
            npy((1j * A).astype("G"))),
]

# Of bench: what is measured is small.
MISTAKES += [
    Mistake("bench --shape 2x4x3 --against none", 2, "'2x4x3' is not MxN", "--shape 4x3 --batch 2",
            follow=("--shape 2x4x3", "--shape 4x3 --batch 2")),
    Mistake("bench --shape 4x3 --against none,eigen", 2, "none stands alone", "leave none away",
            follow=("none,", "")),
    Mistake("bench --solve --weights --against none", 2, "--weights needs --solve --shared",
            "for example --solve --shared --weights --shape 288x97",
            follow=("--solve --weights", "--solve --shared --weights --shape 288x97")),
    Mistake("bench --solve --shared --weights --shape 9x3 --against gels", 2,
            "--weights is compared with nothing: LAPACK would need a matrix for each",
            "leave --against away", follow=(" --against gels", "")),
    Mistake("bench --ridge 2 --against none", 2, "--ridge needs --solve",
            "for example --solve --ridge 0.1 --shape 97x288",
            follow=("--ridge 2", "--solve --ridge 0.1 --shape 97x288")),
    Mistake("bench --shared --against none", 2, "--shared needs --solve",
            "for example --solve --shared --shape 120x4",
            follow=("--shared", "--solve --shared --shape 120x4")),
    Mistake("bench --solve --mode r --shape 4x3 --against none", 2, "takes no --gemm, --mode",
            "leave these away", follow=(" --mode r", "")),
    Mistake("bench --shape 4x3 --mode raw --sign positive --against none", 2,
            "contradicts --mode raw", "--mode reduced or --mode r",
            follow=("--mode raw", "--mode reduced")),
    Mistake("bench --shape 4x3 --against gels", 2, "it solves least squares", "--solve",
            follow=("bench", "bench --solve")),
    Mistake("bench --solve --shape 4x3 --against eigen", 2, "it computes factors",
            "with --solve: gels, gelsy", follow=("eigen", "gelsy")),
    Mistake("bench --batch 2 --against none", 2, "--batch needs --shape", "--shape 64x64 --batch",
            follow=("--batch 2", "--shape 8x8 --batch 10")),
    Mistake("bench --shape 4x3 --against none --export-json -", 2, "cannot be standard output",
            "--json prints the result there", follow=("--export-json -", "--json")),
    Mistake("bench --shape 4x3 --complex --solve --against gelsy", 2,
            "--against gelsy: it takes no complex matrices", "with --complex: gels, variants",
            follow=("gelsy", "gels")),
    Mistake("bench --shape 4x3 --complex --arithmetic mixed --against none", 2,
            "bench --arithmetic mixed is for real matrices",
            "leave --arithmetic mixed or --complex away", follow=(" --arithmetic mixed", "")),
    Mistake("bench --shape 4x3 --complex --against textbook", 2,
            "--against textbook: it takes no complex matrices",
            "with --complex: eigen, cpu, from-host, lapack, variants, none",
            follow=("textbook", "variants")),
    Mistake("bench --rates r --shape 4x3 --backend cpu --batch 2", 2, "one matrix and many",
            "beside it go --shape, --backend", follow=(" --batch 2", "")),
    Mistake("bench --rates --backend cpu", 2, "one table for all", "name a file: --rates FILE",
            follow=("--rates", "--shape 4x3 --rates r")),
    Mistake("bench --rates x.csv --backend cpu --shape 4x3", 3, "is no table of rates",
            "qrtool bench --rates FILE writes one", follow=("x.csv", "r.csv")),
]


def run(command):
    return subprocess.run([QRTOOL, *shlex.split(command)], capture_output=True, text=True,
                          check=False, timeout=120, stdin=subprocess.DEVNULL)


class Messages(FolderTest):
    def make(self, mistake):
        for old in pathlib.Path(".").iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for name in ("x.csv", "there.h5"):
            pathlib.Path(name).write_bytes(TABLE)
        for name, array in (("a.npy", A), ("b.npy", B)):
            pathlib.Path(name).write_bytes(npy(array))
        pathlib.Path(mistake.file).write_bytes(mistake.content)
        if mistake.prepare:
            self.assertEqual(run(mistake.prepare).returncode, 0)

    def test_what_is_said_leads_on(self):
        for mistake in MISTAKES:
            with self.subTest(mistake.command):
                self.make(mistake)
                refused = run(mistake.command)
                self.assertEqual(refused.returncode, mistake.code, refused)
                hint = hint_of(refused.stderr)
                self.assertIn(mistake.message, refused.stderr)
                self.assertIn(mistake.hint, hint)
                if mistake.follow:
                    done = run(re.sub(*mistake.follow, mistake.command))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    if hint:
                        FOLLOWED.add(hint)

    def test_hints_that_are_commands(self):
        """Of other programs: the file that they make is the one that was meant."""
        with netCDF4.Dataset("classic.nc", "w", format="NETCDF3_CLASSIC") as file:
            for name, extent in zip("mn", A.shape):
                file.createDimension(name, extent)
            file.createVariable("v", "f8", ("m", "n"))[:] = A
        text = "".join(f"{x:.17g},{y:.17g},{z:.17g}\n" for x, y, z in A)
        pathlib.Path("wide.csv").write_text(text, encoding="utf-16")
        for name, made in (("classic.nc", "new.nc"), ("wide.csv", "utf8.csv")):
            refused = run(f"factor {name} o.npz -f")
            self.assertEqual(refused.returncode, 3, refused)
            command = re.search(r"hint: (?:convert it: )?(.*)\n", refused.stderr)[1]
            subprocess.run(command, shell=True, check=True, timeout=60)
            self.assertEqual(run(f"factor {made} o.npz -f").returncode, 0)
            with numpy.load("o.npz") as out:
                numpy.testing.assert_allclose(out["Q"] @ out["R"], A, rtol=1e-13)

    def test_the_hint_to_store_rows_is_for_columns_of_an_array(self):
        """Right sides that are rows already, or columns of a table, cannot become rows."""
        numpy.save("a.npy", numpy.ones((3000, 40)))
        numpy.save("columns.npy", numpy.ones((3000, 500)))
        numpy.save("rows.npy", numpy.ones((500, 3000)))
        numpy.savetxt("t.csv", numpy.ones((3000, 540)), "%g", ",")
        by_rows = "; or store each right side as a row, [..., m]"
        for files, ending in (("a.npy columns.npy", by_rows), ("a.npy rows.npy", ""),
                              ("t.csv --response 41-540", "")):
            refused = run(f"solve {files} o.npz --memory 2MiB")
            self.assertEqual(refused.returncode, 6, refused)
            self.assertIn("need", refused.stderr)
            self.assertRegex(hint_of(refused.stderr),
                             rf"^raise --memory to \w+{re.escape(ending)}$")

    def test_octave_s_text_says_nothing_of_b_in_hdf5(self):
        """A square B could be read either way; A's order, which the text states, is not B's."""
        b = numpy.arange(36.0).reshape(6, 6) ** 2
        with open("a.txt", "w") as file:
            file.write("# name: a\n# type: matrix\n# rows: 6\n# columns: 3\n")
            numpy.savetxt(file, A)
        pathlib.Path("b.h5").write_bytes(hdf5("b", array=b))
        done = run("solve a.txt b.h5 o.npz --rows matrix")
        self.assertEqual(done.returncode, 0, done.stderr)
        with numpy.load("o.npz") as out:
            numpy.testing.assert_allclose(out["X"], numpy.linalg.lstsq(A, b, None)[0], rtol=1e-9)

    def test_into_names_the_output(self):
        """Not one of its files: solve writes no Q."""
        os.mkdir("other")
        for name in ("t.csv", "other/t.csv"):
            pathlib.Path(name).write_bytes(TABLE)
        for command in ("factor t.csv other/t.csv", "solve t.csv other/t.csv --response y"):
            refused = run(f"{command} --into out")
            self.assertEqual(refused.returncode, 2, refused)
            self.assertIn("'out/t.csv' would be the output of 't.csv' and of 'other/t.csv'",
                          refused.stderr)

    def test_a_log_that_cannot_be_written_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        pathlib.Path("x.csv").write_bytes(TABLE)
        os.symlink("/dev/full", "full.log")
        done = run("factor x.csv o.h5 --log full.log")
        self.assertEqual(done.returncode, 5, done)
        self.assertIn("cannot write the log 'full.log': No space left on device", done.stderr)
        self.assertFalse(os.path.exists("o.h5"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
