#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every pair of options of `solve` on each kind of input: the run is right, as `verify` finds
without being told the options again, or it is refused by a message that names one of them and says
what to do. `solve_combinations_test.py QRTOOL [SHARE]` takes one pair in SHARE."""
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

import h5py
import numpy as np

QRTOOL = sys.argv[1]
SHARE = int(sys.argv[2]) if len(sys.argv) > 2 else 1
REFUSALS = (2, 3)  # of the command line, and of a file that does not fit its options
# Kind of input -> A and B, and the words that belong to them.
INPUTS = {"one": (["A.npy", "b.npy"], []), "sides": (["A.npy", "B.npy"], []),
          "batch": (["As.npy", "bs.npy"], []), "hdf5": (["d.h5:/A", "d.h5:/B"], []),
          "complex": (["Ac.npy", "bc.npy"], []), "columns": (["d.h5", "d.h5:/b"], ["--a", "t"]),
          "table": (["t.csv"], ["--response", "y"])}
# The value of an option: of some kinds of input, and of all others.
VALUES = {"--polynomial": {"table": "u:2", "": "1:2"},
          "--weights": {"table": "w", "batch": "ws.npy", "": "w.npy"},
          "--by": {"table": "day"}, "--groups": {"": "g.npy", "table": None},
          "--a": {"table": "u,v"}, "--rows": {"batch": "last", "": "first"},
          "--missing": {"": "skip"},
          "--ridge": {"": "0.1"}, "--rank-tolerance": {"": "1e-3"}, "--confidence": {"": "0.9"},
          "--precision": {"": "single"}, "--order": {"": "row"}, "--memory": {"": "200MiB"},
          "--threads": {"": "2"}, "--scratch": {"": "."}, "--variant": {"": "cpu/batched"},
          "--format": {"": "csv"}, "--backend": {"": "cpu"}}
# How text is read and what is printed has tests of its own, and so have devices and many inputs.
ELSEWHERE = {"--response", "--delimiter", "--decimal", "--thousands", "--skip-rows", "--names-row",
             "--end-row", "--header", "--columns", "--index-column", "--na-text", "--device",
             "--into", "--skip-existing", "--shard", "--force", "--progress", "--log", "--help",
             "--quiet", "--verbose", "--explain"}
OUTPUTS = ("x.h5", "x.npz", "x.npy", "x.csv")


def options():
    """name -> whether it takes a value, from --help."""
    text = subprocess.run([QRTOOL, "solve", "--help"], capture_output=True, text=True,
                          check=True).stdout
    return {name: bool(value) for name, value in
            re.findall(r"^  (?:-\w, )?(--[a-z-]+)( [A-Z])?", text, re.M)}


def write_inputs(folder):
    chance, rows = np.random.default_rng(0), 20
    a, several = chance.standard_normal((rows, 3)), chance.standard_normal((5, rows, 3))
    arrays = {"A": a, "b": a @ [1, 2, 3] + chance.standard_normal(rows),
              "B": chance.standard_normal((rows, 4)), "As": several,
              "bs": chance.standard_normal((5, rows)), "w": chance.random(rows) + 0.5,
              "ws": chance.random((5, rows)) + 0.5, "g": np.repeat([1, 2], rows // 2),
              "Ac": a + 1j * a[::-1], "t": np.arange(1.0, rows + 1)}
    arrays["bc"] = arrays["b"] * 1j + arrays["b"][::-1]
    for name, array in arrays.items():
        np.save(os.path.join(folder, name), array)
    with h5py.File(os.path.join(folder, "d.h5"), "w") as file:
        for name in ("A", "b", "B", "t"):
            file[name] = arrays[name]
    with open(os.path.join(folder, "t.csv"), "w", encoding="ascii") as file:
        file.write("day,u,v,w,y\n")
        for i in range(rows):
            numbers = (a[i, 0], a[i, 1], arrays["w"][i], arrays["b"][i])
            file.write(f"{i // 10}," + ",".join(f"{x:.6f}" for x in numbers) + "\n")


class SolveCombinations(unittest.TestCase):
    def words(self, kind, pair, takes_value):
        """The words of both options; None where one is not for this kind of input."""
        found = []
        for name in pair:
            found.append(name)
            if takes_value[name]:
                value = VALUES[name].get(kind, VALUES[name].get(""))
                if value is None or name in INPUTS[kind][1]:
                    return None
                found.append(value)
        return found

    def problem(self, folder, number, kind, pair, words):
        inputs, own = INPUTS[kind]
        names_group = {"--by", "--groups"} & set(pair)
        output = f"{number}-" + ("x.csv" if kind == "table" or names_group
                                 else OUTPUTS[number % len(OUTPUTS)])
        done = subprocess.run([QRTOOL, "solve", *inputs, output, *own, *words], text=True,
                              capture_output=True, cwd=folder, timeout=120, check=False)
        if done.returncode in REFUSALS:
            is_clear = any(name in done.stderr for name in pair) and "hint: " in done.stderr
            return "" if is_clear else done.stderr
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr}"
        if names_group or "--dry-run" in pair:
            return ""
        weights = [word for word in words if word.endswith(".npy")]
        again = subprocess.run(
            [QRTOOL, "verify", *inputs, output, *(["--weights", *weights] if weights else [])],
            text=True, capture_output=True, cwd=folder, timeout=120, check=False)
        return "" if again.returncode == 0 else f"verify: {again.stdout[-200:]}{again.stderr}"

    def test_pairs_are_right_or_refused_by_name(self):
        takes_value = options()
        wanted = sorted(set(takes_value) - ELSEWHERE)
        unknown = [name for name in wanted if takes_value[name] and name not in VALUES]
        self.assertEqual(unknown, [], "they need a value here, or tests elsewhere")
        jobs = [(kind, pair, self.words(kind, pair, takes_value)) for kind in INPUTS
                for pair in itertools.combinations(wanted, 2)]
        jobs = [job for job in jobs if job[2] is not None and
                zlib.crc32(repr(job).encode()) % SHARE == 0]
        self.assertGreater(len(jobs), 1000 // SHARE)
        with tempfile.TemporaryDirectory(prefix="qrtool-combinations-") as folder:
            write_inputs(folder)
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                found = pool.map(lambda job: self.problem(folder, *job),
                                 [(number, *job) for number, job in enumerate(jobs)])
                wrong = [f"{kind}: {' '.join(words)}: {problem}"
                         for (kind, _, words), problem in zip(jobs, found) if problem]
        self.assertEqual(wrong[:20], [], f"{len(wrong)} of {len(jobs)}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
