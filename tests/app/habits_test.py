#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people expect of any command-line tool: words of other programs, variables of the
environment, a log, colours, completion, and a word where mpirun starts the wrong program."""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import unittest

from tool import QRTOOL, FolderTest, has_device

ROOT = pathlib.Path(sys.argv[2]).resolve()
QRTOOL_MPI = QRTOOL + "-mpi"
DIGITS = str(ROOT / "samples/digits.h5") + ":/images"
COMMANDS = ("factor", "solve", "append", "apply", "verify", "generate", "info", "devices",
            "bench")
RED = "\x1b[31m"


def run(*args, status=0, program=QRTOOL, **variables):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("QRTOOL_", "NO_COLOR"))}
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=300,
                          check=False,
                          env={**environment, **variables})
    assert done.returncode == status, (args, variables, done.returncode, done.stdout, done.stderr)
    return done


def on_terminal(*args, status=0, **variables):
    """What a run shows on a terminal."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment.update({"TERM": "xterm", **variables})
    with subprocess.Popen([QRTOOL, *args], stdout=theirs, stderr=theirs,
                          env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert process.returncode == status, (args, process.returncode, shown)
    return shown.decode()


class Habits(FolderTest):
    def factor(self, *options, **variables):
        return json.loads(run("factor", DIGITS, "q.h5", "-f", "--json", *options,
                              **variables).stdout)

    def test_words_of_other_programs(self):
        for word, ours in (("float32", "single"), ("float64", "double")):
            self.assertEqual(self.factor("--precision", word)["output"]["precision"], ours)
        for word, ours in (("full", "complete"), ("economy", "reduced"), ("econ", "reduced"),
                           ("economic", "reduced")):
            self.assertEqual(self.factor("--mode", word)["output"]["mode"], ours)
        run("generate", "--shape", "3x4x2", "a.npy", "--precision", "float64")
        run("devices", "--precision", "float64")
        run("bench", "--shape", "4x3", "--precision", "float64", "--mode", "economy", "--backend",
            "cpu", "--against", "none")
        run("solve", str(ROOT / "samples/strd/longley.csv"), "x.h5", "--response", "y",
            "--precision", "float64")
        self.assertIn("'thin' is not one of reduced, complete, r, raw",
                      run("factor", DIGITS, "q.h5", "--mode", "thin", status=2).stderr)
        self.assertEqual(run("factor", DIGITS, "o.h5", "--backend", "gpu", "--device",
                             "none of that name", status=4).stdout, "")

    def test_a_gpu_is_a_gpu(self):
        if not has_device():
            self.skipTest("no OpenCL device")
        named = run("factor", DIGITS, "c.h5", "--backend", "opencl").stdout.splitlines()
        self.assertNotIn(" on opencl ", named[0])
        if ", a CPU (opencl/" in named[0]:  # there is no GPU
            said = run("factor", DIGITS, "o.h5", "--backend", "gpu", status=4).stderr
            self.assertIn("--backend gpu: there is no GPU", said)
            run("factor", DIGITS, "o.h5", *re.search("hint: (--backend opencl)", said)[1].split())

    def test_summaries_are_short(self):
        run("generate", "--shape", "20x4", "s.csv", "--precision", "double")
        self.assertEqual(len(run("factor", "s.csv", "s.h5").stdout.splitlines()), 3)
        self.assertIn("\nstart ", run("factor", "s.csv", "s.h5", "-f", "-v").stdout)
        said = run("solve", "s.csv", "o.csv", "--response", "4").stdout.splitlines()
        self.assertEqual(said[3].split(), ["term", "x", "se", "t", "p"])
        self.assertEqual(len(said), 7, said)
        self.assertNotRegex("".join(said), r" (us|ms|s)\b")
        shown = run("solve", "s.csv", "o.csv", "-f", "-v", "--response", "4").stdout
        self.assertIn("total ", shown)

    def test_the_environment_speaks_where_the_line_is_silent(self):
        self.assertEqual(self.factor(QRTOOL_THREADS="1")["plan"]["threads"], 1)
        run("factor", DIGITS, "q.h5", "-f", status=6, QRTOOL_MEMORY="1KiB")
        self.factor("--memory", "1GiB", QRTOOL_MEMORY="1KiB")
        self.factor(QRTOOL_THREADS="", QRTOOL_MEMORY="")
        said = run("factor", DIGITS, "q.h5", "-f", status=2, QRTOOL_THREADS="many").stderr
        self.assertIn("QRTOOL_THREADS: --threads: 'many'", said)
        self.factor("--threads", "1", QRTOOL_THREADS="many")
        run("verify", DIGITS, "q.h5", status=2, QRTOOL_THREADS="0")
        # A device is named, but none is asked for: so little work stays on the CPU.
        self.assertEqual(self.factor(QRTOOL_DEVICE="none of that name")["backend"]["name"], "cpu")
        run("factor", DIGITS, "q.h5", "-f", "--backend", "opencl", status=4,
            QRTOOL_DEVICE="none of that name")

    def test_every_command_takes_the_same_options(self):
        for command in COMMANDS:
            text = run(command, "--help").stdout
            for option in ("--json", "-q, --quiet", "-v, --verbose", "--progress WORD",
                           "--log FILE"):
                self.assertIn(f"  {option} ", text, command)
        common = ("-v", "--progress", "never", "--log", "log")
        run("generate", "--shape", "5x4x3", "a.h5", *common)
        run("factor", "a.h5", "q.h5", *common)
        run("verify", "a.h5", "q.h5", *common)
        run("solve", str(ROOT / "samples/strd/longley.csv"), "x.h5", "--response", "y", *common)
        run("devices", *common)
        run("bench", "--shape", "4x3", "--backend", "cpu", "--against", "none", *common)
        self.assertEqual(run("devices", "-q").stdout, "")
        self.assertIn("seconds", run("generate", "--shape", "5x4x3", "b.h5", "--json").stdout)

    def test_a_log_keeps_what_was_printed(self):
        first = run("factor", DIGITS, "q.h5", "--order", "row", "--log", "run.log")
        second = run("factor", DIGITS, "q.h5", "--log", "run.log", status=5)
        lines = pathlib.Path("run.log").read_text(encoding="utf-8").splitlines()
        self.assertTrue(all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in lines),
                        lines)
        texts = [line[20:] for line in lines]
        said = [*first.stdout.splitlines(), "exit status 0"]
        line = "factor " + DIGITS + " q.h5 --order row --log run.log"
        self.assertTrue(texts[0].startswith("$ ") and texts[0].endswith(line))
        self.assertEqual(texts[1:1 + len(said)], said)
        self.assertEqual(texts[2 + len(said):], [*second.stderr.splitlines(), "exit status 5"])
        run("factor", DIGITS, "q.h5", "-f", "-q", "--log", "run.log")
        pathlib.Path("mine.txt").write_text("my notes\n", encoding="utf-8")
        self.assertIn("exists and is no log", run("factor", DIGITS, "q.h5", "-f", "--log",
                                                  "mine.txt", status=2).stderr)
        self.assertEqual(pathlib.Path("mine.txt").read_text(encoding="utf-8"), "my notes\n")
        run("factor", DIGITS, "q.h5", "-f", "--log", "none/run.log", status=5)

    def test_a_log_is_no_output(self):
        """An output would replace it."""
        for args in (("q.h5", "--log", "./q.h5"), ("q.csv", "--log", "q.report.csv"),
                     ("q.h5", "--report", "r.csv", "--log", "r.csv")):
            before = sorted(os.listdir("."))
            self.assertIn("would be an output of the run, too",
                          run("factor", DIGITS, *args, "-f", status=2).stderr)
            self.assertEqual(sorted(os.listdir(".")), before)

    def test_failures_are_red_on_a_terminal(self):
        pathlib.Path("nan.csv").write_text("1,2\n3,nan\n5,6\n", encoding="utf-8")
        runs = ((("factor", "none.h5", "q.h5"), 3), (("factor", "nan.csv", "q.h5", "-f"), 1),
                (("verify", "nan.csv", "q.h5"), 1))
        for args, status in runs:
            self.assertIn(RED, on_terminal(*args, status=status), args)
            self.assertNotIn(RED, on_terminal(*args, status=status, NO_COLOR="1"), args)
            self.assertNotIn(RED, on_terminal(*args, status=status, TERM="dumb"), args)
            self.assertIn(RED, on_terminal(*args, status=status, NO_COLOR=""), args)
            done = run(*args, status=status, TERM="xterm")
            self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertNotIn(RED, on_terminal("factor", DIGITS, "q.h5", "-f"))
        on_terminal("factor", "none.h5", "q.h5", "-f", "--log", "run.log", status=3)
        self.assertNotIn("\x1b", pathlib.Path("run.log").read_text(encoding="utf-8"))

    def complete(self, *words):
        return [line.split("\t")[0] for line in run("complete", *words).stdout.splitlines()]

    def test_completion_knows_all_options_and_their_values(self):
        self.assertEqual(self.complete("")[:len(COMMANDS)], list(COMMANDS))
        self.assertEqual(self.complete("ver"), ["verify"])
        self.assertEqual(self.complete("help", "s"), ["solve"])
        for command in COMMANDS:
            text = run(command, "--help").stdout
            options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.M))
            self.assertEqual(set(self.complete(command, "--")), options, command)
            # Every list of words in the help is offered, too.
            for option, words in re.findall(r"^  (--[\w-]+) WORD\s(.*?)(?=^  -|\Z)", text,
                                            re.M | re.S):
                last = " ".join(words.split()).rsplit(": ", 1)[-1]
                listed = [word.strip() for word in last.split(",")]
                if option != "--sweep":
                    self.assertEqual(self.complete(command, option, ""), listed, (command, option))
        self.assertEqual(self.complete("factor", "a.h5", "--mode", "r"), ["reduced", "r", "raw"])
        self.assertEqual(self.complete("factor", "--mode=ra"), ["--mode=raw"])
        self.assertEqual(self.complete("factor", "--mode", "=", "ra"), ["raw"])
        self.assertIn("cpu/batched", self.complete("bench", "--variant", "cpu/"))
        self.assertEqual(self.complete("factor", "--device", "al"), ["all"])
        self.assertIn("haar", self.complete("generate", "--kind", ""))
        self.assertEqual(self.complete("factor", "--report", ""), [])
        self.assertEqual(self.complete("factor", "a"), [])

    def test_completion_in_bash(self):
        script = (f'source {ROOT}/app/package/qrtool.bash; compopt() {{ :; }}; '
                  f'COMP_WORDS=({QRTOOL} factor --sign ""); '
                  'COMP_CWORD=3; _qrtool; echo "${COMPREPLY[*]}"')
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("positive lapack\n", ""))

    def test_copies_by_mpirun_are_noticed(self):
        for size, rank in (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
                           ("PMI_SIZE", "PMI_RANK")):
            done = run("factor", DIGITS, "q.h5", status=2, **{size: "2", rank: "0"})
            self.assertIn("mpirun started 2 copies of qrtool", done.stderr)
            self.assertIn("mpirun -n 2 qrtool-mpi", done.stderr)
            self.assertEqual(run("factor", DIGITS, "q.h5", status=2,
                                 **{size: "2", rank: "1"}).stderr, "")
            self.assertFalse(os.path.exists("q.h5"))
            run("--version", **{size: "1", rank: "0"})

    def test_the_program_over_mpi_names_itself(self):
        if not os.path.exists(QRTOOL_MPI) or shutil.which("mpirun") is None:
            self.skipTest("built without MPI")
        for args in (("--help",), ("help",)):
            self.assertIn("mpirun -n P qrtool-mpi COMMAND", run(*args, program=QRTOOL_MPI).stdout)
        self.assertIn("usage: qrtool-mpi factor ",
                      run("factor", "--help", program=QRTOOL_MPI).stdout)
        self.assertIn("qrtool-mpi factor --help lists",
                      run("factor", "--nonsense", program=QRTOOL_MPI, status=2).stderr)
        self.assertNotIn("qrtool-mpi", run("factor", "--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
