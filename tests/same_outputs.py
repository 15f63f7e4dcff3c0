#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same_outputs.py PROGRAM OUT.json: runs the lines of same_outputs.txt, and records what each
gives: exit codes, files, JSON, and text without numbers that depend on time or load.
same_outputs.py OLD.json NEW.json [-v]: lists the lines whose results differ, and ends with 1 if any
but texts do. For changes that must change nothing. PoCL serves as the device."""
import difflib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

LINES = pathlib.Path(__file__).with_suffix(".txt")
# Keys of JSON, attributes and words of text that no two runs share.
OF_THIS_RUN = re.compile(r"^load$|memory_limit|seconds|rate|time|free|peak")
MEASURED = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)? ?"
                      r"(s|ms|us|GB/s|MB/s|GFLOP/s|GiB|MiB|GB|MB|minutes|min|h|%)\b|load +[\d.]+")


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def lasting(node):
    """JSON without what belongs to this run alone."""
    if isinstance(node, dict):
        return {k: lasting(v) for k, v in node.items() if not OF_THIS_RUN.search(k)}
    if isinstance(node, list):
        return [lasting(each) for each in node]
    return MEASURED.sub("#", node) if isinstance(node, str) else node


def described(array):
    array = np.asarray(array)
    data = array.astype("S") if array.dtype.kind == "O" else array
    return [str(array.dtype), list(array.shape), digest(np.ascontiguousarray(data).tobytes())]


def content_of_hdf5(path):
    found = {}

    def visit(name, node):
        attributes = {k: str(v) for k, v in sorted(node.attrs.items()) if not OF_THIS_RUN.search(k)}
        found[name] = [attributes]
        if isinstance(node, h5py.Dataset):
            found[name] += [described(node[()]), str(node.chunks), str(node.compression)]

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(visit)
    return found


def content_of(path):
    if path.suffix == ".h5":
        return content_of_hdf5(path)
    if path.suffix == ".npz":
        with np.load(path) as members:
            return {name: lasting(json.loads(str(members[name]))) if name == "qrtool"
                    else described(members[name]) for name in members.files}
    if path.suffix == ".json":
        return lasting(json.loads(path.read_text()))
    return digest(path.read_bytes())


def make_arrays(folder):
    rng = np.random.default_rng(7)
    draw = rng.standard_normal
    dependent = draw((5, 20, 6))
    dependent[:, :, 5] = dependent[:, :, 0] + dependent[:, :, 1]
    bad = draw((6, 12, 4))
    bad[2, 3, 1], bad[4] = np.nan, 0
    gap = draw((300, 20))
    gap[rng.random((300, 20)) < .1] = np.nan
    arrays = {
        "b": draw((40, 24, 12)), "sq": draw((8, 32, 32)).astype(np.float32),
        "bf": draw((40, 24, 12)).astype(np.float32), "wide": draw((6, 5, 9)),
        "one": draw((300, 40)), "tall": draw((20000, 6)), "bad": bad, "dep": dependent,
        "hard": draw((10, 40, 16)) * 10.0 ** np.linspace(0, -14, 16), "empty": np.zeros((0, 5, 3)),
        "c": draw((5, 20, 8)) + 1j * draw((5, 20, 8)), "fort": np.asfortranarray(draw((30, 7))),
        "cf": (draw((5, 20, 8)) + 1j * draw((5, 20, 8))).astype(np.complex64),
        "i": rng.integers(-9, 9, (4, 10, 4)), "f16": draw((4, 10, 4)).astype(np.float16),
        "y": draw((40, 24, 2)), "yf": draw((40, 24, 2)).astype(np.float32), "y1": draw((40, 24)),
        "yone": draw((300, 3)), "ytall": draw(20000), "ydep": draw((5, 20)), "yw": draw((6, 5)),
        "yc": draw((5, 20, 1)) + 1j * draw((5, 20, 1)), "shared": draw((300, 500)), "gap": gap,
        "w": np.abs(draw(300)), "keys": rng.integers(0, 9, 300).astype(np.int32)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "s.npz", A=draw((3, 9, 4)), B=draw((3, 9, 2)))
    np.savez_compressed(folder / "z.npz", A=draw((3, 9, 4)))
    with h5py.File(folder / "in.h5", "w") as file:
        file["A"], file["g/B"] = draw((2, 3, 16, 5)), draw((2, 3, 16, 1))
        file.create_dataset("chunk", data=draw((10, 16, 5)), chunks=(2, 16, 5), compression="gzip",
                            shuffle=True)
        file["f"], file["sq"] = draw((7, 16, 5)).astype(">f4"), draw((4, 9, 9)).astype(np.float32)
        file["t"], file["u"], file["rhs"] = np.arange(16.0), draw(16), draw(16)
    with h5py.File(folder / "single.h5", "w") as file:
        file["A"] = draw((50, 30, 10)).astype(np.float32)
    return draw((120, 4))


def make_texts(folder, numbers):
    def write(name, lines):
        (folder / name).write_text("\n".join(lines) + "\n")

    write("t.csv", ["year,height,weight,price,city"] + [
        f"{1900 + i},{v[0]:.6f},{v[1]:.6f},{v[2]:.6f},{'abcd'[i % 4]}"
        for i, v in enumerate(numbers)])
    write("de.csv", ["k;x;y"] + [
        f"{i % 5};{v[0]:.6f};{v[1]:.6f}".replace(".", ",") for i, v in enumerate(numbers)])
    write("na.csv", ["x,y,z"] + [
        f"{v[0]:.5f},{'' if i % 17 == 3 else f'{v[1]:.5f}'},{v[2]:.5f}"
        for i, v in enumerate(numbers)])
    rows = [",".join(map(repr, v.tolist())) for v in numbers]
    write("m.csv", [*rows[:20], "", *rows[20:40]])
    write("sp.txt", ["# comment"] + [" ".join(f"{x:.5f}" for x in v) for v in numbers[:30]])
    write("a.mtx", ["%%MatrixMarket matrix array real general", "6 3",
                    *map(str, numbers.ravel()[:18].tolist())])
    write("co.mtx", ["%%MatrixMarket matrix coordinate real general", "6 3 1", "1 1 2.0"])
    write("oct.txt", ["# name: A", "# type: matrix", "# rows: 4", "# columns: 2",
                      " 1 2", " 3 4", " 5 6", " 7 9"])
    write("notes.txt", ["hello world"])
    (folder / "trunc.npy").write_bytes((folder / "b.npy").read_bytes()[:5000])


def result_of(program, line, folder):
    environment = dict(os.environ, QRTOOL_TIMINGS="", LC_ALL="C.UTF-8", COLUMNS="100",
                       POCL_EXTRA_BUILD_FLAGS="-cl-opt-disable")
    given = set(folder.iterdir())
    codes, texts, answers = [], [], []
    for run in line.split(";"):
        done = subprocess.run([program, *run.split()], cwd=folder, env=environment,
                              capture_output=True, text=True, errors="replace", check=False)
        codes.append(done.returncode)
        if "--json" in run and done.stdout.startswith("{"):
            answers.append(lasting(json.loads(done.stdout)))
        else:
            texts.append(done.stdout)
        texts.append(done.stderr)
    files = {path.relative_to(folder).as_posix(): content_of(path)
             for path in sorted(folder.rglob("*")) if path.is_file() and path not in given}
    for path in set(folder.iterdir()) - given:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {"codes": codes, "files": files, "json": answers,
            "text": MEASURED.sub("#", "\n".join(texts)).replace(str(folder), "FOLDER")}


def record(program, out):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_texts(folder, make_arrays(folder))
        results = {line: result_of(os.path.abspath(program), line, folder)
                   for line in LINES.read_text().splitlines() if not line.startswith("#")}
    pathlib.Path(out).write_text(json.dumps(results, indent=0))
    print(f"{len(results)} lines")


def compare(old, new, is_verbose):
    differ = texts = 0
    for line, before in old.items():
        after = new.get(line, {})
        parts = [part for part in before if before[part] != after.get(part)]
        if not parts:
            continue
        texts += parts == ["text"]
        differ += parts != ["text"]
        print(f"{line}: {', '.join(parts)}")
        for part in parts if is_verbose else []:
            pair = [json.dumps(each.get(part), indent=1).replace("\\n", "\n").splitlines()
                    for each in (before, after)]
            print("\n".join(difflib.unified_diff(*pair, lineterm="", n=0)))
    print(f"{len(old)} lines: {differ} differ, and {texts} in their text alone")
    return differ > 0


def main():
    first, second = sys.argv[1:3]
    if not first.endswith(".json"):
        return record(first, second)
    return compare(*(json.loads(pathlib.Path(name).read_text()) for name in (first, second)),
                   "-v" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
