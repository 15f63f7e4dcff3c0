#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qrtool-mpi on one machine gives the bits of one process for any number of ranks, and one message
for a failure."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy as np

QRTOOL, MPI_TOOL, FAIL_NTH = sys.argv[1:4]
# Open MPI keeps memory and unloads the plug-ins that allocated it. So its leaks cannot be told from
# ours.
os.environ["ASAN_OPTIONS"] = "detect_leaks=0:verify_asan_link_order=0"
# Ranks that wait leave the cores to those that work. `ob1` is what Open MPI takes on one machine;
# where it is named, no rank waits 0.2 s for the libraries of networks to measure their clocks.
MPIRUN_AS_IT_IS = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--mca",
                   "mpi_yield_when_idle", "1", "--mca", "pml", "ob1"]
# mpirun lets 1 or 2 s pass from SIGTERM to SIGKILL when a rank has ended with a failure. Ranks that
# have agreed on one have nothing left to do then.
MPIRUN = [*MPIRUN_AS_IT_IS, "--mca", "odls_base_sigkill_timeout", "0"]


def child_pids(parent):
    """The process ids of the ranks that mpirun has started."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii") as stat:
                name, rest = stat.read().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):
            continue
        if int(rest.split()[1]) == parent and name.startswith("qrtool"):
            found.append(int(entry))
    return sorted(found)


def wait_for_work(pids, seconds=0.03):
    """Until each process has had so much more processor time, or has ended."""
    def processor_seconds(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            return float("inf")
    enough = {pid: processor_seconds(pid) + seconds for pid in pids}
    while any(processor_seconds(pid) < least for pid, least in enough.items()):
        time.sleep(0.005)



class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-mpi-")
        self.a = self.path("a.h5")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *command, expect=0, **options):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                              **options)
        self.assertEqual(done.returncode, expect, (command, done.stdout, done.stderr))
        return done

    def generate(self, *options):
        self.run_command(QRTOOL, "generate", *options, self.a, "-q", "-f")

    def ranks(self, count, *args, expect=0):
        return self.run_command(*MPIRUN, "-n", str(count), MPI_TOOL, *args, "--backend", "cpu",
                                "--threads", "1",
                                expect=expect)

    def result(self, name):
        with h5py.File(self.path(name)) as file:
            found = {key: file[key][:] for key in ("Q", "R") if key in file}
            found["status"] = file["report"]["status"][:]
        return found

    def expect_same(self, one, other):
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])

    def our_messages(self, done):
        return [line for line in done.stderr.splitlines() if line.startswith("qrtool: ")]

    def test_a_tall_matrix_has_the_same_bits_on_any_number_of_ranks(self):
        self.generate("--shape", "50021x20", "--kind", "cond", "--cond", "1e5")
        # No variant is forced.
        self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "--backend", "cpu")
        one = self.result("one.h5")
        for count in (1, 2, 3, 5, 7, 8):
            done = self.ranks(count, "factor", self.a, self.path("q.h5"), "-f")
            self.assertEqual(done.stdout.count("the matrix passes"), 1)
            self.expect_same(one, self.result("q.h5"))
        self.run_command(QRTOOL, "verify", self.a, self.path("q.h5"))
        for sign in ("positive", "lapack"):
            self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "-f", "--backend",
                             "cpu", "--sign", sign,
                             "--mode", "r")
            self.ranks(3, "factor", self.a, self.path("q.h5"), "-f", "--mode", "r", "--sign", sign)
            np.testing.assert_array_equal(self.result("one.h5")["R"], self.result("q.h5")["R"])

    def test_complex_matrices_have_the_same_bits_on_any_number_of_ranks(self):
        for shape, options in (("40021x12", ()), ("40021x12", ("--mode", "r", "--sign", "lapack")),
                               ("40021x12", ("--pivot", "--condition")), ("11x12x7", ())):
            self.generate("--complex", "--shape", shape, "--kind", "gauss")
            self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "-f", "--backend",
                             "cpu", *options)
            for count in (2, 3):
                self.ranks(count, "factor", self.a, self.path("q.h5"), "-f", *options)
                self.expect_same(self.result("one.h5"), self.result("q.h5"))
            self.run_command(QRTOOL, "verify", self.a, self.path("q.h5"))

    def test_pivoted_columns_are_those_of_one_process(self):
        for shape in ("101x12x7", "50021x20", "2x30000x8"):
            self.generate("--shape", shape, "--kind", "graded-columns", "--precision", "single")
            for options in ([], ["--mode", "r"], ["--sign", "lapack"]):
                given = (*options, "--pivot", "--condition", "-f")
                self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "--backend", "cpu",
                                 *given)
                self.ranks(3, "factor", self.a, self.path("q.h5"), *given)
                self.run_command(QRTOOL, "verify", self.a, self.path("q.h5"))
                with h5py.File(self.path("one.h5")) as one, h5py.File(self.path("q.h5")) as found:
                    for name in ("P", "R", *(["Q"] if "Q" in one else []), "report/rank",
                                 "report/condition"):
                        np.testing.assert_array_equal(found[name], one[name],
                                                      f"{shape} {options} {name}")

    def test_arrays_of_numpy(self):
        random = np.random.default_rng(3)
        arrays = {"tall.npy": random.standard_normal((50021, 8)),
                  "batch.npy": random.standard_normal((101, 12, 7))}
        arrays["columns.npy"] = np.asfortranarray(arrays["tall.npy"])
        for name, a in arrays.items():
            np.save(self.path(name), a)
            self.run_command(QRTOOL, "factor", self.path(name), self.path("one.npy"), "-qf",
                             "--backend", "cpu")
            for out in ("q.npy", "q.npz"):
                self.ranks(3, "factor", self.path(name), self.path(out), "-qf")
            with np.load(self.path("q.npz")) as z:
                for factor in "QR":
                    one = np.load(self.path(f"one.{factor}.npy"))
                    np.testing.assert_array_equal(np.load(self.path(f"q.{factor}.npy")), one)
                    np.testing.assert_array_equal(z[factor], one)
        # Each rank would make its own copy.
        np.savez_compressed(self.path("packed.npz"), a=arrays["batch.npy"])
        np.save(self.path("fortran.npy"), np.asfortranarray(arrays["batch.npy"]))
        for name in ("packed.npz", "fortran.npy"):
            done = self.ranks(2, "factor", self.path(name), self.path("x.h5"), expect=3)
            self.assertIn("must be copied before they are read", done.stderr)

    def test_public_tables(self):
        """Titles, units, thousands and a second table: each rank reads what one process reads, and
        says it once."""
        a = 5000 * np.random.default_rng(4).standard_normal((40021, 5))
        rows = "".join(";".join(f"{x:,.3f}".replace(",", "'") for x in row) + "\n" for row in a)
        name, titled, names = self.path("t.csv"), "Title\nmade today\n", "a;b;c;d;e\n"
        ones = ("--intercept", "--missing", "skip")
        for text, options, notes in (
                (titled + names + "m;s;kg;C;W\n" + rows, (), 2),
                (titled + names + rows + "foot;1\n", ("--names-row", "3", "--end-row", "40024"), 0),
                (names + "NA;1;2;3;4\n" + rows, ones, 1)):
            with open(name, "w", encoding="ascii") as file:
                file.write(text)
            given = ("factor", name, "-f", "--thousands", "apostrophe", *options)
            self.run_command(QRTOOL, *given, self.path("one.h5"), "--backend", "cpu")
            for count in (2, 3):
                done = self.ranks(count, *given, self.path("q.h5"))
                self.assertEqual(len(self.our_messages(done)), notes, done.stderr)
                self.expect_same(self.result("one.h5"), self.result("q.h5"))
            self.run_command(QRTOOL, "verify", name, self.path("q.h5"))
        with open(name, "w", encoding="ascii") as file:
            file.write(names + rows + "\nnames;p;q;r;s\nfoot;1;2;3;4\n")
        done = self.ranks(3, "factor", name, self.path("x.h5"), "--thousands", "apostrophe",
                          expect=3)
        self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
        self.assertIn("--end-row 40023", done.stderr)

    def test_batches_and_small_matrices_are_shared(self):
        for shape in ("101x12x7", "1x5x5", "3x2x9", "0x4x4", "2x30000x8"):
            self.generate("--shape", shape)
            self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "-f", "--backend",
                             "cpu")
            for count in (2, 3, 5):
                self.ranks(count, "factor", self.a, self.path("q.h5"), "-f")
                self.expect_same(self.result("one.h5"), self.result("q.h5"))

    def test_ranks_share_devices(self):
        # Two devices of PoCL: rank r takes device r modulo 2.
        env = dict(os.environ, POCL_DEVICES="pthread pthread")
        for shape in ("101x12x7", "5x40x33"):
            self.generate("--shape", shape)
            self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "-f", "--backend",
                             "opencl", env=env)
            for count, choice in ((2, ("--backend", "opencl")), (3, ("--device", "all"))):
                done = self.run_command(*MPIRUN, "-n", str(count), MPI_TOOL, "factor", self.a,
                                        self.path("q.h5"), "-f",
                                        "--verbose", *choice, env=env)
                self.assertIn("backend opencl", done.stderr)
                self.expect_same(self.result("one.h5"), self.result("q.h5"))
                with h5py.File(self.path("q.h5")) as file:
                    self.assertEqual(file.attrs["backend"], "opencl")

    def test_a_tall_matrix_goes_over_the_devices_of_the_ranks(self):
        self.generate("--shape", "420000x20")  # a leaf of 32 MiB and a short one
        env = dict(os.environ, POCL_DEVICES="pthread pthread")
        found = []
        for count in (2, 3):
            done = self.run_command(*MPIRUN, "-n", str(count), MPI_TOOL, "factor", self.a,
                                    self.path("q.h5"), "-f",
                                    "--backend", "opencl", "--mode", "r", "--explain", env=env)
            self.assertIn(f"by rows, shared by {count} ranks", done.stderr)
            self.run_command(QRTOOL, "verify", self.a, self.path("q.h5"))
            found.append(self.result("q.h5"))
        self.expect_same(*found)

    def test_memory_bounds_each_rank(self):
        self.generate("--shape", "60000x20")
        self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "--backend", "cpu")
        self.ranks(2, "factor", self.a, self.path("q.h5"), "--memory", "10MiB")
        self.expect_same(self.result("one.h5"), self.result("q.h5"))

    def test_a_bad_matrix_ends_with_exit_code_1(self):
        self.generate("--shape", "50000x20")
        with h5py.File(self.a, "r") as file:
            values = file["A"][:]
        values[49999, 3] = np.inf
        with h5py.File(self.a, "w") as file:
            file["A"] = values
        done = self.ranks(3, "factor", self.a, self.path("q.h5"), expect=1)
        self.assertEqual(len(self.our_messages(done)), 1)
        self.assertTrue(np.isnan(self.result("q.h5")["Q"]).all())

    def test_a_rank_without_the_file_ends_all(self):
        self.generate("--shape", "50000x20")
        os.mkdir(self.path("elsewhere"))
        for there, missing in ((self.folder, self.path("elsewhere")),
                               (self.path("elsewhere"), self.folder)):
            each = [MPI_TOOL, "factor", "a.h5", self.path("q.h5"), "--backend", "cpu"]
            done = self.run_command(*MPIRUN, "-n", "1", "-wdir", there, *each, ":", "-n", "1",
                                    "-wdir", missing, *each,
                                    expect=3)
            self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
            self.assertIn("a.h5", self.our_messages(done)[0])
            self.assertFalse(os.path.exists(self.path("q.h5")))

    def different_ranks(self, first, second, expect=0):
        """Runs two ranks with different options."""
        each = [MPI_TOOL, "factor", self.a, self.path("q.h5"), "-f", "--threads", "1"]
        return self.run_command(*MPIRUN, "-n", "1", *each, *first, ":", "-n", "1", *each, *second,
                                expect=expect)

    def test_rank_0_plans_for_all(self):
        # Ranks that find different amounts of free memory would cut the work differently.
        cpu = ["--backend", "cpu"]
        for shape, memories in (("101x200x7", ("480KiB", "1GiB")),
                                ("60000x20", ("10MiB", "17MiB"))):
            self.generate("--shape", shape)
            self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "-f", *cpu)
            for one, two in (memories, memories[::-1]):
                self.different_ranks([*cpu, "--memory", one], [*cpu, "--memory", two])
                self.expect_same(self.result("one.h5"), self.result("q.h5"))

    def test_ranks_share_a_matrix_only_with_the_variant_of_one_process(self):
        self.generate("--shape", "1200x9")
        self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "--backend", "cpu")
        self.ranks(2, "factor", self.a, self.path("q.h5"), "--backend", "cpu")
        self.expect_same(self.result("one.h5"), self.result("q.h5"))
        with h5py.File(self.path("q.h5")) as file:
            self.assertEqual(file.attrs["variant"], "cpu/eigen")

    def test_the_variant_of_rank_0_is_that_of_all(self):
        self.generate("--shape", "11x40x30", "--kind", "cond", "--cond", "1e4")
        found = {}
        for variant in ("cpu/eigen", "cpu/blocked"):
            self.run_command(QRTOOL, "factor", self.a, self.path("one.h5"), "-f", "--variant",
                             variant)
            found[variant] = self.result("one.h5")
        self.assertTrue((found["cpu/eigen"]["Q"] != found["cpu/blocked"]["Q"]).any(),
                        "nothing would show")
        for one, two in (("cpu/eigen", "cpu/blocked"), ("cpu/blocked", "cpu/eigen")):
            self.different_ranks(["--variant", one], ["--variant", two])
            self.expect_same(found[one], self.result("q.h5"))

    def test_ranks_with_different_options_are_refused(self):
        self.generate("--shape", "101x12x7")
        for one, two, said in ((["--mode", "r"], [], "--mode r, rank 1 no --mode"),
                               ([], ["--sign", "lapack"], "no --sign, rank 1 --sign lapack"),
                               (["--precision", "double"], ["--precision", "single"],
                                "--precision double, rank 1 --precision single"),
                               (["--check", "none"], [], "--check none, rank 1 no --check"),
                               ([], ["--scratch", "."], "no --scratch, rank 1 --scratch .")):
            done = self.different_ranks(one, two, expect=2)
            self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
            self.assertIn("rank 0 was given " + said, done.stderr)
            self.assertFalse(os.path.exists(self.path("q.h5")))

    def test_ranks_that_read_different_files_are_refused(self):
        random = np.random.default_rng(5)
        first = random.standard_normal((101, 12, 7))
        changed = first.copy()
        changed[60, 3, 4] += 1e-9
        others = {"count": (random.standard_normal((55, 12, 7)), "rank 1 55 of 12x7 float64"),
                  "columns": (random.standard_normal((101, 12, 8)), "rank 1 101 of 12x8 float64"),
                  "type": (first.astype(np.float32), "12x7 float32"),
                  "numbers": (changed, "rank 1 reads another file than rank 0")}
        np.save(self.path("a.npy"), first)
        each = [MPI_TOOL, "factor", "--backend", "cpu", self.path("q.h5"), "-f"]
        for name, (array, said) in others.items():
            np.save(self.path("other.npy"), array)
            done = self.run_command(*MPIRUN, "-n", "1", *each[:2], self.path("a.npy"), *each[2:],
                                    ":", "-n", "1", *each[:2], self.path("other.npy"), *each[2:],
                                    expect=3)
            self.assertEqual(len(self.our_messages(done)), 1, (name, done.stderr))
            self.assertIn(said, done.stderr)
            self.assertFalse(os.path.exists(self.path("q.h5")))
        # A copy that is equal, under another name, will do.
        shutil.copy(self.path("a.npy"), self.path("copy.npy"))
        self.run_command(*MPIRUN, "-n", "1", *each[:2], self.path("a.npy"), *each[2:], ":", "-n",
                         "1", *each[:2], self.path("copy.npy"), *each[2:])

    def test_ranks_do_not_mix_backends(self):
        self.generate("--shape", "101x12x7")
        for one, two in (("cpu", "opencl"), ("opencl", "cpu")):
            done = self.different_ranks(["--backend", one], ["--backend", two], expect=4)
            self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
            self.assertIn(f"rank 0 would compute on {one}, rank 1 on {two}", done.stderr)
            self.assertFalse(os.path.exists(self.path("q.h5")))

    def test_damage_found_by_one_rank_ends_all(self):
        self.generate("--shape", "50000x20")
        with open(self.a, "r+b") as file:  # in the last rows, which another rank reads
            file.seek(-5000, os.SEEK_END)
            file.write(b"x" * 100)
        done = self.ranks(3, "factor", self.a, self.path("q.h5"), expect=3)
        self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
        self.assertIn("damaged", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["a.h5"])

    def test_a_full_disk_ends_all(self):
        self.generate("--shape", "50000x20")
        for call, nth in (("fallocate", 1), ("pwrite", 1), ("pwrite", 4), ("fsync", 1)):
            failing = ["env", f"LD_PRELOAD={FAIL_NTH}", f"QRTOOL_FAIL_CALL={call}",
                       f"QRTOOL_FAIL_NTH={nth}",
                       "QRTOOL_FAIL_STICKY=1", "QRTOOL_FAIL_ERRNO=28",
                       f"QRTOOL_FAIL_LOG={self.path('log')}"]
            done = self.run_command(*MPIRUN, "-n", "3", *failing, MPI_TOOL, "factor", self.a,
                                    self.path("q.h5"),
                                    "--backend", "cpu", "--threads", "1", expect=5)
            self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
            self.assertIn("q.h5", self.our_messages(done)[0])
            self.assertTrue(os.path.exists(self.path("log")), call)
            os.remove(self.path("log"))
            self.assertEqual(os.listdir(self.folder), ["a.h5"])

    def test_a_killed_rank_leaves_nothing(self):
        self.generate("--shape", "1000000x40", "--kind", "uniform")
        for victim in (0, 1):
            with subprocess.Popen([*MPIRUN_AS_IT_IS, "-n", "2", MPI_TOOL, "factor", self.a,
                                   self.path("q.h5"), "--backend",
                                   "cpu", "--threads", "1"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE) as run:
                ranks = []
                for _ in range(2000):
                    ranks = child_pids(run.pid)
                    if len(ranks) == 2 and len(os.listdir(self.folder)) > 1:
                        break  # the temporary file is there: they are at work
                    time.sleep(0.005)
                wait_for_work(ranks)  # until both know of it
                self.assertEqual(len(ranks), 2)
                os.kill(ranks[victim], signal.SIGKILL)
                _, said = run.communicate(timeout=60)
                self.assertEqual(run.returncode, 128 + signal.SIGKILL)
            ours = [line for line in said.decode().splitlines() if line.startswith("qrtool: ")]
            self.assertEqual(ours, ["qrtool: interrupted; nothing written"], said)
            self.assertEqual(os.listdir(self.folder), ["a.h5"])

    def test_an_interrupt_is_said_once(self):
        self.generate("--shape", "1000000x40", "--kind", "uniform")
        with subprocess.Popen([*MPIRUN_AS_IT_IS, "-n", "3", MPI_TOOL, "factor", self.a,
                               self.path("q.h5"), "--backend", "cpu",
                               "--threads", "1"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE) as run:
            for _ in range(2000):
                if len(os.listdir(self.folder)) > 1:
                    break
                time.sleep(0.005)
            wait_for_work(child_pids(run.pid))  # until all ranks know of the temporary file
            for rank in reversed(child_pids(run.pid)):  # rank 0 last
                os.kill(rank, signal.SIGTERM)
            _, said = run.communicate(timeout=60)
        self.assertEqual(said.decode().count("qrtool: "), 1, said)
        self.assertIn("qrtool: interrupted; nothing written", said.decode())
        self.assertEqual(os.listdir(self.folder), ["a.h5"])

    def test_usage_is_said_once(self):
        done = self.ranks(3, "factor", self.a, "--nonsense", expect=2)
        self.assertEqual(len(self.our_messages(done)), 1, done.stderr)
        done = self.run_command(*MPIRUN, "-n", "2", MPI_TOOL, "--version")
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_bench_runs_in_one_process(self):
        done = self.ranks(3, "bench", "--shape", "4000x8", "--mode", "r", "--against", "none",
                          "--json")
        self.assertGreater(json.loads(done.stdout)["cases"][0]["seconds"]["median"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
