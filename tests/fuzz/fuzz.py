#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fuzz.py: gives damaged files to qrtool, and makes calls of the system fail under it.

A run may refuse its input, but it must not crash, must not accept what is not in the file, must not
depend on memory that nothing was written to, must not leave a part of an output, must end within
two seconds of processor time, and must keep to --memory.

    fuzz.py QRTOOL [--hdf5 N] [--csv N] [--mtx N] [--octave N] [--npy N]
                   [--calls N --fail-nth LIBRARY] [--seed S] [--keep FOLDER]"""
import argparse
import collections
import os
import threading
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("h5py and NumPy are needed")
    sys.exit(77)

import csv_damage
import failing_calls
import npy_damage
from h5py_reader import IndependentReader
from hdf5_damage import Sample
from hdf5_samples import write_factor_samples, write_samples
from widened import is_single, widened

SECONDS = 600  # after which a run is ended, on a busy machine, too
MOST_SECONDS = 2  # of processor time, which the other processes of a machine do not change
MEMORY = 256  # MiB, for --memory
PARTS = ("[1:]", "[::2]", "[-1:]", "[..., 1:]", "[..., ::2, :]")
# For MALLOC_PERTURB_: what fresh and freed memory is filled with. With 0 memory that is allocated
# and not used takes no room, so that the peak is the tool's own.
FILLS = ("0", "170")


class Fuzz:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="qrtool-fuzz-")
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)
        self.reader = IndependentReader()
        self.seconds = self.peak = 0  # of the last run: processor time, MiB that were resident
        self.worst = {"seconds": 0, "peak": 0}
        self.limit_memory()
        self.exits = collections.Counter()
        self.failures = []

    def close(self):
        self.reader.close()
        shutil.rmtree(self.folder)

    def limit_memory(self):
        """Lets no process have more than 4 GiB of addresses, as a damaged file may state any size.
        A tool that is built with a sanitizer needs more, and is not limited."""
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, before[1]))
        if self.run("--version")[0] != 0:
            resource.setrlimit(resource.RLIMIT_AS, before)

    def run(self, *arguments, fill="0", stdin=None, **environment):
        """Runs the tool. Returns its exit code (128 + n after a signal, 200 after the time limit),
        standard output and standard error."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_PERTURB_": fill, **environment}
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, \
                tempfile.TemporaryFile() as err:
            given.write(stdin or b"")
            given.seek(0)
            process = subprocess.Popen([self.options.qrtool, *arguments], stdin=given, stdout=out,
                                       stderr=err, env=environment, cwd=self.work)
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            is_late = not timer.is_alive()
            timer.cancel()
            process.returncode = code = os.waitstatus_to_exitcode(status)
            # What this program itself takes counts as memory of the new process, too.
            self.seconds, self.peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
            self.is_filled = fill != "0"
            self.worst = {"seconds": max(self.worst["seconds"], self.seconds),
                          "peak": max(self.worst["peak"], self.peak)}
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        if is_late:
            return 200, "", ""
        return (code if code >= 0 else 128 - code, *texts)

    def fail(self, what, number, files):
        """Notes a failure, and keeps its files."""
        self.failures.append((what, number))
        print(f"FAILED: {what}: number {number} of seed {self.options.seed}", flush=True)
        if self.options.keep:
            keep = os.path.join(self.options.keep, f"{self.options.seed}-{number}")
            os.makedirs(keep, exist_ok=True)
            for path in files:
                if os.path.exists(path):
                    shutil.copy(path, keep)

    def ended_well(self, what, result, number, files):
        """Whether a run ended by itself, with an exit code that the manual names, a message where
        it failed, and without temporary files."""
        code, out, err = result
        # glibc has the first line where the library frees memory twice, or it gets none itself.
        err = re.sub(r"^(free|malloc|realloc|munmap_chunk|double free|Fatal glibc error)\b.*\n", "",
                     err)
        how = " (the library crashed)" if "crashed" in err else \
            " (the library did not end)" if "does not come to an end" in err else ""
        self.exits[what, f"{code}{how}"] += 1
        left = [name for name in os.listdir(self.work) if name.endswith(".tmp")]
        for name in left:
            os.remove(os.path.join(self.work, name))
        if not 0 <= code <= 6:
            reason = f"exit {code}"
        elif left:
            reason = f"left {left}"
        elif self.seconds > MOST_SECONDS:
            reason = f"{self.seconds:.1f} s"
        elif self.peak > 1.1 * MEMORY + 20 and not self.is_filled:
            reason = f"{self.peak:.0f} MiB"
        elif code > 1 and not err.startswith("qrtool: "):
            reason = f"exit {code} says {err[:100]!r}"
        else:
            return True
        self.fail(f"{what}: {reason} {err[:200]!r}", number, files)
        return False

    def run_twice(self, what, arguments, outputs, files, stdin=None):
        """Runs the tool with two fills of memory. Returns the exit code, standard error and the
        content of each of `outputs`; nothing where a run did not end well or the two differ."""
        paths, results, contents = [os.path.join(self.work, name) for name in outputs], [], []
        for fill in FILLS:
            for path in paths:
                if os.path.exists(path):
                    os.remove(path)
            results.append(self.run(*arguments, fill=fill, stdin=stdin))
            contents.append([content(path) for path in paths])
            if not self.ended_well(what, results[-1], self.number, files):
                return None
        codes = [result[0] for result in results]
        if codes[0] != codes[1] or contents[0] != contents[1]:
            self.fail(f"{what}: two fills of memory, two answers: exits {codes}", self.number,
                      [*files, *paths])
            return None
        return codes[0], results[0][2], contents[0]

    def damaged_copy(self, samples, path):
        generator = random.Random(f"{self.options.seed} {os.path.basename(path)} {self.number}")
        chosen = generator.randrange(len(samples))
        with open(path, "wb") as file:
            file.write(samples[chosen].damaged(generator))
        return chosen

    # ---- HDF5 ---------------------------------------------------------------------------------

    def hdf5(self, count):
        inputs = write_samples(self.folder, self.options.qrtool)
        pairs = write_factor_samples(self.folder, self.options.qrtool)
        input_samples = [Sample(path) for path, _ in inputs]
        pair_samples = [Sample(path) for _, path in pairs]
        for path, dataset in inputs:
            code, _, err = self.run("factor", f"{path}:{dataset}", "q.h5", "-qf")
            if code != (3 if "never-written" in path else 0):
                self.fail(f"undamaged {path}: exit {code} {err}", -1, [])
        for self.number in range(count):
            if self.number % 4 < 3:
                self.damaged_input(inputs, input_samples)
            else:
                self.damaged_factors(pairs, pair_samples)

    def damaged_input(self, inputs, samples):
        path, output = os.path.join(self.work, "d.h5"), os.path.join(self.work, "q.h5")
        dataset = inputs[self.damaged_copy(samples, path)][1]
        name, options = path if self.number % 8 == 0 else f"{path}:{dataset}", []
        if self.number % 5 == 1:
            name = f"{path}:{dataset}{random.Random(self.number).choice(PARTS)}"
        elif self.number % 5 == 2:
            name, options = path, ["--dataset", dataset, "--dataset", f"{dataset}[..., 1:]"]
        result = self.run_twice("factor", ["factor", name, output, "-q", "--backend", "cpu",
                                           "--threads", "1", "--memory", f"{MEMORY}MiB", *options],
                                ["q.h5"], [path])
        if result is None:
            return
        code, _, (written,) = result
        # Of several datasets those are written that can be read.
        if (code in (0, 1)) != (written is not None) and not (options and code == 3):
            self.fail(f"exit {code}, and the output is there or not", self.number, [path])
            return
        if code == 0 and not self.agrees(path, output):
            self.fail("h5py reads something else", self.number, [path, output])
        if code == 0 and self.number % 10 == 0:
            verified = self.run("verify", name, output, "-q", "--threads", "1", "--memory",
                                f"{MEMORY}MiB")
            self.ended_well("verify", verified, self.number, [path, output])

    def agrees(self, path, output):
        """Whether Q R of an output is what h5py reads from its input."""
        with h5py.File(output) as file:
            names = ["/" + name.lstrip("/") for name in file.attrs.get("source_datasets", [""])]
            return all(self.agrees_with(path, file, "" if name == "/" else name) for name in names)

    def agrees_with(self, path, file, name):
        """The same for one of several datasets; `name` is empty where there is only one."""
        record = file["report" + name].attrs if name else file.attrs
        q, r = file["Q" + name], file["R" + name]
        single = is_single(q.dtype)
        q, r = widened(q[:]), widened(r[:])
        # Stored by columns, Q' and R' give A' = R' Q'.
        product = r @ q if record["order"] == "column" else q @ r
        dataset, bracket, part = record["source_dataset"].partition("[")
        # Control characters of the name are stored as they are shown.
        name = dataset.encode().decode("unicode_escape").encode("latin-1")
        return close(self.reader.read(path, name, (bracket + part or "[()]").encode()), product,
                     single)

    def damaged_factors(self, pairs, samples):
        path = os.path.join(self.work, "f.h5")
        chosen = self.damaged_copy(samples, path)
        a, undamaged = pairs[chosen]
        results = []
        for fill in FILLS:
            results.append(self.run("verify", a, path, "--threads", "1", "--memory",
                                    f"{MEMORY}MiB", fill=fill))
            if not self.ended_well("verify", results[-1], self.number, [path, a]):
                return
        out = [result[1] for result in results]
        if results[0][0] != results[1][0] or out[0] != out[1]:
            self.fail("verify: two fills of memory, two answers", self.number, [path, a])
        elif results[0][0] == 0:
            # A damaged name of Q makes another program's file one of R alone, and verify says so.
            is_r_alone = "R alone" in out[0] and "foreign" in undamaged
            for name in ("R",) if is_r_alone else ("Q", "R", "V", "tau"):
                with h5py.File(undamaged) as file:
                    expected = widened(file[name][:]) if name in file else None
                if expected is not None and not close(self.reader.read(path, b"/" + name.encode()),
                                                      expected, True):
                    self.fail(f"verify passes a /{name} that h5py reads otherwise", self.number,
                              [path, a])

    # ---- CSV, Matrix Market, Octave  -----------------------------------------------------------

    def csv(self, count):
        for self.number in range(count):
            generator = random.Random(f"{self.options.seed} csv {self.number}")
            text, options, truth = csv_damage.damaged(generator)
            path = os.path.join(self.work, "d.csv")
            code, err = self.factor_text(path, text, "c.csv", options,
                                         by_stdin=self.number % 5 == 0)
            if truth is not None and code not in (None, 0):
                self.fail(f"undamaged csv: exit {code} {err}", self.number, [path])
            if code != 0:
                continue
            q, r = (csv_damage.read(self.content(f"c.{part}.csv")) for part in "QR")
            product = q @ r
            # An output as HDF5 says how the text was read.
            self.run("factor", path, "c.h5", "-qf", "--backend", "cpu", "--threads", "1", *options)
            with h5py.File(os.path.join(self.work, "c.h5")) as file:
                found = {name: str(np.asarray(value).astype(str)) for name,
                         value in file.attrs.items()
                         if name.startswith("csv_")}
            expected = csv_damage.read(text, found)
            if not close(expected, product, False) or (truth is not None
                                                       and not close(truth, product, False)):
                self.fail(f"csv: another reader reads something else {found}", self.number, [path])

    def factor_text(self, path, text, output, options=(), by_stdin=False):
        """Factors a text with two fills of memory. Returns the exit code, None where they differ or
        a run did not end well, and standard error."""
        with open(path, "wb") as file:
            file.write(text)
        stem, ending = os.path.splitext(output)
        arguments = ["factor", "-" if by_stdin else path, output, "-qf", "--backend", "cpu",
                     "--threads", "1", "--memory", f"{MEMORY}MiB", *options]
        result = self.run_twice(ending[1:], arguments, [f"{stem}.{part}{ending}" for part in "QR"],
                                [path],
                                stdin=text if by_stdin else None)
        return (None, "") if result is None else result[:2]

    def mtx(self, count):
        for self.number in range(count):
            generator = random.Random(f"{self.options.seed} mtx {self.number}")
            text = csv_damage.damaged_mtx(generator)
            path = os.path.join(self.work, "d.mtx")
            if self.factor_text(path, text, "m.mtx")[0] != 0:
                continue
            # A first line that is damaged makes the file one of another format.
            if not text.lower().startswith(b"%%matrixmarket"):
                self.fail("mtx: accepted without its first line", self.number, [path])
                continue
            q, r = (csv_damage.read_mtx(self.content(f"m.{part}.mtx")) for part in "QR")
            if not close(csv_damage.read_mtx(text), q @ r, False):
                self.fail("mtx: another reader reads something else", self.number, [path])

    def octave(self, count):
        for self.number in range(count):
            generator = random.Random(f"{self.options.seed} octave {self.number}")
            text = csv_damage.damaged_octave(generator)
            path = os.path.join(self.work, "d.txt")
            if self.factor_text(path, text, "t.csv", ("--precision", "double"))[0] != 0:
                continue
            if not text.startswith(csv_damage.OCTAVE):
                continue  # it is CSV then
            q, r = (csv_damage.read(self.content(f"t.{part}.csv")) for part in "QR")
            expected = csv_damage.read_octave(text)
            if expected is None or not close(expected, q @ r, True):
                self.fail("octave: another reader reads something else", self.number, [path])

    def content(self, name):
        return content(os.path.join(self.work, name))

    # ---- NumPy's files ------------------------------------------------------------------------

    def npy(self, count):
        for self.number in range(count):
            generator = random.Random(f"{self.options.seed} npy {self.number}")
            is_archive = self.number % 2 == 1
            damaged = npy_damage.damaged_archive if is_archive else npy_damage.damaged
            data = damaged(generator)
            path = os.path.join(self.work, "d.npz" if is_archive else "d.npy")
            with open(path, "wb") as file:
                file.write(data)
            output = "c.npz" if self.number % 4 < 2 else "c.npy"
            arguments = ["factor", path + ":a" if is_archive else path, output, "-qf", "--backend",
                         "cpu", "--threads", "1", "--memory", f"{MEMORY}MiB"]
            result = self.run_twice("npy", arguments, ["c.npz", "c.Q.npy", "c.R.npy"], [path])
            if result is not None and result[0] == 0 and not self.agrees_with_numpy(path, output):
                self.fail("npy: NumPy reads something else", self.number, [path])

    def agrees_with_numpy(self, path, output):
        """Whether Q R of an output is what NumPy reads from its input."""
        expected, work = npy_damage.read(path), self.work
        if output == "c.npz":
            with np.load(os.path.join(work, output)) as z:
                q, r = z["Q"], z["R"]
        else:
            q, r = (np.load(os.path.join(work, f"c.{part}.npy")) for part in "QR")
        return close(expected, widened(q) @ widened(r), is_single(q.dtype))

    def report(self):
        for (what, code), count in sorted(self.exits.items()):
            print(f"{what}: exit {code}: {count}")
        print(f"most processor time {self.worst['seconds']:.1f} s, most memory "
              f"{self.worst['peak']:.0f} MiB")
        print(f"{len(self.failures)} failures")


def content(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def close(expected, found, single):
    """Whether the numbers are equal up to rounding, matrix by matrix."""
    if expected is None or expected.shape != found.shape:
        return False
    with np.errstate(all="ignore"):
        expected = widened(expected)
        largest = np.abs(expected).max(axis=(-2, -1), keepdims=True) if expected.size else 0
        # Below the least normal number there are fewer digits.
        scaled = np.maximum(largest, np.finfo("f4" if single else "f8").tiny)
        difference = np.abs(expected / scaled - found / scaled)
    return bool((difference <= (1e-4 if single else 1e-11)).all())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qrtool", type=os.path.abspath)
    parser.add_argument("--hdf5", type=int, default=0)
    parser.add_argument("--csv", type=int, default=0)
    parser.add_argument("--mtx", type=int, default=0)
    parser.add_argument("--octave", type=int, default=0)
    parser.add_argument("--npy", type=int, default=0)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--part", default="0/1",
                        help="of the calls, as 0/2 and 1/2 for two processes")
    parser.add_argument("--fail-nth", type=os.path.abspath)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", type=os.path.abspath)
    options = parser.parse_args()
    fuzz = Fuzz(options)
    try:
        fuzz.hdf5(options.hdf5)
        fuzz.csv(options.csv)
        fuzz.mtx(options.mtx)
        fuzz.octave(options.octave)
        fuzz.npy(options.npy)
        if options.calls:
            failing_calls.run(fuzz, options.calls)
        fuzz.report()
    finally:
        fuzz.close()
    return 1 if fuzz.failures else 0


if __name__ == "__main__":
    sys.exit(main())
