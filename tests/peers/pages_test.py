#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BENCHMARKS.md, its picture and the numbers of README.md are what pages.py makes of results/."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
PAGES = ROOT / "tests/peers/pages.py"
HEAD = {"schema": "qrtool.peers/1", "part": "cpu", "commit": "0123456789ab", "date": "2026-11-27",
        "machine": {"processor": "Pretend CPU", "instructions": "AVX2", "cores": 2},
        "versions": {"qrtool": "1"}}
NEEDED = {"batches", "large", "files"}  # by the first lines of the page


def piece(name, results, others=0.0):
    return {"name": name, "commands": [f"measure {name}"], "seconds": 1, "others": others,
            "results": results}


def batches(threads, own, peer, **more):
    case = {"m": 64, "n": 64, "batch": 1000, "precision": "single", "mode": "reduced",
            "seconds": {"qrtool": own, "MKL 2026.2, libmkl_rt.so.3, one": peer}, **more}
    return {"threads": threads, "cases": [case]}


def gpu_case(mode, **peers):
    return {"m": 64, "n": 64, "batch": 15000, "precision": "single", "mode": mode,
            "seconds": {"qrtool": [1e-3], **peers}}


def device_files(name, job, **samples):
    one = piece(name, [{"file_system": "ext4", "jobs": {job: samples}}])
    return {**one, "commands": ["device_files.py qrtool {folder} {json} --limit 12"]}


class PagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qrtool-pages-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.results = self.root / "tests/peers/results"
        shutil.copytree(ROOT / "tests/peers/results", self.results)
        (self.root / "samples").mkdir()
        for name in ("README.md", "BENCHMARKS.md", "samples/benchmarks.gp",
                     "samples/benchmarks.svg"):
            shutil.copy(ROOT / name, self.root / name)

    def check(self, *more, status=0):
        done = subprocess.run([sys.executable, PAGES, "--root", self.root, *more],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def measured(self, pieces, name="pretend.json", **head):
        (self.results / name).write_text(json.dumps({**HEAD, **head, "pieces": pieces}))

    def page_of(self, pieces, part="cpu"):
        """The page of these pieces, with those of the repository for what else it must show."""
        own = {one["name"].split(" ")[0] for one in pieces}
        needed = {}
        for path in self.results.glob("*.json"):
            file = json.loads(path.read_text())
            if file.get("part") == part:
                path.unlink()
                needed.update((one["name"], one) for one in file["pieces"]
                              if one["name"].split(" ")[0] in NEEDED - own)
        self.measured(pieces + list(needed.values()), part=part)
        sys.path.insert(0, str(PAGES.parent))
        import pages
        return pages.Page(self.results).benchmarks()

    def test_the_pages_are_what_their_results_make(self):
        self.check("--check")

    def test_a_number_that_is_typed_is_found(self):
        for name in ("README.md", "BENCHMARKS.md", "samples/benchmarks.gp"):
            before = (self.root / name).read_text()
            # The last number: of README.md the first one that is made.
            at = before.index("times as long") if name == "README.md" else len(before)
            digit = [found.start() for found in re.finditer(r"\d", before[:at])][-1]
            changed = str((int(before[digit]) + 1) % 10)
            (self.root / name).write_text(before[:digit] + changed + before[digit + 1:])
            self.assertIn(f"{name}: is not what", self.check("--check", status=1))
            (self.root / name).write_text(before)

    def test_a_number_that_changes_in_the_results_is_found(self):
        found = [(path, json.loads(path.read_text())) for path in self.results.glob("*.json")]
        path, file = max((one for one in found if one[1].get("part") == "cpu"),
                         key=lambda one: len(one[1]["pieces"]))  # the page shows more of it
        work = next(one for one in file["pieces"] if one["name"].startswith("files "))
        for run in work["results"][0]["runs"]["h5py, numpy.linalg.qr"]:
            run["wall"] *= 10
        path.write_text(json.dumps(file))
        said = self.check("--check", status=1)
        for name in ("README.md", "BENCHMARKS.md", "samples/benchmarks.gp",
                     "samples/benchmarks.svg"):
            self.assertIn(f"{name}: is not what", said)

    def test_the_page_is_short_and_begins_with_what_is_slower(self):
        lines = (ROOT / "BENCHMARKS.md").read_text().splitlines()
        self.assertLess(len(lines), 250)
        headings = [i for i, line in enumerate(lines) if line.startswith("## ")]
        self.assertEqual(lines[headings[0]], "## Slower than another program")
        self.assertIn("](samples/benchmarks.svg)", "\n".join(lines[:4]))
        self.assertLessEqual(headings[0], 15)

    def test_parts_of_different_runs_are_refused(self):
        one = piece("batches single 1", [batches(1, [1e-3], [2e-3])])
        two = piece("batches single 2", [batches(2, [1e-3], [2e-3])])
        for word, other in (("commit", "ba9876543210"), ("versions", {"qrtool": "2"})):
            self.measured([one], "a.json")
            self.measured([two], "b.json", **{word: other})
            self.assertIn("b.json: has 'batches', as ", self.check("--check", status=1))
        self.measured([two], "b.json")
        self.assertIn("BENCHMARKS.md: is not what", self.check("--check", status=1))
        self.measured([one], "b.json")
        self.assertIn("is there twice", self.check("--check", status=1))
        self.measured([two], "b.json", commit="0123456789ab-changed")
        self.assertIn("sources that no commit has", self.check("--check", status=1))

    def test_ratios_are_taken_within_a_round(self):
        page = self.page_of([piece("batches single 1", [
            batches(1, [1e-3, 2e-3, 10e-3], [3e-3, 6e-3, 30e-3])])])
        self.assertIn("| 64 x 64 | 2; -- | 3; -- |", page)
        self.assertIn("MKL 2026.2, 1 thread / qrtool", page)
        self.assertIn("2 cores of Pretend CPU (AVX2); commit 0123456789ab, 2026-11-27", page)
        self.assertIn("`measure batches single 1`", page)

    def test_r_alone_stands_behind_q_and_r(self):
        page = self.page_of([piece("batches single 1", [
            batches(1, [2e-3], [4e-3]), batches(1, [1e-3], [8e-3], mode="r")])])
        self.assertIn("| 64 x 64 | 2, 1; -- | 2, 8; -- |", page)
        self.assertIn("takes 2 times as long on 2 cores of Pretend CPU", page)

    def test_a_cell_that_is_slower_is_listed_first(self):
        page = self.page_of([piece("batches single 1", [batches(1, [2e-3], [1e-3])])])
        listed = "Pretend CPU (AVX2), 1 thread: Q and R of 64 x 64 float32: MKL 2026.2 0.5"
        self.assertLess(page.index(listed), page.index("## On a CPU"))

    def test_what_was_measured_under_load_is_left_out(self):
        page = self.page_of([piece("several", [{"cases": [
            {"m": 64, "n": 64, "batch": 400000, "seconds": {"one": [3], "all": [1.6]}}]}], 0.2)])
        self.assertNotIn("400,000 of 64 x 64", page)
        self.assertIn("Left out, as other programs used the machine: several", page)

    def test_a_program_that_forms_no_q_has_a_dash_for_it(self):
        page = self.page_of([piece("batches single", [{"cases": [
            gpu_case("reduced", **{"PyTorch 2.11": [4e-3], "cuSolverDx 0.5.0, 96 threads": [3e-3]}),
            gpu_case("r", **{"cuBLAS 13.1.0 geqrfBatched": [2e-3]})]}])], "gpu")
        self.assertIn("| 15,000 of 64 x 64 | 1, 1; -- | 4; -- | 3; -- | --, 2; -- |", page)
        self.assertIn("cuSolverDx 0.5.0 / qrtool | cuBLAS 13.1.0 geqrfBatched / qrtool", page)
        self.assertRegex(page, "the fastest other program 3 times as long")

    def test_complex_matrices_have_both_types_in_a_cell(self):
        def one(element, own, scale):
            return {**batches(1, own, [scale * x for x in own], precision=element)["cases"][0]}
        cpu = self.page_of([piece(f"complex {name} 1", [{"threads": 1, "cases": [
            one(element, own, 3), {**one(element, own, 4), "mode": "r"}]}])
            for name, element, own in (("single", "complex64", [1e-3]),
                                       ("double", "complex128", [2e-3]))])
        self.assertIn("| 64 x 64 | 1, 2 | 3, 3 |", cpu)
        self.assertIn("qrtool, 1 thread, us | MKL 2026.2, 1 thread / qrtool |", cpu)

    def test_a_complex_program_that_forms_no_q_says_so(self):
        gpu = self.page_of([piece("complex single", [{"cases": [
            {**gpu_case(mode, **{peer: [1e-3 * ratio]}), "precision": "complex64"}
            for mode, peer, ratio in (("reduced", "PyTorch 2.11", 1.2),
                                      ("r", "cuBLAS 13.1.0 geqrfBatched", 2))]}])], "gpu")
        self.assertIn("| cuBLAS 13.1.0 geqrfBatched / qrtool, R alone |", gpu)
        self.assertIn("| 15,000 of 64 x 64 | 1, -- | 1.2, -- | 2, -- |", gpu)
        self.assertLess(gpu.index("Q and R of 15,000 of 64 x 64 complex64: PyTorch 2.11 1.2"),
                        gpu.index("## On a GPU"))

    def test_gels_of_another_program_is_shown_and_listed_where_it_is_close(self):
        page = self.page_of([piece("gels single", [{"cases": [
            gpu_case("solve", **{"cuSolverDx 0.5.0, 32 threads": [0.9e-3]})]}])], "gpu")
        self.assertIn("| 15,000 of 64 x 64 | 1; -- |  | 0.9; -- |", page)
        self.assertLess(page.index("gels of cuSolverDx 0.5.0 0.9"), page.index("## On a GPU"))

    def test_arrays_of_a_python_program(self):
        page = self.page_of([piece("python double", [{
            "overhead_seconds": [9e-6, 11e-6, 10e-6], "cases": [
                {"m": 64, "n": 64, "batch": 100, "precision": "double",
                 "seconds": {"qrtool": [1e-3, 3e-3, 2e-3], "NumPy 2.4": [2e-3]}}]}])])
        self.assertIn("| 100 of 64 x 64 | --; 2 | --; 1 |", page)
        self.assertIn("a call takes 10 us more than the C function", page)
        self.assertIn("from NumPy arrays 100 of 64 x 64 float64: NumPy 2.4 1", page)
        self.assertNotIn("only move", page[:page.index("## On a GPU")])

    def test_moving_arrays_to_a_gpu_is_no_program_that_is_faster(self):
        page = self.page_of([piece("python single", [{"overhead_seconds": [9e-6], "cases": [
            {"m": 64, "n": 64, "batch": 100, "precision": "single",
             "seconds": {"qrtool": [4e-3], "PyTorch 2.11, GPU": [80e-3], "copies": [5e-3],
                         "ring": [3e-3]}}]}])], "gpu")
        self.assertIn("| 100 of 64 x 64 | 4; -- | 20; -- | 1.25; -- | 0.75; -- |", page)
        self.assertIn('"copies" and "ring" only move as many bytes', page)
        self.assertNotIn("float32: copies", page)
        self.assertNotIn("float32: ring", page)

    def test_several_gpus_stand_beside_one(self):
        page = self.page_of([piece("several", [{"cases": [
            {"m": 64, "n": 64, "batch": 400000, "seconds": {"one": [3, 4, 5], "all": [1.6]}}]}])],
            "gpu")
        self.assertIn("400,000 of 64 x 64: 4 s and 1.6 s, 2.5 times as fast.", page)

    def test_devices_without_float64_are_estimated_by_what_limits_them(self):
        def timed(seconds):
            return [{"cases": [{"m": 64, "n": 64, "batch": 15000,
                                "seconds": {"median": seconds}}]}]
        page = self.page_of([piece("pairs float64", timed(0.4e-3)),
                             piece("pairs none", timed(1e-3))], "gpu")
        # 4.27 TB/s here and 1.01, 0.56 and 0.96 there.
        self.assertIn("15,000 of 64 x 64: 0.4 ms with float64, 1 without, 2.5 times as long; "
                      "estimate: 4.23 on GeForce RTX 4090, 7.62 on Arc A770, 4.45 on Radeon RX "
                      "7900 XTX. ", page)

    def test_energy_is_that_of_a_million_matrices(self):
        page = self.page_of([piece("energy", [{"cases": [
            {"m": 64, "n": 64, "batch": 20000, "precision": "double",
             "joules": {"qrtool": [2, 4, 9], "JAX 0.11": [40]}}]}])], "gpu")
        self.assertIn("64 x 64 float64: 200, JAX 0.11 10 times as many.", page)

    def test_systems_from_file_to_file_name_the_normal_equations(self):
        page = self.page_of([device_files("systems", "65536x288x97:f4:solve", **{
            "qrtool on the GPU": [0.8, 0.9, 1], "qrtool on the CPU": [3],
            "PyTorch, normal equations, no import": [4]})], "gpu")
        self.assertIn("65,536 of 288 x 97, float32, least squares: 0.9 on the GPU, over 12 in the "
                      "first run, 3 on the CPU, over 12 by PyTorch, 4 by its normal equations",
                      page)

    def test_weights_of_their_own_stand_beside_the_cpu(self):
        def timed(backend, seconds, check):
            return {"precision": "single", "backend": {"name": backend}, "host": {"threads": 16},
                    "cases": [{"m": 288, "n": 97, "batch": 262144, "check_seconds": check,
                               "seconds": {"median": seconds}}]}
        page = self.page_of([
            device_files("systems", "65536x288x97:f4:solve", **{"qrtool on the GPU": [0.9]}),
            piece("weighed single", [timed("opencl", 0.06, 0.04), timed("cpu", 2.5, None)])], "gpu")
        self.assertIn("one 288 x 97 with 262,144 right sides, float32, each with weights of its "
                      "own, data on the GPU: x 60 ms, its check 40, both on the CPU with 16 "
                      "threads 25 times as long.", page)

    def test_files_on_a_disk_stand_beside_a_copy_that_is_synced(self):
        page = self.page_of([device_files("disk", "1000000x128:f8", **{
            "qrtool on the GPU": [2, 3], "cp of the output": [1.5]})], "gpu")
        self.assertIn("### From file to file on a disk, on a GPU", page)
        self.assertIn("; ext4; until the output is on the disk", page)
        self.assertIn("1,000,000 x 128, float64: 2.5 s, 1.5 s. ", page)

    def test_arrays_on_a_gpu_have_a_row_for_a_shape_and_a_place_for_each_type(self):
        def case(of_type, **seconds):
            return {"m": 64, "n": 64, "batch": 100, "work": "qr", "type": of_type, "seconds": {
                "qrtool": [2e-3], "qrtool, behind work": [1e-3], "qrtool, checked": [4e-3],
                "PyTorch 2.11": [20e-3], **seconds}}
        page = self.page_of([piece("arrays single", [{"cases": [
            case("float32", resident=[1e-3]), case("complex64", **{"PyTorch 2.11": [1e-3]})]}])],
            "gpu")
        self.assertIn("### Arrays that are on the GPU, of PyTorch: float32; complex64", page)
        self.assertIn("| 100 of 64 x 64 | 2; 2 | 2; -- | 1; -- | 4; 4 | 10; 0.5 |", page)
        self.assertIn("arrays on the GPU, 100 of 64 x 64 complex64: PyTorch 2.11 0.5",
                      page[:page.index("Less than")])

    def test_groups_of_a_table_stand_beside_other_programs(self):
        def run(**short):
            return {"seconds": 2, "cpu_seconds": 3, "mib": 200, "with one short group": short}
        page = self.page_of([piece("by", [{"cases": [{"rows": 5000000, "groups": 50000, "found": {
            "qrtool": run(seconds=2), "polars_ds": run(failed=True)}}]}])])
        self.assertIn("### A regression for each of 50,000 groups of a CSV with 5,000,000 rows",
                      page)
        self.assertIn("qrtool: 3 s of processor time, 2 s, 200 MiB; polars_ds: 3 s of processor "
                      "time, 2 s, 200 MiB, and fails where one group has too few rows. ", page)

    def test_windows_and_products_stand_beside_other_programs_under_load(self):
        window = {**piece("window", [{"cases": [{
            "rows": 1000, "offset": 1000000, "window": 60, "found": {
                "qrtool": {"error": 1e-11, "cpu_seconds": 2, "seconds": 3},
                "RollingOLS": {"error": 0.01, "cpu_seconds": 30, "seconds": 40}}}]}]),
                  "others": 0.5}
        product = piece("apply", [{"cases": [{
            "type": "float64", "count": 10, "m": 512, "n": 256, "sides": 64,
            "found": {"qrtool": 2e-2, "SciPy": 1e-2}}]}])
        page = self.page_of([window, product])
        self.assertIn("windows of 60 rows, 1,000 rows of noise around 1,000,000: qrtool 1.0e-11 "
                      "and 2 s, RollingOLS 1.0e-02 and 30 s; Q'B of 10 of 512 x 256 with 64 sides "
                      "float64: 2,000 us, ormqr / qrtool 0.5. Other programs used 50 %", page)
        self.assertIn("Q'B of 10 of 512 x 256 with 64 sides float64: ormqr of SciPy 0.5",
                      page[:page.index("Less than")])

    def test_the_slowest_kind_has_a_row(self):
        def kind(name, seconds):
            return {"kind": name, "m": 64, "n": 64, "batch": 10,
                    "seconds": {"median": seconds, "worst": seconds}}
        page = self.page_of([piece("hard single", [{"precision": "single", "cases": [
            kind("gauss", 1e-3), kind("band", 1.05e-3), kind("offset", 2e-3),
            kind("upper", 3e-3), kind("contest", 4e-3), kind("graded-rows", 5e-3)]}])])
        self.assertIn("others, as many times as long as Gaussian at most: band 1.05, offset 2, "
                      "upper 3, contest 4.", page)
        self.assertIn("| graded-rows | 5 | 5 | 5 |", page)
        self.assertNotIn("| contest | 4 |", page)

    def test_a_table_that_the_main_machine_lacks_is_of_another_one(self):
        case = {"kind": "gauss", "m": 3, "n": 2, "batch": 10,
                "seconds": {"median": 1e-3, "worst": 1e-3}}
        hard = piece("hard single", [{"precision": "single", "cases": [case]}])
        other = {"machine": {**HEAD["machine"], "processor": "Other CPU"}, "commit": "f" * 12}
        self.measured([hard], "other.json", **other)
        import pages
        self.assertNotIn("10 of 3 x 2", pages.Page(self.results).benchmarks())
        for path in self.results.glob("*.json"):
            file = json.loads(path.read_text())
            if file.get("part") == "cpu" and path.name != "other.json":
                file["pieces"] = [one for one in file["pieces"]
                                  if not one["name"].startswith("hard")]
                path.write_text(json.dumps(file))
        self.assertIn("### Hard input beside Gaussian: 10 of 3 x 2\n2 cores of Other CPU",
                      pages.Page(self.results).benchmarks())

    def test_the_floor_is_the_larger_of_memory_and_arithmetic(self):
        def case(n, **more):
            return {"m": n, "n": n, "batch": 1, "gflops": 25500.0,  # half of the most
                    "seconds": {"median": 1e-3}, "floor_seconds": 0.1e-3, **more}
        page = self.page_of([piece("grid single", [{"precision": "single", "cases": [
            case(100), case(200, gflops=1.0), case(300, gflops=1.0, floor_seconds=49e-6)]}])],
            "gpu")
        self.assertIn("200 x 200: 10 times in float32; 100 x 100: 2 times in float32. ", page)
        self.assertNotIn("300 x 300", page)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
