#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hints whose following takes more than another command line: files are mended, limits raised, and
libraries, ranks and devices are there again. Arguments: the program and, where they were built,
--fail-nth and --fail-cl with the libraries that let calls fail, and --mpi with qrtool-mpi."""
import dataclasses
import functools
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest

import h5py
import numpy

from tool import FOLLOWED, QRTOOL, FolderTest, has_device, hint_of

A, B = numpy.vander([1.5, 2, 3, 5, 8, 9], 3), numpy.arange(6.0)
TABLE = "a,b,y\n1,2.5,3\n2,3,5\n3,5,1\n4,1,2\n"
RATES = "# qrtool.rates/1 another device\nvariant,type,q,m,n,matrices:microseconds\n"
BANNER = "%%MatrixMarket matrix"
# By saveRDS(matrix(c(1, 2, 3, 5), 2), "x.rds", compress=FALSE).
MATRIX_OF_R = bytes.fromhex(
    "580a000000030004020200030500000000055554462d380000020e000000043ff00000000000004000000000"
    "000000400800000000000040140000000000000000040200000001000400090000000364696d0000000d0000"
    "00020000000200000002000000fe")
# Of A's factors, other numbers that are right as well.
SIGNS = numpy.diag([-1.0, 1, 1])


@dataclasses.dataclass
class Case:
    """What a shell runs; the hint as a regular expression; and what a shell runs that follows it,
    where {0} is the first command and {1} the hint's group. Either may need what `before` and
    `edit` do in Python. The last command succeeds, or is refused with `then`."""
    command: str
    hint: str
    follow: str = "{0}"
    before: str = ""
    edit: str = ""
    then: str = ""
    needs: str = ""  # --fail-nth, --fail-cl, --mpi, root


def fails(call, nth=1, error=5, sticky=0):
    """The variables that let a call fail."""
    return (f"LD_PRELOAD=$FAIL_NTH QRTOOL_FAIL_CALL={call} QRTOOL_FAIL_NTH={nth} "
            f"QRTOOL_FAIL_ERRNO={error} QRTOOL_FAIL_STICKY={sticky} ")


BY_OCTAVE = "octave-cli --no-gui --norc --eval"

# 100 KiB less than that matrix needs, which depends on the processor; 225 can be kept on disk.
LITTLE_LESS = ("$(qrtool factor t.npy o.h5 --threads 1 --memory 3MiB 2>&1 | "
               r"sed -nE 's/.* needs ([0-9]+)\.([0-9]) MiB.*/\1 * 1024 + \2 * 102 - 100/p')")
CASES = [
    Case("qrtool factor r.txt o.h5", r"in Octave: (r = full\(r\)), and save it again",
         f"{BY_OCTAVE} 'load r.txt; {{1}}; save -text r.txt r' && {{0}}",
         f"sh(\"{BY_OCTAVE} 'r = 1:5; save -text r.txt r'\")"),
    # Sets of files.
    Case("qrtool factor x.csv f.csv --mode r", r"use (--force) to remove it", "{0} {1}",
         "os.symlink('nowhere', 'f.V.csv')"),
    Case("qrtool verify a.npy f.npy", r"(remove) those that you do not mean", "rm f.V.npy && {0}",
         "sh('qrtool factor a.npy f.npy -q'); numpy.save('f.V.npy', A)"),
    Case("qrtool verify a.npy f.npy", r"or factor again with (--force)",
         "qrtool factor a.npy f.npy {1} && {0}",
         "sh('qrtool factor a.npy f.npy -q'); numpy.save('f.V.npy', A)"),
    Case("qrtool verify a.npy f.npy", r"of different runs.*factor again with (--force)",
         "qrtool factor a.npy f.npy {1} && {0}",
         "sh('qrtool factor a.npy f.npy -q'); numpy.save('f.R.npy', numpy.triu(A[:3]))"),
    Case("qrtool verify a.npy f.npy", r"or remove (\S+) to have them measured", "rm {1} && {0}",
         "sh('qrtool factor a.npy f.npy -q')\n"
         "for name, turn in (('Q', lambda q: q @ SIGNS), ('R', lambda r: SIGNS @ r)):\n"
         "    numpy.save(f'f.{name}.npy', turn(numpy.load(f'f.{name}.npy')))"),
    Case("qrtool verify a.npy f.npy", r"or (remove) the leverages", "rm f.leverage.npy && {0}",
         "sh('qrtool factor a.npy f.npy -q --leverage')\n"
         "numpy.save('f.leverage.npy', 0 * numpy.load('f.leverage.npy'))"),
    Case("qrtool verify a.npy b.npy s.h5", r"(qrtool info s.h5) shows", "{1}",
         "sh('qrtool solve a.npy b.npy s.h5 -q --window 4')"),
    Case("qrtool verify a.npy b.npy s.h5", r"solve again with (--residuals) (--force)",
         "qrtool solve a.npy b.npy s.h5 {1} {2} && {0}",
         "sh('qrtool solve a.npy b.npy s.h5 -q --residuals')\n"
         "with h5py.File('s.h5', 'a') as file: del file['residuals']; file['residuals'] = B[:2]"),
    Case("qrtool verify a.npy b.npy s.h5", r"solve again with (--fitted) (--force)",
         "qrtool solve a.npy b.npy s.h5 {1} {2} && {0}",
         "sh('qrtool solve a.npy b.npy s.h5 -q --fitted')\n"
         "with h5py.File('s.h5', 'a') as file: del file['fitted']; file['fitted'] = B[:2]"),
    Case("qrtool verify a.npy f.npy", r"(factor) again with (--force)",
         "qrtool {1} a.npy f.npy {2} && {0}",
         "sh('qrtool factor a.npy f.npy -q'); write('f.report.json', '{')"),
    Case("qrtool verify a.npy f.npy", r"or remove (\S+) to have the factors", "rm {1} && {0}",
         "sh('qrtool factor a.npy f.npy -q'); write('f.report.json', '{')"),
    Case("qrtool verify a.npy b.npy s.npy", r"solve again with (--force)",
         "qrtool solve a.npy b.npy s.npy {1} && {0}",
         "sh('qrtool solve a.npy b.npy s.npy -q'); numpy.save('s.X.npy', B[:3])"),
    Case("qrtool verify a.npy b.npy s.npy", r"or remove (\S+) to have X judged", "rm {1} && {0}",
         "sh('qrtool solve a.npy b.npy s.npy -q'); "
         "numpy.save('s.X.npy', numpy.linalg.lstsq(A, B, rcond=None)[0])"),
    Case("qrtool info s.npy", r"write it again with .* solve and (--force)",
         "qrtool solve a.npy b.npy s.npy {1} && {0}",
         "sh('qrtool solve a.npy b.npy s.npy -q'); write('s.report.json', '{')"),
    Case("qrtool verify a.npy f.npy", r"factor again, with another name before (\S+)",
         "qrtool factor a.npy g{1} && qrtool verify a.npy g{1}",
         "sh('qrtool factor a.npy f.npy -q; qrtool factor a.npy f.mtx -q -f')"),
    Case("qrtool verify t.csv s.csv --response y,z", r"solve again with (--force)",
         "qrtool solve t.csv s.csv --response y,z {1} && {0}",
         "write('t.csv', 'a,y,z\\n1,2,3\\n2,3,5\\n4,1,2\\n')\n"
         "sh('qrtool solve t.csv s.csv --response y,z -q; sed -i 3d s.csv')"),
    Case("qrtool verify a.npy q.npy r.npy", r"name them (\S+) and (\S+?): (.*)",
         "mv q.npy {1} && mv r.npy {2} && {3}",
         "for name, array in zip('qr', numpy.linalg.qr(A)): numpy.save(name, array)"),
    Case("qrtool verify a.npy q.npz r.npz", r"as (\S+) and (\S+), (\S+): (.*)", "{4}",
         "for name, array in zip('qr', numpy.linalg.qr(A)): numpy.savez(name, a=array)",
         "for path, array in zip(groups[:2], numpy.linalg.qr(A)):\n"
         "    with h5py.File(groups[2], 'a') as file: file[path] = array"),

    # Factors that another program wrote.
    Case("qrtool verify a.npy f.h5", r"must be named (\S+) and (\S+) ", "{0}",
         "hdf5('f.h5', A=A)", "q, r = numpy.linalg.qr(A); hdf5('f.h5', **{groups[0]: q, "
         "groups[1]: r})"),
    Case("qrtool verify a.npy f.h5", r"save (.*) as V, and tau", "{0}",
         "h, tau = numpy.linalg.qr(A, mode='raw'); hdf5('f.h5', V=h, tau=tau)",
         "hdf5('f.h5', V=eval(groups[0]), tau=tau)"),
    Case("qrtool verify a.h5 f.h5", r"belong together with (--order \w+)", "{0} {1}",
         "q, r = numpy.linalg.qr(A); hdf5('a.h5', A=A.T); hdf5('f.h5', Q=q.T, R=r.T)"),
    Case("qrtool verify a.npy f.h5", r"reduced factors are Q (\S+) and R (\S+)", "{0}",
         "q, r = numpy.linalg.qr(A); hdf5('f.h5', Q=q[:5], R=r)",
         "assert groups == ['6x3', '3x3'], groups; hdf5('f.h5', Q=q, R=r)"),
    Case("qrtool verify a.npy f.h5", r"count the columns from (0)", "{0}",
         "sh('qrtool factor a.npy f.h5 --pivot -q')\n"
         "with h5py.File('f.h5', 'a') as file: p = file['P'][:]; del file['P']; "
         "file['P'] = p + 1",
         "with h5py.File('f.h5', 'a') as file: del file['P']; file['P'] = p"),
    Case("qrtool verify a.npy f.h5", r"or a newer version of (qrtool) wrote it",
         "qrtool factor a.npy f.h5 --force && {0}",
         "sh('qrtool factor a.npy f.h5 -q')\n"
         "with h5py.File('f.h5', 'a') as file: file.attrs['mode'] = 'sideways'"),

    # What is read and written.
    Case("gzip -c h.h5 | qrtool factor - o.h5", r"(write it to a file) and give its name",
         "gzip -c h.h5 > y.gz; qrtool factor y.gz o.h5", "hdf5('h.h5', a=A)", then="gunzip < y.gz"),
    Case("qrtool factor - o.h5 < h.h5", r"(write it to a file), and name that",
         "cat h.h5 > y.h5; qrtool factor y.h5 o.h5", "hdf5('h.h5', a=A)"),
    Case("qrtool verify a.csv f.csv", r"rename it to end in (\.h5)",
         "cp f.R.csv f{1} && qrtool verify a.csv f{1}",
         "numpy.savetxt('a.csv', A, delimiter=',')\n"
         "sh('qrtool factor a.csv f.h5 -q; qrtool factor a.csv f.csv -q; mv f.h5 f.R.csv; "
         "rm f.report.csv')"),
    Case("qrtool factor e.npy o.csv", r"let the name end in (\.h5)", "qrtool factor e.npy o{1}",
         "numpy.save('e.npy', numpy.zeros((0, 3)))"),
    Case("qrtool verify a.npy f.h5:/Q", r"name the file alone: (\S+)", "qrtool verify a.npy {1}",
         "sh('qrtool factor a.npy f.h5 -q')"),
    Case("qrtool factor g.csv.gz o.h5", r"(gzip -t) tests it; copy or download", "{0}",
         "import gzip; write('g.csv.gz', gzip.compress(TABLE.encode())[:-9])",
         "write('g.csv.gz', gzip.compress(TABLE.encode()))"),
    Case("qrtool factor x.rds o.h5", r"then (write\.csv\(x, \"(\S+)\"\))",
         "Rscript -e 'x <- readRDS(\"x.rds\"); {1}' && qrtool factor {2} o.h5",
         "write('x.rds', MATRIX_OF_R)"),
    Case("qrtool factor s.mtx o.h5", r"make it dense: python3 (.*)",
         f"PYTHONPATH=. {sys.executable} {{1}} && qrtool factor dense.mtx o.h5",
         "write('s.mtx', f'{BANNER} coordinate real general\\n2 2 2\\n1 1 5\\n2 2 6\\n')\n"
         "scipy()"),
    Case("qrtool factor s.npy o.h5", r"make it a table: (numpy\.save\(.*\))",
         "qrtool factor table.npy o.h5",
         "a = numpy.array([(1, 2.5), (3, 4)], [('n', 'i4'), ('x', 'f8')]); numpy.save('s.npy', a)",
         "import numpy.lib.recfunctions; exec(groups[0])"),
    Case("qrtool factor p.pkl o.h5", r"in Python: (numpy\.save\('(\S+)', array\))",
         "qrtool factor {2} o.h5",
         "import pickle; write('p.pkl', pickle.dumps(A))",
         "array = pickle.loads(pathlib.Path('p.pkl').read_bytes()); exec(groups[0])"),
    Case("qrtool factor m.mat o.h5", r"in Octave by save (-hdf5)",
         "octave-cli --no-gui --norc --eval 'load m.mat; save {1} m.h5 a' && "
         "qrtool factor m.h5 o.h5", "write('m.mat', mat_file(A))"),
    Case("qrtool factor t.h5:/t/table o.h5", r"in pandas: (numpy\.save\('(\S+)', .*?\)), or",
         "qrtool factor {2} o.h5",
         "table('t.h5'); frame = Frame()", "exec(groups[0])"),
    Case("qrtool factor e.npz o.h5", r"give the (\.npy) file", "qrtool factor a{1} o.h5",
         "encrypted('e.npz')"),
    Case("qrtool factor n.h5 o.h5", r'(libver="v110")', "{0}",
         "newer('n.h5')",
         "with h5py.File('n.h5', 'w', **eval(f'dict({groups[0]})')) as file: file['a'] = A"),
    Case("qrtool factor w.h5 o.h5", r"(h5clear -s \S+)", "{0}", "unclosed('w.h5')",
         "h5clear('w.h5')"),
    Case("qrtool factor z.h5 o.h5", r"(h5repack -f NONE \S+ (\S+))", "qrtool factor {2} o.h5",
         "unknown_filter('z.h5')", "hdf5(groups[1], a=A)"),
    Case("qrtool factor names.h5 o.h5", r"as in (names\.h5:/)PATH", "qrtool factor {1}a o.h5",
         "with h5py.File('names.h5', 'w') as file:\n"
         "    file['a'], group = A, file.create_group('g' * 60000)\n"
         "    for i in range(1200): group.create_dataset(str(i), (1, 1))"),
    Case("qrtool factor many.txt o.h5 --memory 1MiB", r"(save) .* in a file of their own",
         f"{BY_OCTAVE} 'load many.txt; {{1}} -text one.txt v7' && qrtool factor one.txt o.h5",
         "write('many.txt', ''.join(f'# name: v{i}\\n# type: scalar\\n{i}\\n' "
         "for i in range(5000)))"),
    Case("qrtool factor s.txt:/v o.h5", r"choose one of (/\S+); or", "qrtool factor s.txt:{1} o.h5",
         "struct_before('s.txt')"),
    Case("qrtool factor s.txt:/v o.h5", r"or (save) .* in a file of their own",
         f"{BY_OCTAVE} 'load s.txt; {{1}} -text v.txt v' && qrtool factor v.txt:/v o.h5",
         "struct_before('s.txt')"),
    Case("qrtool factor m.mat o.h5", r"in MATLAB: (S) = full\(S\)", "{0}",
         "with h5py.File('m.mat', 'w') as file:\n"
         "    file.create_group('S').attrs['MATLAB_sparse'] = numpy.uint64(3)\n"
         "    file['S/data'], file['S/ir'], file['S/jc'] = [1.5, 2], [0, 2], [0, 1, 2]",
         "hdf5('m.mat', **{groups[0]: [[1.5, 0, 0], [0, 0, 2]]})"),
    Case("qrtool factor big.h5 o.h5", r"read a part: (\S+)", "qrtool factor '{1}' o.h5 -q",
         "with h5py.File('big.h5', 'w') as file: file.create_dataset('a', (10**12, 2, 2), "
         "chunks=(1000, 2, 2), dtype='f8')"),

    # Solutions and numbers.
    Case("qrtool solve n.npy b.npy o.h5 -f", r"(--missing skip)", "{0} {1}",
         "numpy.save('n.npy', numpy.where(A == 2, numpy.nan, A))"),
    Case("qrtool factor h.npy o.h5 -f", r"(divide the matrices by a power of two)", "{0}",
         "numpy.save('h.npy', A / A.max() * 1.7e308)",
         "numpy.save('h.npy', A / A.max() * 1.7e308 / 16)"),
    Case("qrtool solve s.npy b.npy o.h5 --weights w.npy", r"(--precision double)", "{0} {1}",
         "numpy.save('s.npy', A.astype('f4')); numpy.save('b.npy', B.astype('f4')); "
         "numpy.save('w.npy', [1e-60, 1, 1, 1, 1, 1])"),
    Case("qrtool solve s.npy b.npy o.h5 --weights w.npy", r"or (0) for the rows", "{0}",
         "numpy.save('s.npy', A.astype('f4')); numpy.save('b.npy', B.astype('f4')); "
         "numpy.save('w.npy', [1e-60, 1, 1, 1, 1, 1])", "numpy.save('w.npy', [0, 1, 1, 1, 1, 1])"),
    Case("qrtool bench --rates r --backend cpu --shape 4x3",
         r"(qrtool bench --rates) FILE (--force)", "{1} r {2} --backend cpu --shape 4x3",
         "write('r', RATES + 'x\\n')"),
    Case("qrtool bench --rates r --backend cpu --shape 4x3", r"or replace this one by (--force)",
         "{0} {1}", "write('r', RATES)"),

    # Memory, space and limits.
    Case("qrtool factor t.npy o.h5 --memory 1MiB", r"^raise (--memory) to (\w+)$",
         "qrtool factor t.npy o.h5 {1} {2}", "numpy.save('t.npy', tall(1000, 100))"),
    Case("qrtool factor t.npy o.h5 --memory 1MiB", r"^raise (--memory) to (\w+)$",
         "qrtool factor t.npy o.h5 {1} {2}", "numpy.save('t.npy', tall(20000, 40))"),
    Case("qrtool factor t.h5 o.h5 --memory 1MiB", r"^raise (--memory) to (\w+)$",
         "qrtool factor t.h5 o.h5 {1} {2}", "hdf5('t.h5', a=tall(9000, 40))"),
    Case("qrtool verify t.npy o.npy --memory 1MiB", r"^raise (--memory) to (\w+)$",
         "qrtool verify t.npy o.npy {1} {2}",
         "numpy.save('t.npy', tall(1000, 100)); sh('qrtool factor t.npy o.npy -q --mode raw')"),
    Case("qrtool factor t.npy o.h5 --memory 20MiB --mode complete", r"(--mode reduced) needs less",
         "{0} {1}", "numpy.save('t.npy', tall(2000, 20))"),
    Case("qrtool factor t.npy o.h5 --memory 20MiB --mode complete", r"raise (--memory) to (\w+)",
         "qrtool factor t.npy o.h5 --mode complete {1} {2}",
         "numpy.save('t.npy', tall(1000, 20))"),
    Case(f"qrtool factor t.npy o.h5 --threads 1 --memory $(({LITTLE_LESS}))KiB",
         r"(--scratch) DIR", "{0} {1} .", "numpy.save('t.npy', tall(400000, 20))"),
    Case("qrtool solve t.npy c.npy o.h5 --memory 3MiB", r"raise (--memory) to (\w+); or store",
         "qrtool solve t.npy c.npy o.h5 {1} {2}",
         "numpy.save('t.npy', tall(3000, 40)); numpy.save('c.npy', tall(3000, 500))"),
    Case("qrtool solve t.npy c.npy o.h5 --memory 24MiB", r"store each right side as a row",
         "{0}", "numpy.save('t.npy', tall(3000, 40)); numpy.save('c.npy', tall(3000, 1500))",
         "numpy.save('c.npy', tall(3000, 1500).T.copy())"),
    Case("qrtool solve t.npy c.npy o.h5 --memory 3MiB", r"(raise --memory); some",
         "qrtool solve t.npy c.npy o.h5 --memory 64MiB",
         "numpy.save('t.npy', tall(3000, 200)); numpy.save('c.npy', tall(3000, 1))"),
    Case("qrtool factor c.csv o.csv", r"for example (1\+0j)", "sed -i '1s/1/{1}/' c.csv && {0}",
         "write('c.csv', '1,2\\n' * 50 + '3,4+1j\\n')"),
    Case("qrtool factor c.h5 o.h5 --order column --memory 34MiB", r"or (--mode r); or", "{0} {1}",
         "hdf5('c.h5', a=tall(40000, 40).T)"),
    Case("qrtool factor c.h5 o.h5 --order column --memory 34MiB", r"store the input by (row)s",
         "qrtool factor c.h5 o.h5 --order {1} --memory 34MiB", "hdf5('c.h5', a=tall(40000, 40).T)",
         "hdf5('c.h5', a=tall(40000, 40))"),
    Case("(ulimit -S -f 8; qrtool generate --shape 99x99 o.h5)", r"raise it with (ulimit -f)",
         "{1} 999; qrtool generate --shape 99x99 o.h5"),
    Case("(ulimit -S -f 8; qrtool factor t.npy o.npz)", r"a (\.npy) or (\.h5) file needs half",
         "qrtool factor t.npy o{1} && qrtool factor t.npy o{2}",
         "numpy.save('t.npy', tall(99, 30))"),
    Case("(ulimit -S -s 128; qrtool factor a.npy o.h5)", r"raise (ulimit -s)",
         "{1} 8192; qrtool factor a.npy o.h5"),
    Case("TMPDIR=/proc qrtool factor - o.h5 < a.npy", r"set (TMPDIR) to", "{1}=. qrtool factor - "
         "o.h5 < a.npy"),
    Case("TMPDIR=/proc qrtool factor f.npz o.h5", r"give (--scratch) DIR", "{0} {1} .",
         "numpy.savez_compressed('f.npz', a=numpy.asfortranarray([A, A]))"),
    Case("TMPDIR=/proc qrtool factor f.npz o.h5", r"set (TMPDIR) to", "{1}=. qrtool factor f.npz "
         "o.h5", "numpy.savez_compressed('f.npz', a=numpy.asfortranarray([A, A]))"),
    Case("TMPDIR=/proc qrtool factor f.npz o.h5", r"not compressed: (numpy\.save.*)",
         "TMPDIR=/proc qrtool factor a.npy o.h5",
         "a = numpy.asfortranarray([A, A]); numpy.savez_compressed('f.npz', a=a)",
         "exec(groups[0])"),
    Case("qrtool factor a.npy all/o.h5", r"choose (another) name", "qrtool factor a.npy all/{1}.h5",
         "os.mkdir('all'); os.chmod('all', 0o1777); os.symlink('o.h5', 'all/o.h5'); "
         "os.lchown('all/o.h5', 1234, -1)", needs="root"),
    Case("qrtool factor a.npy o.h5 --log full.log", r"(name a log on a disk that has room)",
         "qrtool factor a.npy o.h5 --log o.log", "os.symlink('/dev/full', 'full.log')"),
]

# Calls that fail. The drivers of devices make calls, too, and how many depends on their caches.
CASES += [
    Case(fails("pthread_create", 1, 11, 1) + "qrtool factor t.npy o.h5 --backend cpu --threads 8",
         r"raise (ulimit -u)", "{1} unlimited; qrtool factor t.npy o.h5 --backend cpu --threads 8",
         "numpy.save('t.npy', tall(999, 99))", needs="--fail-nth"),
    Case("(ulimit -S -v 500000; " + fails("pthread_create", 1, 11, 1) +
         "qrtool factor t.npy o.h5 --backend cpu --threads 8)", r"raise (ulimit -v)",
         "{1} unlimited; qrtool factor t.npy o.h5 --backend cpu --threads 8",
         "numpy.save('t.npy', tall(999, 99))", needs="--fail-nth"),
    # The command line is enough to see it again.
    Case(fails("pthread_create", 1, 1, 1) + "qrtool factor t.npy o.h5 --backend cpu --threads 8",
         r"add the (command line)", "{0}", "numpy.save('t.npy', tall(999, 99))",
         then="please report", needs="--fail-nth"),
    Case(f"{fails('pwrite', 3, 28)} qrtool factor f.npz o.h5 --scratch .",
         r"name a directory with more (room)", "qrtool factor f.npz o.h5 --scratch bin",
         "numpy.savez_compressed('f.npz', a=numpy.asfortranarray([tall(999, 99)] * 2))",
         needs="--fail-nth"),
    Case(f"{fails('pread', 24, sticky=1)} qrtool factor f.npz o.h5 --scratch .",
         r"name (another) directory", "qrtool factor f.npz o.h5 --scratch bin",
         "numpy.savez_compressed('f.npz', a=numpy.asfortranarray([tall(999, 99)] * 2))",
         needs="--fail-nth"),
    # The program stops before it reads, and another one writes meanwhile.
    Case(f"{fails('pread', 5)} QRTOOL_FAIL_KILL=19 QRTOOL_FAIL_LOG=hit qrtool factor a.npy o.h5 & "
         "reader=$!; until [ -e hit ]; do sleep 0.01; done; touch a.npy; "
         # It may stop only after the first of these signals has come.
         "(while :; do sleep 0.1; kill -CONT $reader; done) & waker=$!; "
         "wait $reader; code=$?; kill $waker; exit $code",
         r"(wait) until the program that writes it is done", "{1}; qrtool factor a.npy o.h5",
         needs="--fail-nth"),
    Case("ulimit -S -v 90000; qrtool factor s.h5:[0:10,:] o.h5 --mode r --threads 1 --memory 1GiB",
         r"else try a smaller (--memory)", "{0} {1} 16MiB",
         "with h5py.File('s.h5', 'w') as file: file.create_dataset('a', (10**4, 10**3), 'i4', "
         "chunks=(10**4, 10**3), scaleoffset=0)[0, 0] = 1",
         then="reading and writing files take"),
    Case(fails("fsync", 2) + "qrtool factor a.npy o.h5", r"the file can be used",
         "qrtool verify a.npy o.h5", needs="--fail-nth"),
    Case(fails("malloc", 4000, 12, 1) + "qrtool factor a.npy o.h5 --backend cpu",
         r"try a smaller --memory", "qrtool factor a.npy o.h5 --backend cpu --memory 16MiB",
         needs="--fail-nth"),
]

# Devices.
ON_DEVICE = "qrtool factor a.npy o.h5 --backend opencl"
CASES += [
    Case(f"OPENCL_LAYERS=$FAIL_CL QRTOOL_FAIL_CL=clEnqueueNDRangeKernel:2:-5 {ON_DEVICE}",
         r"(--backend cpu) works without this device", "qrtool factor a.npy o.h5 {1}",
         needs="--fail-cl"),
    Case(f"OPENCL_LAYERS=$FAIL_CL QRTOOL_FAIL_CL=clCreateBuffer:0:-61 {ON_DEVICE}",
         r"(--backend cpu) works in host memory", "qrtool factor a.npy o.h5 {1}",
         needs="--fail-cl"),
    Case(f"OPENCL_LAYERS=$FAIL_CL QRTOOL_END_CL=clBuildProgram:1 {ON_DEVICE}",
         r"(--backend cpu) works without it", "qrtool factor a.npy o.h5 {1}", needs="--fail-cl"),
    Case(f"OCL_ICD_VENDORS=/none {ON_DEVICE}", r"set (OCL_ICD_VENDORS) to where",
         f"{{1}}=/etc/OpenCL/vendors {ON_DEVICE} --dry-run", needs="--fail-cl"),
    Case("qrtool factor a.npy o.h5 --device 7", r"devices: (0): \w",
         "qrtool factor a.npy o.h5 --dry-run --device {1}", needs="--fail-cl"),
    Case("qrtool factor a.npy o.h5 --backend gpu", r"(--backend opencl) runs on it",
         "qrtool factor a.npy o.h5 --dry-run {1}", needs="--fail-cl"),
    Case("OCL_ICD_VENDORS=/none qrtool bench --gemm --quick", r"leave --sweep, (--quick),",
         "OCL_ICD_VENDORS=/none qrtool bench --gemm", then="no OpenCL platform"),
    Case("OCL_ICD_VENDORS=/none qrtool bench --gemm --plot o.svg", r"leave (--plot) and",
         "OCL_ICD_VENDORS=/none qrtool bench --gemm", then="no OpenCL platform"),
    Case("qrtool bench --rates --backend opencl --shape 4x3",
         r"leave --shape and --variant away; or name a file",
         "qrtool bench --rates --backend opencl", then="name a file: --rates FILE",
         needs="--fail-cl"),
    Case("qrtool bench --rates --backend opencl", r"^name a file: (--rates) FILE",
         "OCL_ICD_VENDORS=/none qrtool bench --backend opencl {1} r",
         then="no OpenCL platform", needs="--fail-cl"),
]

# Devices.
CASES += [
    Case("qrtool factor a.npy o.h5 --device cuda:77", r"'(qrtool devices)' lists", "{1}"),
]

# Ranks.
CASES += [
    Case("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 qrtool factor a.npy o.h5",
         r"(mpirun -n 2 qrtool-mpi) shares it", "{1} factor a.npy o.h5", needs="--mpi"),
    Case("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 qrtool factor a.npy o.h5",
         r"leave (mpirun) away", "qrtool factor a.npy o.h5"),
    Case("mpirun -n 2 qrtool-mpi factor a.npy o.h5 --dry-run", r"use (qrtool), without mpirun",
         "{1} factor a.npy o.h5 --dry-run", needs="--mpi"),
    Case("mpirun -n 2 qrtool-mpi factor h.h5 o.h5 --dataset a --dataset b",
         r"give one --dataset, or use (qrtool)", "{1} factor h.h5 o.h5 --dataset a --dataset b",
         "hdf5('h.h5', a=A, b=A)", needs="--mpi"),
    Case("mpirun -n 1 qrtool-mpi factor a.npy o.h5 : -n 1 qrtool-mpi factor a.npy o.h5 --mode r",
         r"give every rank the (same) options", "mpirun -n 2 qrtool-mpi factor a.npy o.h5 --mode r",
         needs="--mpi"),
    Case("mpirun -n 1 qrtool-mpi factor a.npy o.h5 : -n 1 -wdir d qrtool-mpi factor a.npy o.h5",
         r"give every rank the same file; (copies)", "cp a.npy d; {0}",
         "os.mkdir('d'); numpy.save('d/a.npy', A + 1)", needs="--mpi"),
    Case("mpirun -n 2 qrtool-mpi factor f.npz o.h5", r"not compressed: (numpy\.save.*)",
         "mpirun -n 2 qrtool-mpi factor a.npy o.h5",
         "a = numpy.asfortranarray([A, A]); numpy.savez_compressed('f.npz', a=a)",
         "exec(groups[0])", needs="--mpi"),
]


def argument(name):
    at = sys.argv.index(name) if name in sys.argv else len(sys.argv)
    return sys.argv[at + 1] if at + 1 < len(sys.argv) else ""


@functools.cache
def is_there(needed):
    if needed == "root":
        return os.geteuid() == 0
    return bool(argument(needed)) and (needed != "--fail-cl" or has_device())


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=600)


def write(name, content):
    pathlib.Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def hdf5(name, **arrays):
    with h5py.File(name, "w") as file:
        for path, array in arrays.items():
            file[path] = array


def tall(rows, columns):
    return numpy.random.default_rng(0).standard_normal((rows, columns))


def struct_before(name):
    """Octave's text with a struct, behind which the names of variables cannot be told."""
    sh(f"{BY_OCTAVE} 'a = [1 2; 3 5]; s.x = 1; v = [1; 2]; save -text {name} a s v'")


def table(name):
    """As PyTables writes a frame with format='table'."""
    rows = numpy.array([(0, [1.5, 2]), (1, [3, 4])], [("index", "i8"), ("values_block_0", "f8", 2)])
    with h5py.File(name, "w") as file:
        file["t/table"] = rows
        file["t/table"].attrs["CLASS"] = numpy.bytes_("TABLE")


class Frame:
    """What the hint takes of a frame of pandas."""

    @staticmethod
    def to_numpy():
        return A


def encrypted(name):
    """With the flag of encryption; nobody knows the password."""
    numpy.savez(name, a=A)
    content = bytearray(pathlib.Path(name).read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    write(name, bytes(content))


def newer(name):
    """With a superblock of a version to come."""
    with h5py.File(name, "w", libver="latest") as file:
        file["a"] = A
    content = bytearray(pathlib.Path(name).read_bytes())
    content[8] = 7
    write(name, bytes(content))


def scipy():
    """What the hint takes of SciPy."""
    os.makedirs("scipy", exist_ok=True)
    write("scipy/__init__.py", "")
    write("scipy/io.py", f"""import numpy
class Sparse:
    def __init__(self, rows):
        self.rows = rows
    def toarray(self):
        dense = numpy.zeros((2, 2))
        for i, j, x in self.rows[1:]:
            dense[int(i) - 1, int(j) - 1] = x
        return dense
def mmread(name):
    return Sparse(numpy.loadtxt(name, comments="%"))
def mmwrite(name, array):
    numbers = "\\n".join(map(str, array.T.ravel()))
    with open(name, "w") as file:
        file.write(f"{BANNER} array real general\\n2 2\\n{{numbers}}\\n")
""")


def mat_file(array):
    """A matrix named a, as MATLAB's save -v6 writes it."""
    def element(kind, data):
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)
    matrix = element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<ii", *array.shape))
    matrix += element(1, b"a") + element(9, array.T.astype("<f8").tobytes())
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM" + element(14, matrix)


def unclosed(name):
    """Of a program that died while it wrote."""
    child = os.fork()
    if child == 0:
        file = h5py.File(name, "w", libver="latest")
        file["a"] = [[1.0, 2], [3, 5]]
        file.flush()
        os._exit(0)
    os.waitpid(child, 0)


def h5clear(name):
    """What h5clear -s does: the superblock is that of the same file, closed."""
    content = pathlib.Path(name).read_bytes()
    with h5py.File(name, "w", libver="latest") as file:
        file["a"] = [[1.0, 2], [3, 5]]
    write(name, pathlib.Path(name).read_bytes()[:48] + content[48:])


def unknown_filter(name):
    with h5py.File(name, "w") as file:
        space = h5py.h5s.create_simple(A.shape)
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk(A.shape)
        create.set_filter(257, h5py.h5z.FLAG_OPTIONAL)
        h5py.h5d.create(file.id, b"a", h5py.h5t.NATIVE_DOUBLE, space, create)


class ShellHints(FolderTest):
    def setUp(self):
        super().setUp()
        os.mkdir("bin")
        os.symlink(QRTOOL, "bin/qrtool")
        self.env = {**os.environ, "PATH": f"{os.getcwd()}/bin:{os.environ['PATH']}",
                    "FAIL_NTH": argument("--fail-nth"), "FAIL_CL": argument("--fail-cl"),
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        if argument("--mpi"):
            os.symlink(argument("--mpi"), "bin/qrtool-mpi")
        self.addCleanup(os.environ.update, PATH=os.environ["PATH"])
        os.environ["PATH"] = self.env["PATH"]

    def run_in_shell(self, command):
        return subprocess.run(command, shell=True, capture_output=True, text=True, check=False,
                              timeout=600, env=self.env, stdin=subprocess.DEVNULL)

    def follow(self, case):
        known = {**globals()}
        exec(case.before, known)  # pylint: disable=exec-used
        refused = self.run_in_shell(case.command)
        hint = hint_of(refused.stderr)
        found = re.search(case.hint, hint)
        self.assertIsNotNone(found, refused)
        known["groups"] = list(found.groups())
        exec(case.edit, known)  # pylint: disable=exec-used
        command = case.follow.format(case.command, *found.groups())
        done = self.run_in_shell(command)
        if case.then:
            self.assertNotEqual(done.returncode, 0, command)
            self.assertIn(case.then, done.stderr, command)
        else:
            self.assertEqual(done.returncode, 0, (command, done))
        FOLLOWED.add(hint)

    def test_every_hint_leads_on(self):
        for case in CASES:
            if case.needs and not is_there(case.needs):
                continue
            with self.subTest(case.command, hint=case.hint):
                for old in pathlib.Path(".").iterdir():
                    if old.is_file() or old.is_symlink():
                        old.unlink()
                write("x.csv", TABLE)
                numpy.save("a.npy", A)
                numpy.save("b.npy", B)
                self.follow(case)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
