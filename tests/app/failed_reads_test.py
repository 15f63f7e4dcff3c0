#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that read files fail one after another: the tool says so as an error of the input, and what
it prints with exit code 0 is what it prints where no call fails."""
import errno
import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL, FAIL_NTH = (os.path.abspath(path) for path in sys.argv[1:3])
MOST = 400  # calls of one kind
EXIT_INPUT, EXIT_OUTPUT = 3, 5


class FailedReads(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-reads-")
        self.log = os.path.join(self.folder, "log")
        generator = np.random.default_rng(5)
        with h5py.File(self.path("a.h5"), "w") as file:
            file["A"] = generator.standard_normal((9, 3))
            file["b"] = generator.standard_normal(9)
        np.save(self.path("a.npy"), generator.standard_normal((9, 3)))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *arguments, **environment):
        done = subprocess.run([QRTOOL, *arguments], capture_output=True, text=True, timeout=60,
                              check=False, cwd=self.folder,
                              env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
        return done.returncode, done.stdout, done.stderr

    def each_failure(self, call, error, *arguments, **environment):
        """Runs the command as often as it makes the call, the Nth of which fails in run N."""
        for number in range(1, MOST):
            if os.path.exists(self.log):
                os.remove(self.log)
            result = self.run_tool(*arguments, LD_PRELOAD=FAIL_NTH, QRTOOL_FAIL_CALL=call,
                                   QRTOOL_FAIL_NTH=str(number), QRTOOL_FAIL_ERRNO=str(error),
                                   QRTOOL_FAIL_LOG=self.log, **environment)
            if not os.path.exists(self.log):
                return
            yield number, result
        self.fail(f"more than {MOST} calls of {call}")

    def changed_at_each(self, call, change, *arguments):
        """Runs the command as often as it makes the call. In run N it is stopped in call N, the
        input is changed, and the command goes on."""
        for number in range(1, MOST):
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "LD_PRELOAD": FAIL_NTH,
                           "QRTOOL_FAIL_CALL": call, "QRTOOL_FAIL_NTH": str(number),
                           "QRTOOL_FAIL_KILL": str(int(signal.SIGSTOP)),
                           "QRTOOL_FAIL_LOG": self.log}
            with subprocess.Popen([QRTOOL, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                  env=environment) as process:
                has_stopped = os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
                if not has_stopped:
                    return
                change()
                process.send_signal(signal.SIGCONT)
                _, said = process.communicate(timeout=60)
            yield number, process.returncode, said
        self.fail(f"more than {MOST} calls of {call}")

    def outputs(self):
        """Outputs of both commands in several formats: their names, and how they are verified."""
        for ending in ("h5", "npy", "npz", "csv", "mtx"):
            factors, solutions = f"q.{ending}", f"x.{ending}"
            self.assertEqual(self.run_tool("factor", "a.h5:/A", factors, "-qf")[0], 0)
            self.assertEqual(self.run_tool("solve", "a.h5:/A", "a.h5:/b", solutions, "-qf")[0], 0)
            yield factors, ("verify", "a.h5:/A", factors)
            yield solutions, ("verify", "a.h5:/A", "a.h5:/b", solutions)

    def test_reports_that_cannot_be_read(self):
        for _, verify in self.outputs():
            for number, (code, _, said) in self.each_failure("read", errno.EIO, *verify):
                self.assertIn(code, (0, EXIT_INPUT), (verify, number, said))

    def test_info_says_what_it_cannot_read(self):
        for name, _ in self.outputs():
            whole = self.run_tool("info", name)
            self.assertEqual(whole[0], 0, whole)
            for call, error in (("open", errno.EMFILE), ("fstat", errno.EIO)):
                for number, result in self.each_failure(call, error, "info", name):
                    # A dataset may be listed with what is wrong with it.
                    if result[0] == 0 and os.strerror(error) not in result[1]:
                        self.assertEqual(result[1], whole[1], (name, call, number))
                    # Numbers of .mtx are copied to a scratch file, which may be what fails.
                    self.assertIn(result[0], (0, EXIT_INPUT, EXIT_OUTPUT),
                                  (name, call, number, result))

    def test_interrupted_reads_go_on(self):
        for name in ("a.h5:/A", "a.npy"):
            for number, (code, _, said) in self.each_failure(
                    "pread", errno.EINTR, "factor", name, "q.h5", "-qf", "--backend", "cpu"):
                self.assertEqual(code, 0, (name, number, said))

    def compressed(self):
        """Files of text that gzip compressed, and of HDF5 behind a block of text."""
        complex_text = ("%%MatrixMarket matrix array complex general\n2 2\n"
                        "1 2\n3 4\n5 6\n7 9\n")
        octave = ("# Created by Octave 7.3.0\n# name: S\n# type: sparse matrix\n# nnz: 3\n"
                  "# rows: 3\n# columns: 3\n1 1 5\n2 2 6\n3 3 7\n")
        for name, text in (("c.mtx.gz", complex_text), ("s.txt.gz", octave),
                           ("t.csv.gz", "1,2\n3,4\n5,7\n")):
            with gzip.open(self.path(name), "wt") as file:
                file.write(text)
            yield name
        with h5py.File(self.path("user.csv"), "w", userblock_size=512) as file:
            file["A"] = np.eye(3)
        with open(self.path("user.csv"), "r+b") as file:
            file.write(b"1,2\n" * 128)
        yield "user.csv"

    def test_reads_that_fail_while_the_format_is_found(self):
        for name in self.compressed():
            command = ("factor", name, "q.csv", "-f", "--mode", "r", "--backend", "cpu")
            whole = self.run_tool(*command)
            self.assertIn(whole[0], (0, EXIT_INPUT))
            for error, short in ((errno.EIO, ""), (errno.EINTR, ""), (0, "1")):
                runs = 0
                for number, result in self.each_failure("pread", error, *command,
                                                        QRTOOL_FAIL_SHORT=short):
                    where, runs = (name, error, number, result), runs + 1
                    if error == errno.EIO:
                        self.assertEqual(result[0], EXIT_INPUT, where)
                    else:
                        self.assertEqual((result[0], result[2]), (whole[0], whole[2]), where)
                self.assertGreater(runs, 1, name)

    def test_reads_of_fewer_bytes_go_on(self):
        def content():
            with open(self.path("r.R.npy"), "rb") as file:
                return file.read()

        np.savez_compressed(self.path("a.npz"), np.load(self.path("a.npy")))
        np.savetxt(self.path("a.csv"), np.load(self.path("a.npy")), "%.17g", ",")
        for name in ("a.h5:/A", "a.npy", "a.npz", "a.csv"):
            command = ("factor", name, "r.npy", "-qf", "--mode", "r", "--backend", "cpu")
            self.assertEqual(self.run_tool(*command)[0], 0)
            whole, runs = content(), 0
            for call in ("pread", "read"):
                for number, (code, _, said) in self.each_failure(call, 0, *command,
                                                                 QRTOOL_FAIL_SHORT="1"):
                    runs += 1
                    self.assertEqual((code, said), (0, ""), (name, call, number))
                    self.assertEqual(content(), whole, (name, call, number))
            self.assertGreater(runs, 0, name)

    def test_a_signal_while_a_file_gets_its_name(self):
        for command in (("generate", "--shape", "3x4x4", "g.npy"),
                        ("factor", "a.npy", "g.h5", "--backend", "cpu")):
            code, _, said = self.run_tool(*command, "-q", LD_PRELOAD=FAIL_NTH,
                                          QRTOOL_FAIL_CALL="rename", QRTOOL_FAIL_NTH="1",
                                          QRTOOL_FAIL_KILL=str(int(signal.SIGTERM)),
                                          QRTOOL_FAIL_LOG=self.log)
            self.assertEqual(code, -signal.SIGTERM)
            self.assertTrue(os.path.exists(self.path(command[2 if "factor" in command else -1])))
            self.assertEqual(said, "qrtool: interrupted while the output was being finished\n")

    def test_a_file_that_changes_while_it_is_opened(self):
        arrays = np.random.default_rng(6).standard_normal((2, 60, 9, 3))
        contents = {}
        for ending, save in (("npz", np.savez), ("npy", np.save)):
            contents[ending] = []
            for array in arrays:
                save(self.path(f"c.{ending}"), array)
                with open(self.path(f"c.{ending}"), "rb") as file:
                    contents[ending].append(file.read())
        for ending, (first, second) in contents.items():
            name = self.path(f"c.{ending}")

            def overwrite():
                with open(name, "r+b") as file:
                    file.write(second)  # pylint: disable=cell-var-from-loop

            def cut():
                os.truncate(name, len(first) // 2)  # pylint: disable=cell-var-from-loop

            def restore():
                with open(name, "wb") as file:
                    file.write(first)  # pylint: disable=cell-var-from-loop

            for change in (overwrite, cut):
                restore()
                for number, code, said in self.changed_at_each(
                        "pread", change, "factor", f"c.{ending}", "q.npz", "-qf", "--backend",
                        "cpu"):
                    where = (ending, change.__name__, number, said)
                    self.assertIn(code, (0, EXIT_INPUT), where)
                    if code == 0:  # all of one file
                        with np.load(self.path("q.npz")) as file:
                            product = file["Q"] @ file["R"]
                        self.assertTrue(any(np.allclose(product, array, atol=1e-12)
                                            for array in arrays), where)
                    restore()

    def test_a_file_that_cannot_be_opened_twice(self):
        for number, (code, _, said) in self.each_failure(
                "open", errno.EMFILE, "factor", "a.npy", "q.npy", "-qf", "--backend", "cpu"):
            self.assertIn(code, (0, EXIT_INPUT, EXIT_OUTPUT), (number, said))
            if code == EXIT_INPUT:
                self.assertIn("Too many open files", said, number)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
