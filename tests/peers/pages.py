#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes BENCHMARKS.md, its picture and the numbers of README.md from tests/peers/results.

    pages.py            writes them
    pages.py --check    ends with 1, and says which differ, where they are not what would be written

Files of `all.py` are joined where part, machine, commit and versions are the same: no table has
rows of two commits. It is an error where two files have pieces of one table. A piece during which
other processes used more than 5 % of the cores is left out. older.json has sentences on what was
slower in runs that all.py does not make.
"""
import collections
import hashlib
import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_LOAD = 0.05
OF_PROCESSOR_TIME = ("window", "apply")  # pieces that other programs change little
MOST_FLOORS = 6
MOST_GRID_ROWS = 3
LEAST_FLOOR_SECONDS = 50e-6  # smaller work takes the time of its launches
# TB/s and TFLOP/s of float32: of an H200 as measured, of others as their makers state them.
MEASURED_RATES = (4.27, 64.9)
OTHER_GPUS = {"GeForce RTX 4090": (1.01, 82.6), "Arc A770": (0.56, 19.7),
              "Radeon RX 7900 XTX": (0.96, 61.4)}
MOST_FLOPS = 51e12  # of an H100 or H200 in products of float64; float32 has about as many by fma
SLOWEST_KINDS = 1  # that have a row
CLOSE = 1.5  # a ratio below is named
NOTHING = "--"  # of a program that forms no Q, or of a type that was not measured
OPENING = """\
# Benchmarks

![From file to file: how many times as long a script takes as qrtool](samples/benchmarks.svg)

- From file to file a script of h5py and NumPy takes {files} times as long as qrtool on \
{cpu_files_where}, \
and one of PyTorch or NumPy {gpu_files} times as long on {gpu_files_where}. qrtool checks \
every matrix; scripts do not.
- Batches of small matrices: Intel MKL, called from C, takes {cpu} times as long on {cpu_where};
  the fastest other program {gpu} times as long on {gpu_where}, and {large} times for large \
and tall matrices.
- A ratio is the other program's time divided by that of qrtool: above 1 qrtool is faster. \
Times leave the check out, unless they are from file to file. Where no kind is named, the \
matrices are Gaussian.
- tests/peers/all.py measures, on a machine that does nothing else; tests/peers/pages.py writes \
this page from \
[its results](tests/peers/results). Measured so: {measured}. \
Not compared, for want of a machine or a package: MAGMA, KBLAS, rocSOLVER, GPUs of AMD and Intel.

## Slower than another program
"""
README = {
    "picture": "![From file to file: a script of h5py and NumPy takes {files} times as long as "
               "qrtool on {cpu_files_where}, one of PyTorch or NumPy {gpu_files} times as long on "
               "{gpu_files_where}](samples/benchmarks.svg)",
    "speed": "From file to file a script of h5py and NumPy takes {files} times as long on "
             "{cpu_files_where},\n  and one of PyTorch or NumPy {gpu_files} times as long on "
             "{gpu_files_where};\n  batches that are already on a GPU take the fastest "
             "other program {gpu} times as long",
    "gpu": "On {gpu_where}, 15000 QR factorizations of\n  64 x 64 take {gpu_ms} ms"}
Table = collections.namedtuple("Table", "name title about columns rows")
Slow = collections.namedtuple("Slow", "where row peer ratio")
TYPE = {"single": "float32", "double": "float64"}
COMPLEX = ("complex64", "complex128")
MOVING = ("copies", "ring")  # peers of python_peers.py that only move arrays to a GPU and back
MODE = {"reduced": "Q and R", "r": "R"}
JOB = {"r": "R alone", "solve": "least squares"}


def figure(value):
    """Three digits without an exponent."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def number(text):
    """The first number of a cell; None where there is none."""
    found = re.search(r"\d[\d,]*\.?\d*", text)
    return float(found.group().replace(",", "")) if found else None


def counted(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def in_both_types(rows):
    """The rows {(case, type): cells} with both types in each cell, "float32; float64"."""
    width = max(map(len, rows.values()))
    for case in dict.fromkeys(case for case, _ in rows):
        cells = zip(*(rows.get((case, name), [""] * width) for name in TYPE.values()))
        yield [case, *("; ".join(cell or NOTHING for cell in pair) if any(pair) else ""
                       for pair in cells)]


def size_of(case):
    shape = f"{case['m']:,} x {case['n']:,}"
    return shape if case["batch"] == 1 else f"{case['batch']:,} of {shape}"


class Results:
    """The joined files of one part, machine, commit and set of versions."""

    def __init__(self, head):
        self.head, self.pieces, self.left_out = head, {}, []

    def add(self, file):
        for piece in file["pieces"]:
            if piece["name"] in self.pieces:
                raise SystemExit(f"{file['path']}: the piece {piece['name']} is there twice")
            if piece["others"] > MOST_LOAD and piece["name"] not in OF_PROCESSOR_TIME:
                self.left_out.append(piece["name"])
            else:
                self.pieces[piece["name"]] = piece

    def place(self):
        """The GPU, or the processor."""
        machine = self.head["machine"]
        return machine.get("gpu") or (f"{machine['cores']} cores of {machine['processor']} "
                                      f"({machine['instructions']})")

    def where(self, threads=None):
        """In few words, for the list of what is slower."""
        if self.head["part"] == "gpu":
            return "GPU"
        processor = f"{self.head['machine']['processor']} ({self.head['machine']['instructions']})"
        return processor + (f", {counted(threads, 'thread')}" if threads else "")

    def about(self, names):
        commands = list(dict.fromkeys(command for name in names if name in self.pieces
                                      for command in self.pieces[name]["commands"]))
        # One command stands for those that differ in the type or the shape.
        return (f"{self.place()}; commit {self.head['commit']}, {self.head['date']}; "
                f"[samples]({self.head['path']})", commands[:1])

    def cases(self, prefix):
        """(piece, its own JSON, a case) of all pieces whose name begins so."""
        for name, piece in self.pieces.items():
            if name.split(" ")[0] != prefix:
                continue
            for result in piece["results"]:
                for case in result["cases"]:
                    yield piece, result, case


def load(folder):
    joined, measured = {}, {}
    for path in sorted(folder.glob("*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        if file.get("schema") != "qrtool.peers/1":
            continue
        file["path"] = f"tests/peers/results/{path.name}"
        if file["commit"].endswith("-changed"):
            raise SystemExit(f"{file['path']}: was measured with sources that no commit has")
        place = (file["part"], json.dumps(file["machine"]))
        key = (*place, file["commit"], json.dumps(file["versions"]))
        for table in {piece["name"].split(" ")[0] for piece in file["pieces"]}:
            other = measured.setdefault((*place, table), (key, file["path"]))
            if other[0] != key:
                raise SystemExit(f"{file['path']}: has '{table}', as {other[1]} has: these are not "
                                 "parts of one measurement, as their commits or versions differ")
        joined.setdefault(key, Results(file)).add(file)
    older = json.loads((folder / "older.json").read_text(encoding="utf-8"))
    return list(joined.values()), older["slower"]


def main_places(all_results):
    """{part: the processor or GPU of which most was measured}"""
    pieces = collections.Counter()
    for results in all_results:
        pieces[results.head["part"], results.place()] += len(results.pieces)
    return {part: place for (part, place), _ in reversed(pieces.most_common())}


def peer_name(text):
    """ "MKL 2026.2, libmkl_rt.so.3, one matrix ..." -> "MKL 2026.2"."""
    return text.split(",")[0]


def beside_peers(results, prefix, slow):
    """{(size, type): {column: {mode: a time of qrtool, or the ratio of a peer}}}, with the median
    over rounds of the ratio in each round; and the columns, each a name and threads of a CPU."""
    rows, peers = {}, []
    for _, result, case in results.cases(prefix):
        threads = result.get("threads")  # of a CPU
        own = case["seconds"]["qrtool"]
        size = size_of({**case, "batch": 1} if threads else case)
        element = TYPE.get(case["precision"], case["precision"])
        row = rows.setdefault((size, element), {})
        scale = 1e6 / case["batch"] if threads else 1e3
        row.setdefault(("qrtool", threads), {})[case["mode"]] = scale * statistics.median(own)
        for name, times in case["seconds"].items():
            if name == "qrtool":
                continue
            peer = (peer_name(name), threads)
            if peer not in peers:
                peers.append(peer)
            ratio = (statistics.median(a / b for a, b in zip(times, own)) if threads
                     else statistics.median(times) / statistics.median(own))
            row.setdefault(peer, {})[case["mode"]] = ratio
            if ratio < CLOSE:
                slow.append(Slow(results.where(threads),
                                 f"{MODE[case['mode']]} of {size} {element}", peer[0], ratio))
    counts = sorted({threads for row in rows.values() for _, threads in row}, key=str)
    return rows, [("qrtool", threads) for threads in counts] + peers


def batch_tables(results, slow):
    """Times beside peers."""
    for prefix, title in (("batches", "Q and R, then R alone, beside other programs: float32; "
                           "float64"),
                          ("large", "Large and tall matrices, in the same order")):
        rows, columns = beside_peers(results, prefix, slow)
        if not rows:
            continue
        yield Table(prefix, title,
                    results.about([name for name in results.pieces if name.startswith(prefix)]),
                    ["matrix", *(heading(*column) for column in columns)],
                    list(in_both_types({key: [pair(row.get(column)) for column in columns]
                                        for key, row in rows.items()})))


def complex_table(results, slow):
    """Q and R of both types in a row, and R alone by a program that forms no Q."""
    rows, columns = beside_peers(results, "complex", slow)
    if not rows:
        return None
    modes = {column: "reduced" if any("reduced" in row.get(column, {}) for row in rows.values())
             else "r" for column in columns}

    def cell(size, column):
        values = [rows.get((size, element), {}).get(column, {}).get(modes[column])
                  for element in COMPLEX]
        return ", ".join(figure(x) if x else NOTHING for x in values) if any(values) else ""

    return Table("complex", "Complex matrices: Q and R in complex64, complex128",
                 results.about([name for name in results.pieces if name.startswith("complex")]),
                 ["matrix", *(heading(*column) + (", R alone" if modes[column] == "r" else "")
                              for column in columns)],
                 [[size, *(cell(size, column) for column in columns)]
                  for size in dict.fromkeys(size for size, _ in rows)])


def heading(name, threads):
    """Of a column with times of qrtool, or with ratios of a peer."""
    with_threads = name + (f", {counted(threads, 'thread')}" if threads else "")
    return (f"{with_threads}, {'us' if threads else 'ms'}" if name == "qrtool"
            else f"{with_threads} / qrtool")


def pair(cell):
    """Of Q and R, then of R alone; a program that forms no Q has NOTHING."""
    if not cell:
        return ""
    texts = [figure(cell[mode]) for mode in ("reduced", "r") if mode in cell]
    return ", ".join(texts if "reduced" in cell else [NOTHING, *texts])


def hard_table(results):
    rows, gauss = {}, {}
    for _, result, case in results.cases("hard"):
        seconds = case["seconds"]
        if seconds is None:
            continue
        kind = TYPE[result["precision"]]
        if case["kind"] == "gauss":
            gauss[kind] = seconds["median"]
        rows.setdefault(case["kind"], {})[kind] = (seconds["median"], seconds["worst"], case)
    if not rows:
        return None
    first = next(iter(next(iter(rows.values())).values()))[2]
    # How many times as long as Gaussian ones in the type that is slower.
    ratio = {kind: max(cells[name][0] / gauss.get(name, cells[name][0]) for name in cells)
             for kind, cells in rows.items() if kind != "gauss"}
    slowest = sorted(ratio, key=ratio.get, reverse=True)[:SLOWEST_KINDS]
    body, others = [], [f"{kind} {figure(ratio[kind])}" for kind in ratio if kind not in slowest]
    for kind, cells in rows.items():
        if kind != "gauss" and kind not in slowest:
            continue
        line = [kind]
        for name in TYPE.values():
            median, worst, _ = cells.get(name, (None, None, None))
            line += [figure(1e3 * median) if median else "",
                     figure(median / gauss[name]) if median and name in gauss else "",
                     figure(1e3 * worst) if worst else ""]
        body.append(line)
    about, commands = results.about(["hard single"])
    if others:
        about += f"; others, as many times as long as Gaussian at most: {', '.join(others)}"
    return Table("hard", f"Hard input beside Gaussian: {size_of(first)}", (about, commands),
                 ["kind", "float32 ms", "/ Gaussian", "worst batch", "float64 ms", "/ Gaussian",
                  "worst batch"], body)


def modes_table(results):
    rows = {}
    for _, result, case in results.cases("modes"):
        words = [result["mode"], result["sign"], "cold" if result["cold"] else "warm"]
        if case["seconds"]:
            rows.setdefault(tuple(words), {})[TYPE[result["precision"]]] = (
                case["seconds"]["median"], case["check_seconds"], case)
    if not rows:
        return None
    first = next(iter(next(iter(rows.values())).values()))[2]
    body = []
    for words, cells in rows.items():
        line = list(words)
        for name in TYPE.values():
            median, check, _ = cells.get(name, (None, None, None))
            line += [figure(1e3 * median) if median else "", figure(1e3 * check) if check else ""]
        body.append(line)
    return Table("modes", f"Modes, signs, caches and the check: {size_of(first)}",
                 results.about(["modes single"]),
                 ["mode", "sign", "caches", "float32 ms", "check ms", "float64 ms", "check ms"],
                 body)


def solve_table(results, slow):
    """Beside LAPACK's gels on the CPU by `bench`, and kernels that call that of cuSolverDx."""
    peers = ["gels on the CPU"]
    rows = {}
    for _, result, case in results.cases("solve"):
        if case["seconds"]:
            cells = rows.setdefault((size_of(case), TYPE[result["precision"]]), {})
            cells["qrtool"] = 1e3 * case["seconds"]["median"]
            cells[peers[0]] = case["baselines"].get("gels", {}).get("speed_up")
    for _, _, case in results.cases("gels"):
        for peer, times in case["seconds"].items():
            if peer == "qrtool":
                continue
            name = f"gels of {peer_name(peer)}"
            peers += [name] * (name not in peers)
            cells = rows.setdefault((size_of(case), TYPE[case["precision"]]), {})
            own = statistics.median(case["seconds"]["qrtool"])
            cells.setdefault("qrtool", 1e3 * own)
            cells[name] = statistics.median(times) / own
    if not rows:
        return None
    slow += [Slow(results.where(), f"least squares of {' '.join(key)}", peer, cells[peer])
             for key, cells in rows.items() for peer in peers
             if (cells.get(peer) or CLOSE) < CLOSE]
    return Table("solve", "Least squares, one right side each: float32; float64",
                 results.about([name for name in results.pieces
                                if name.split(" ")[0] in ("solve", "gels")]),
                 ["case", "qrtool ms", *(f"{peer} / qrtool" for peer in peers)],
                 list(in_both_types({key: [figure(cells.get(name)) for name in ("qrtool", *peers)]
                                     for key, cells in rows.items()})))


def python_table(results, slow):
    """From NumPy arrays to NumPy arrays, beside what a Python program would call."""
    rows, peers, overheads = {}, [], []
    for _, result, case in results.cases("python"):
        overheads += result["overhead_seconds"]
        own = statistics.median(case["seconds"]["qrtool"])
        key = (size_of(case), TYPE[case["precision"]])
        cells = rows.setdefault(key, {"qrtool": 1e3 * own})
        for peer, times in case["seconds"].items():
            if peer == "qrtool":
                continue
            peers += [peer] * (peer not in peers)
            cells[peer] = statistics.median(times) / own
            if cells[peer] < CLOSE and peer not in MOVING:
                slow.append(Slow(results.where(), f"from NumPy arrays {' '.join(key)}", peer,
                                 cells[peer]))
    if not rows:
        return None
    about, commands = results.about(["python single"])
    about += (f"; a call takes {1e6 * statistics.median(overheads):.0f} us more than the C "
              "function (one 64 x 64 on the CPU)")
    if any(peer in MOVING for peer in peers):
        about += ('; "copies" and "ring" only move as many bytes, by the driver and through '
                  "page-locked pieces")
    return Table("python", "From NumPy arrays to NumPy arrays, checked, beside programs that check "
                 "nothing: float32; float64", (about, commands),
                 ["case", "qrtool ms", *(f"{peer} / qrtool" for peer in peers)],
                 list(in_both_types({key: [figure(cells.get(name)) for name in ("qrtool", *peers)]
                                     for key, cells in rows.items()})))


def arrays_table(results, slow):
    """Arrays that are on the GPU already, by the clock of the caller's stream; in each cell the
    types one after another."""
    rows, types, peers, firsts, systems = {}, [], [], [], []
    for _, result, case in results.cases("arrays"):
        times = {name: statistics.median(values) for name, values in case["seconds"].items()}
        checked, alone = times.pop("qrtool, checked"), times.pop("resident", None)
        own, behind = times.pop("qrtool", checked), times.pop("qrtool, behind work", None)
        name, of_type = size_of(case), case["type"]
        if case["work"] == "lstsq":
            for peer, value in times.items():
                systems.append(f"{name} {of_type} {figure(1e3 * checked)} ms, {peer} "
                               f"{figure(value / checked)} times")
                if value / checked < CLOSE:
                    slow.append(Slow(results.where(), f"arrays on the GPU, least squares, {name} "
                                     f"{of_type}", peer, value / checked))
            continue
        cells = rows.setdefault(name, {})[of_type] = {
            "ms": 1e3 * own, "kernels": own / alone if alone else None,
            "behind": behind / alone if behind and alone else None, "checked ms": 1e3 * checked}
        types += [of_type] * (of_type not in types)
        for peer, value in times.items():
            peers += [peer] * (peer not in peers)
            cells[peer] = value / own
            if cells[peer] < CLOSE:
                slow.append(Slow(results.where(), f"arrays on the GPU, {name} {of_type}", peer,
                                 cells[peer]))
    if not rows:
        return None
    for _, piece in results.pieces.items():
        for result in piece["results"]:
            for case in result.get("first", []):
                seconds = case["seconds"]
                firsts.append(
                    f"{size_of(case)} {case['type']}: {figure(seconds['empty']['first'])} s "
                    f"without built kernels, {figure(seconds['full']['first'])} s with them, "
                    f"{figure(1e3 * seconds['full']['second'])} ms for the second call")
    about, commands = results.about(["arrays single"])
    if firsts:
        about += f"; the first call of a process: {'; '.join(firsts)}"
    if systems:
        about += f"; least squares, checked: {'; '.join(systems)}"
    return Table("arrays", f"Arrays that are on the GPU, of PyTorch: {'; '.join(types)}",
                 (about, commands),
                 ["case", "qrtool ms", "times its kernels", "so behind other work", "checked ms",
                  *(f"{peer} / qrtool" for peer in peers)],
                 [[name, *("; ".join(figure(cells.get(of_type, {}).get(key)) or "--"
                                     for of_type in types)
                           for key in ("ms", "kernels", "behind", "checked ms", *peers))]
                  for name, cells in rows.items()])


def several_table(results):
    texts = []
    for _, _, case in results.cases("several"):
        one, several = (statistics.median(case["seconds"][name]) for name in ("one", "all"))
        texts.append(f"{size_of(case)}: {figure(one)} s and {figure(several)} s, "
                     f"{figure(one / several)} times as fast")
    if not texts:
        return None
    about, commands = results.about(["several"])
    return Table("several", "From file to file on one GPU and on all of its kind, .npy, float32",
                 (f"{'; '.join(texts)}. {about}", commands), [], [])


def energy_table(results):
    """Of the whole card, for a million matrices."""
    texts = []
    for _, _, case in results.cases("energy"):
        joules = {name: statistics.median(values) for name, values in case["joules"].items()}
        own = joules.pop("qrtool")
        texts.append(
            f"{size_of({**case, 'batch': 1})} {TYPE[case['precision']]}: "
            f"{figure(1e6 / case['batch'] * own)}, " + ", ".join(
                f"{peer} {figure(value / own)} times as many" for peer, value in joules.items()))
    if not texts:
        return None
    about, commands = results.about(["energy"])
    return Table("energy", "Energy: joules of the GPU for Q and R of a million matrices, by the "
                 "driver's counter, with qrtool's check",
                 (f"{'; '.join(texts)}. {about}", commands), [], [])


def by_table(results):
    """Without a list of what is slower, since no two of them compute the same."""
    texts = []
    for _, _, case in results.cases("by"):
        for name, run in case["found"].items():
            fails = run["with one short group"].get("failed")
            texts.append(f"{name}: {figure(run['cpu_seconds'])} s of processor time, "
                         f"{figure(run['seconds'])} s, {figure(run['mib'])} MiB"
                         + ", and fails where one group has too few rows" * bool(fails))
        title = (f"A regression for each of {case['groups']:,} groups of a CSV with "
                 f"{case['rows']:,} rows, from file to file")
    if not texts:
        return None
    about, commands = results.about(["by"])
    return Table("by", title, (f"{'; '.join(texts)}. {about}", commands), [], [])


def going_on_table(results, slow):
    """Windows, and products of stored factors."""
    texts, load = [], 0
    for piece, _, case in results.cases("window"):
        name = ("expanding windows" if case["window"] == "expanding" else
                f"windows of {case['window']} rows")
        texts.append(f"{name}, {case['rows']:,} rows of noise around {case['offset']:,}: " +
                     ", ".join(f"{peer} {run['error']:.1e} and {figure(run['cpu_seconds'])} s"
                               for peer, run in case["found"].items()))
        load = max(load, piece["others"])
    for piece, _, case in results.cases("apply"):
        many = f"{case['count']:,} of " * (case["count"] > 1)
        row = (f"Q'B of {many}{case['m']:,} x {case['n']} with {counted(case['sides'], 'side')} "
               f"{case['type']}")
        ratio = case["found"]["SciPy"] / case["found"]["qrtool"]
        texts.append(f"{row}: {figure(1e6 * case['found']['qrtool'] / case['count'])} us, ormqr / "
                     f"qrtool {figure(ratio)}")
        if ratio < CLOSE:
            slow.append(Slow(results.where(1), row, "ormqr of SciPy", ratio))
        load = max(load, piece["others"])
    if not texts:
        return None
    about, commands = results.about(["window", "apply"])
    return Table("going on", "Windows: the largest error of x in the last 100, and processor time; "
                 "products with Q, which qrtool checks by the inverse product",
                 (f"{'; '.join(texts)}. Other programs used {100 * load:.0f} % of the cores. "
                  f"{about}", commands), [], [])


def pairs_table(results):
    """float32 with float64 for long sums, and in pairs of floats. What other GPUs may take follows
    from the memory and the float32 that their makers state."""
    rows = {}
    for piece, _, case in results.cases("pairs"):
        if case["seconds"]:
            rows.setdefault(size_of(case), {})[piece["name"].split(" ")[1]] = (
                1e3 * case["seconds"]["median"])
    texts = []
    for size, own in rows.items():
        if len(own) == 2:
            others = (f"{figure(own['none'] * max(here / there for here, there in pairs))} on "
                      f"{name}" for name, pairs in ((name, zip(MEASURED_RATES, rates))
                                                    for name, rates in OTHER_GPUS.items()))
            texts.append(f"{size}: {figure(own['float64'])} ms with float64, {figure(own['none'])} "
                         f"without, {figure(own['none'] / own['float64'])} times as long; "
                         f"estimate: {', '.join(others)}")
    if not texts:
        return None
    about, commands = results.about(["pairs float64", "pairs none"])
    about += ("; an estimate is the time without float64, as many times as long as the bandwidth "
              f"or the float32 of that GPU, of which {MEASURED_RATES[0]} TB/s and "
              f"{MEASURED_RATES[1]} TFLOP/s were measured here, is less")
    return Table("pairs", "Q and R of float32 with float64 for long sums, and without it",
                 (f"{'; '.join(texts)}. {about}", commands), [], [])


def first_table(results):
    rows = {}
    for _, result, case in results.cases("first"):
        if case["seconds"]:
            rows.setdefault(size_of(case), []).append(
                f"{TYPE[result['precision']]} {figure(case['first_seconds'])} s and "
                f"{figure(1e3 * case['seconds']['median'])} ms")
    if not rows:
        return None
    about, commands = results.about(["first single"])
    texts = "; ".join(f"{size}: {', '.join(cells)}" for size, cells in rows.items())
    return Table("first", "The first run, which builds its kernels, and later ones",
                 (f"{texts}. {about}", commands), [], [])


def grid_table(results, far):
    rows = {}
    for _, result, case in results.cases("grid"):
        if not case["seconds"] or not case["floor_seconds"]:
            continue
        seconds = case["seconds"]["median"]
        floor = max(case["floor_seconds"], seconds * 1e9 * case["gflops"] / MOST_FLOPS)
        if floor >= LEAST_FLOOR_SECONDS:
            floors = seconds / floor
            name = TYPE[result["precision"]]
            rows.setdefault(size_of(case), {})[name] = floors
            if floors > MOST_FLOORS:
                far.append(f"{size_of(case)} {name} ({figure(floors)})")
    worst = sorted(rows.items(), key=lambda row: -max(row[1].values()))[:MOST_GRID_ROWS]
    if not rows:
        return None
    text = "; ".join(f"{size}: " + ", ".join(f"{figure(floors)} times in {name}"
                                             for name, floors in cells.items())
                     for size, cells in worst)
    about, commands = results.about(["grid single"])
    about += ("; the floor is the time to read A and write Q and R once, or that of the operations "
              f"at {MOST_FLOPS / 1e12:g} TFLOP/s. Floors below {1e6 * LEAST_FLOOR_SECONDS:g} us "
              "are left out, as launches take as long")
    return Table("grid", f"Times beside their floor: the {len(worst)} worst of {len(rows)} shapes",
                 (f"{text}. {about}", commands), [], [])


def files_rows(results, slow):
    """(work, seconds of qrtool, of the script, ratio) of file_peers.py."""
    for name, piece in results.pieces.items():
        if name.startswith("files ") and "runs" in piece["results"][0]:
            shape, precision = [*name.split(" ")[1:], "single"][:2]
            batch, m, n = map(int, shape.split("x"))
            work = f"{size_of({'batch': batch, 'm': m, 'n': n})}, {TYPE[precision]}"
            own, script = ([run["wall"] for run in runs]
                           for runs in piece["results"][0]["runs"].values())
            ratio = statistics.median(b / a for a, b in zip(own, script))
            if ratio < CLOSE:
                slow.append(Slow(results.where(), f"from file to file {work}", "script", ratio))
            yield [work, figure(statistics.median(own)), figure(statistics.median(script)),
                   figure(ratio)]


def files_table(results, slow):
    rows = list(files_rows(results, slow))
    if not rows:
        return None
    names = [name for name in results.pieces if name.startswith("files ")]
    return Table("files", "From file to file, HDF5 in and out, beside h5py, numpy.linalg.qr, h5py "
                 "and fsync", results.about(names),
                 ["work", "qrtool s", "script s", "script / qrtool"], rows)


def device_jobs(piece):
    """(work, its samples) of device_files.py."""
    for name, job in piece["results"][0]["jobs"].items():
        shape, kind, *mode = name.split(":")
        sizes = [int(extent) for extent in shape.split("x")]
        work = size_of({"batch": 1 if len(sizes) == 2 else sizes[0], "m": sizes[-2],
                        "n": sizes[-1]})
        yield (f"{work}, float{8 * int(kind[1])}"
               f"{''.join(', ' + JOB[word] for word in mode)}", job)


def device_cells(piece, job, names):
    """Medians; what was cut off is "over" its limit."""
    over = "over " + re.search(r"--limit (\S+)", piece["commands"][0])[1]
    return [figure(statistics.median(job[name])) if job.get(name) else over for name in names]


def device_files_table(results):
    """What device_files.py measures, in seconds."""
    pieces = {name: piece for name, piece in results.pieces.items()
              if name.split(" ")[0] == "files" and "jobs" in piece["results"][0]}
    if not pieces:
        return None
    names = ["qrtool on the GPU", "qrtool on the GPU, cold", "qrtool on the CPU",
             "PyTorch, no import", "NumPy, no import", "cp of the output"]
    return Table("files", "From file to file on a GPU, .npy in and out, seconds",
                 results.about(list(pieces)),
                 ["work", "GPU", "GPU, first run", "CPU", "PyTorch", "NumPy", "`cp`"],
                 [[work, *device_cells(piece, job, names)] for piece in pieces.values()
                  for work, job in device_jobs(piece)])


def systems_table(results):
    """What device_files.py measures of least squares."""
    piece = results.pieces.get("systems")
    if not piece:
        return None
    names = ["qrtool on the GPU", "qrtool on the GPU, cold", "qrtool on the CPU",
             "PyTorch, no import", "PyTorch, normal equations, no import"]
    texts = []
    for work, job in device_jobs(piece):
        own, first, cpu, lstsq, normal = device_cells(piece, job, names)
        texts.append(f"{work}: {own} on the GPU, {first} in the first run, {cpu} on the CPU, "
                     f"{lstsq} by PyTorch, {normal} by its normal equations, whose error grows "
                     "with the square of the condition")
    texts += weighed_texts(results)
    about, commands = results.about([name for name in results.pieces
                                     if name.split(" ")[0] in ("systems", "weighed")])
    return Table("systems", "Least squares from file to file on a GPU, .npy in and out, seconds",
                 (f"{'; '.join(texts)}. {about}", commands), [], [])


def weighed_texts(results):
    """What `bench --weights` measures on the device, and on the CPU of the same host."""
    times = {}
    for _, result, case in results.cases("weighed"):
        cell = times.setdefault((size_of(case), TYPE[result["precision"]]), {})
        if case["seconds"]:
            cell[result["backend"]["name"]] = 1e3 * case["seconds"]["median"]
        cell["threads"] = result["host"]["threads"]
        if case["check_seconds"] is not None:
            cell["check"] = 1e3 * case["check_seconds"]
    for (work, precision), cell in times.items():
        x, check, cpu = cell["opencl"], cell["check"], cell.get("cpu")
        beside = (f", both on the CPU with {cell['threads']} threads {figure(cpu / (x + check))} "
                  "times as long") if cpu else ""
        yield (f"one {work.rpartition(' of ')[2]} with {work.partition(' of ')[0]} right sides, "
               f"{precision}, each with weights of its own, data on the GPU: x {figure(x)} ms, its "
               f"check {figure(check)}{beside}")


def disk_table(results):
    """What device_files.py measures on a disk."""
    piece = results.pieces.get("disk")
    if not piece:
        return None
    text = "; ".join("{}: {} s, {} s".format(work, *device_cells(
        piece, job, ["qrtool on the GPU", "cp of the output"])) for work, job in device_jobs(piece))
    about, commands = results.about(["disk"])
    about += (f"; {piece['results'][0]['file_system']}; until the output is on the disk, with the "
              "input in the page cache")
    return Table("disk", "From file to file on a disk, on a GPU, .npy in and out, beside `cp` and "
                 "`sync`", (f"{text}. {about}", commands), [], [])


def markdown(table):
    about, commands = table.about
    words = [about if about.endswith(".") else about + ".",
             *(f"`{command}`" for command in commands)]
    lines = [f"### {table.title}", " ".join(words)]
    if table.rows:
        lines += ["", "| " + " | ".join(table.columns) + " |",
                  "| --- " * len(table.columns) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in table.rows]
    return "\n".join(lines)


def listed(slow):
    """A line for each machine."""
    by_place = {}
    for one in slow:
        by_place.setdefault(one.where, []).append(f"{one.row}: {one.peer} {figure(one.ratio)}")
    return [f"- {where}: {'; '.join(texts)}" for where, texts in by_place.items()]


def span(values):
    """ "1.7 to 19"."""
    low, high = figure(min(values)), figure(max(values))
    return low if low == high else f"{low} to {high}"


def ratios(table, columns):
    found = [number(text) for row in table.rows for i, column in enumerate(table.columns)
             if re.search(columns, column) for text in row[i].split("; ")]
    return [ratio for ratio in found if ratio is not None]


def best_ratios(table):
    """Of every row and type that of the fastest other program that forms Q and R."""
    def first(cell):
        return None if cell.startswith(NOTHING) else number(cell)
    columns = [i for i, column in enumerate(table.columns) if "/ qrtool" in column]
    found = ([first(row[i].split("; ")[place]) for i in columns if row[i]]
             for row in table.rows for place in range(len(TYPE)))
    rows = ([value for value in values if value is not None] for values in found)
    return [min(values) for values in rows if values]


def small_rows(table):
    """The rows of matrices with at most 512 x 256 entries."""
    def entries(row):
        m, n = row[0].replace(",", "").split(" of ")[-1].split(" x ")
        return int(m) * int(n)
    return table._replace(rows=[row for row in table.rows if entries(row) <= 512 * 256])


def gpu_file_bars(rows):
    """(work, the better script / qrtool, whether it took more, as it was cut off)."""
    for row in rows:
        own, scripts = number(row[1]), [cell for cell in row[4:6] if cell]
        best = min(scripts, key=lambda cell: (number(cell), "over" in cell))
        yield row[0], number(best) / own, "over" in best or "over" in row[1]


def picture(cpu_bars, cpu_about, gpu_bars, gpu_about):
    """The gnuplot script, with its data."""
    def block(name, bars):
        bars = list(bars)[::-1]
        return "\n".join([f"${name} << EOD", *(
            f'"{work}"\t{ratio:.3g}\t{">" if more else ""}{figure(ratio)}'
            for work, ratio, more in bars), "EOD"])

    def plot(name, title, colour, top):
        return f"""set title "{title}"
set yrange [-0.6:{top}]
plot ${name} using (0):0:(0):2:($0 - 0.35):($0 + 0.35):ytic(1) with boxxyerror \\
     linecolor rgb '{colour}' notitle, \\
     '' using 2:0:3 with labels left offset 0.6,0 notitle, \\
     $one using 1:2 with lines linecolor black notitle"""

    cpu_bars, gpu_bars = list(cpu_bars), list(gpu_bars)
    return f"""# benchmarks.gp: how many times as long a script takes as qrtool, from file to file.
# tests/peers/pages.py wrote this file, and draws samples/benchmarks.svg with it.
set terminal svg noenhanced size 980,420 dynamic background '#ffffff' font 'sans-serif,13'
set datafile separator "\\t"
{block("cpu", cpu_bars)}
{block("gpu", gpu_bars)}
$one << EOD
1\t-0.6
1\t20
EOD
set multiplot layout 1,2 title "From file to file: time of a script / time of qrtool \\
(1: equally fast; qrtool checks every matrix, scripts do not)"
set style fill solid 0.9 noborder
set xrange [0:*]
set ytics nomirror
set xtics nomirror
set border 3
set lmargin 26
set rmargin 8
{plot("cpu", cpu_about, "#2166ac", len(cpu_bars) - 0.4)}
{plot("gpu", gpu_about, "#d6604d", len(gpu_bars) - 0.4)}
unset multiplot
"""


class Page:
    """Everything that is written, from the results."""

    def __init__(self, folder):
        self.results, self.older_slower = load(folder)
        self.slow, self.far = [], []
        self.tables = []
        main = main_places(self.results)
        self.results.sort(key=lambda results: results.place() != main[results.head["part"]])
        for results in self.results:
            part = results.head["part"]
            found = [*batch_tables(results, self.slow), several_table(results)]
            more = self.more_tables(results)  # which lists what is slower, wherever it is
            if results.place() != main[part]:
                have = {table.name for its_part, table in self.tables if its_part == part}
                more = [table for table in more if table and table.name not in have]
            self.tables += [(part, table) for table in found + more if table]
        self.left_out = [f"{name} ({results.head['path']})" for results in self.results
                         if results.place() == main[results.head["part"]]
                         for name in results.left_out]

    def more_tables(self, results):
        """Those that the page has of one processor and one GPU alone: the one of which most was
        measured, or another one where that has none."""
        return [complex_table(results, self.slow), hard_table(results), modes_table(results),
                first_table(results), pairs_table(results), grid_table(results, self.far),
                solve_table(results, self.slow), python_table(results, self.slow),
                arrays_table(results, self.slow), by_table(results),
                going_on_table(results, self.slow),
                energy_table(results), files_table(results, self.slow),
                device_files_table(results), systems_table(results), disk_table(results)]

    def find_all(self, part, name):
        """The tables of all machines."""
        found = [table for its_part, table in self.tables if (its_part, table.name) == (part, name)]
        if not found:
            raise SystemExit(f"tests/peers/results: no file of all.py {part} has the table of "
                             f"{name}, which the pages show")
        return found

    def find(self, part, name):
        return self.find_all(part, name)[0]

    def cpu_bars(self):
        for row in self.find("cpu", "files").rows:
            yield row[0], number(row[-1]), False

    def gp(self):
        return picture(
            self.cpu_bars(), f"{self.machine_of('cpu', 'files')}\\nagainst h5py + NumPy",
            self.gpu_bars(), f"{self.machine_of('gpu', 'files')}\\nagainst PyTorch or NumPy")

    def machine_of(self, part, name):
        """In a few words, where a table was measured."""
        return self.machines_of(part, name)[0]

    def machines_of(self, part, name):
        """Where the tables of this name were measured."""
        abouts = [table.about[0] for table in self.find_all(part, name)]
        return list(dict.fromkeys(
            results.place().split(",")[0].split(" (")[0] for about in abouts
            for results in self.results if results.head["path"] in about))

    def gpu_bars(self):
        return list(gpu_file_bars(self.find("gpu", "files").rows))

    def facts(self):
        """The sentences that BENCHMARKS.md and README.md share."""
        cpu = [ratio for table in self.find_all("cpu", "batches")
               for ratio in ratios(small_rows(table), "MKL.*/ qrtool")]
        gpu = best_ratios(self.find("gpu", "batches"))
        large = best_ratios(self.find("gpu", "large"))
        files = [ratio for _, ratio, _ in self.cpu_bars()]
        gpu_files = [ratio for _, ratio, _ in self.gpu_bars()]
        return {"cpu": span(cpu), "gpu": span(gpu), "large": span(large), "files": span(files),
                "gpu_files": span(gpu_files),
                **{f"{part}{word}_where": " and ".join(self.machines_of(part, name))
                   for part in ("cpu", "gpu")
                   for word, name in (("", "batches"), ("_files", "files"))}}

    def benchmarks(self):
        facts = self.facts()
        measured = sorted({f"{results.head['commit']} on {results.place()}"
                           for results in self.results if results.pieces})
        lines = OPENING.format(**facts, measured="; ".join(measured) or "nothing yet").split("\n")
        lines += listed(slow for slow in self.slow if slow.ratio < 1) or [
            "- No cell of the tables below."]
        lines += [f"- {text}" for text in self.older_slower]
        close = listed(slow for slow in self.slow if slow.ratio >= 1) or ["- No other cell."]
        lines += ["", f"Less than {CLOSE} times as fast as another program. (Of a square matrix of "
                  "thousands of columns nearly all of the time goes into products of matrices, "
                  "which all libraries run near the peak.)", "", *close]
        lines += ["", f"More than {MOST_FLOORS} times the least time that memory or arithmetic "
                  f"allows: {', '.join(self.far) or 'no cell'}.", ""]
        if self.left_out:
            lines += ["Left out, as other programs used the machine: "
                      f"{', '.join(self.left_out)}.", ""]
        for part, title in (("cpu", "On a CPU"), ("gpu", "On a GPU")):
            tables = [table for its_part, table in self.tables if its_part == part]
            if tables:
                lines += [f"## {title}", *(markdown(table) for table in tables), ""]
        return "\n".join(lines).rstrip("\n") + "\n"

    def readme(self, text):
        facts = {**self.facts(), "gpu_ms": self.gpu_ms()}
        for name, words in README.items():
            replacement = words.format(**facts)
            pattern = rf"(<!-- {name} -->).*?(<!-- end -->)"
            if not re.search(pattern, text, re.S):
                raise SystemExit(f"README.md: has no place for '{name}'")
            text = re.sub(pattern, lambda found, made=replacement: found[1] + made + found[2], text,
                          flags=re.S)
        return text

    def gpu_ms(self):
        table = self.find("gpu", "batches")
        row = next(row for row in table.rows if row[0].replace(",", "") == "15000 of 64 x 64")
        own = next(i for i, name in enumerate(table.columns) if name.startswith("qrtool"))
        return figure(number(row[own]))


def svg_of(script):
    """Draws the picture; its last line says by which script."""
    drawn = subprocess.run(["gnuplot", "-"], input=script, capture_output=True, text=True,
                           check=True).stdout
    return drawn + mark_of(script)


def mark_of(script):
    return f"<!-- samples/benchmarks.gp {hashlib.sha256(script.encode()).hexdigest()} -->\n"


def main(arguments):
    root = pathlib.Path(arguments[arguments.index("--root") + 1]) if "--root" in arguments else ROOT
    page = Page(root / "tests/peers/results")
    script = page.gp()
    texts = {"BENCHMARKS.md": page.benchmarks(), "samples/benchmarks.gp": script,
             "README.md": page.readme((root / "README.md").read_text(encoding="utf-8"))}
    if "--check" not in arguments:
        for name, text in texts.items():
            (root / name).write_text(text, encoding="utf-8")
        (root / "samples/benchmarks.svg").write_text(svg_of(script), encoding="utf-8")
        return 0
    differ = [name for name, text in texts.items()
              if (root / name).read_text(encoding="utf-8") != text]
    if not (root / "samples/benchmarks.svg").read_text(encoding="utf-8").endswith(mark_of(script)):
        differ.append("samples/benchmarks.svg")
    for name in differ:
        print(f"{name}: is not what tests/peers/pages.py writes from tests/peers/results")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
