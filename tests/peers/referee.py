#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The QR of other programs before qrtool.verify, on all matrices of qrtool.matrices.

    referee.py LIBQRTOOL [--programs numpy,scipy,torch,jax,cupy,dx,qrtool] [--places cpu,gpu]
               [--shapes 100x64x32,...] [--kinds KIND,...] [--types float32,float64] [--seeds 1]
               [--dx FOLDER of dx_kernels.py] [--json FILE]

Prints a table: of every program the worst error in units of its bar and, where one is above, how
many matrices fail. What no program fails is one line. Left out is a kind that R of its shape would
overflow. "poisson" are counts of mean 0.4, which no generator of qrtool makes. Programs that are
not installed, and GPUs that they do not see, are left out; on a GPU the arrays stay there. SciPy
takes one matrix at a time, and cuSolverDx ("dx") the shapes of FOLDER alone. The usual shapes take
10 minutes on a CPU. No test: what other programs do is no claim of this one.
"""
import argparse
import functools
import importlib
import json
import os
import pathlib
import sys

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
SHAPES = "200x16x16,100x64x64,20x256x128,1x1000x1000,3x54577x5,1x100000x32"
POISSON = "poisson"


def version_of(module):
    return f"{module.__name__.partition('.')[0]} {module.__version__}"


def numpy_qr(place):
    if place == "gpu":
        raise ImportError
    return version_of(np), np.asarray, np.linalg.qr


def scipy_qr(place):
    if place == "gpu":
        raise ImportError
    linalg = importlib.import_module("scipy.linalg")

    def each(a):
        factors = [linalg.qr(matrix, mode="economic") for matrix in a]
        return np.stack([q for q, _ in factors]), np.stack([r for _, r in factors])

    return version_of(importlib.import_module("scipy")), np.asarray, each


def torch_qr(place):
    torch = importlib.import_module("torch")
    if place == "gpu" and not torch.cuda.is_available():
        raise ImportError
    device = "cuda" if place == "gpu" else place
    return version_of(torch), lambda a: torch.from_numpy(a).to(device), torch.linalg.qr


def jax_qr(place):
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    try:
        device = jax.devices(place)[0]
    except RuntimeError:
        raise ImportError from None
    return version_of(jax), lambda a: jax.device_put(a, device), jax.numpy.linalg.qr


def cupy_of(place):
    cupy = importlib.import_module("cupy") if place == "gpu" else None
    if not cupy or not cupy.cuda.is_available():
        raise ImportError
    return cupy


def cupy_qr(place):
    cupy = cupy_of(place)
    return version_of(cupy), cupy.asarray, cupy.linalg.qr


def dx_qr(folder, place):
    if not folder:
        raise ImportError
    cupy, peers = cupy_of(place), importlib.import_module("cupy_peers")

    def qr(a):
        precision = "single" if a.dtype == np.float32 else "double"
        name = f"qr-{a.shape[1]}x{a.shape[2]}-{precision}-*.json"
        path = min(pathlib.Path(folder).glob(name), default=None)
        if path is None:
            raise NotImplementedError
        run = peers.DxRun(cupy, path, len(a), a)
        run.call()
        return run.q, run.r

    return importlib.import_module("dx_kernels").VERSION, cupy.asarray, qr


PROGRAMS = {"numpy": numpy_qr, "scipy": scipy_qr, "torch": torch_qr, "jax": jax_qr,
            "cupy": cupy_qr}


def contestants(qrtool, programs, names, places):
    """(name, a function that moves an array of NumPy there, its QR)."""
    for name in names:
        for place in places:
            if name == "qrtool":  # on a GPU on arrays of the first program that is there
                moves = [move for _, where, move, _ in contestants(
                    qrtool, programs, list(programs), [place])]
                if moves:
                    yield f"qrtool {qrtool.__version__}", place, moves[0], qrtool.qr
                continue
            try:
                title, move, qr = programs[name](place)
            except ImportError:
                continue
            yield title, place, move, qr


def matrices(qrtool, kind, shape, dtype, seed):
    if kind == POISSON:
        return np.random.default_rng(seed).poisson(0.4, shape).astype(dtype)
    return qrtool.matrices(kind, shape, dtype, seed)


def overflows(a):
    """Whether R cannot be held in its type, as of tall ones of the kind huge."""
    return np.linalg.norm(a.astype(float), axis=1).max(initial=0) > np.finfo(a.dtype).max


def judged(qrtool, a, there, qr):
    """How many matrices fail, and the worst error in bars; a text where the program gave up; None
    where it does not offer this shape."""
    try:
        q, r = qr(there)
    except NotImplementedError:
        return None
    except Exception as trouble:  # of whatever kind the program has
        return str(trouble) or type(trouble).__name__
    report = qrtool.verify(there, q, r, report=True)[1]
    worst = 0.0
    for error in ("residual", "orthogonality", "lower"):
        ratio = report[error] / report[f"{error}_bar"]
        worst = max(worst, float(np.max(np.where(np.isnan(ratio), np.inf, ratio))))
    return [int(np.count_nonzero(report.status)), len(a), worst]


def cell(result):
    if isinstance(result, str):
        return "error"
    fails, count, worst = result
    return f"**{worst:.2g}** ({fails} of {count})" if fails else f"{worst:.2g}"


def table(results):
    """Rows of what some program fails, and a last one for the rest."""
    titles = list(dict.fromkeys(line["program"] for line in results))
    rows = {}
    for line in results:
        rows.setdefault((line["type"], line["shape"], line["kind"]), {})[line["program"]] = \
            line["result"]
    yield f"| type | matrices | kind | {' | '.join(titles)} |"
    yield "| --- | --- | --- |" + " --- |" * len(titles)
    bests = dict.fromkeys(titles, 0.0)
    number = 0
    for (dtype, shape, kind), found in rows.items():
        if any(isinstance(each, str) or each[0] for each in found.values()):
            cells = [cell(found[title]) if title in found else "" for title in titles]
            yield f"| {dtype} | {shape} | {kind} | {' | '.join(cells)} |"
            continue
        number += 1
        for title, (_, _, worst) in found.items():
            bests[title] = max(bests[title], worst)
    rest = " | ".join(f"{bests[title]:.2g}" for title in titles)
    yield f"| both | all | the other {number} rows: nobody fails | {rest} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("library")
    parser.add_argument("--programs", default=",".join([*PROGRAMS, "dx", "qrtool"]))
    parser.add_argument("--places", default="cpu,gpu")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--kinds")
    parser.add_argument("--types", default="float32,float64")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--dx")
    parser.add_argument("--json")
    args = parser.parse_args()
    os.environ["QRTOOL_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app/python"))
    qrtool = importlib.import_module("qrtool")
    kinds = args.kinds.split(",") if args.kinds else [*qrtool.KINDS, POISSON]
    programs = {**PROGRAMS, "dx": functools.partial(dx_qr, args.dx)}
    those = list(contestants(qrtool, programs, args.programs.split(","), args.places.split(",")))
    print("\n".join(f"{title}, {place}" for title, place, _, _ in those), file=sys.stderr)
    results = []
    for shape in args.shapes.split(","):
        sizes = tuple(map(int, shape.split("x")))
        for dtype in args.types.split(","):
            for kind in kinds:
                for seed in range(args.seeds):
                    a = matrices(qrtool, kind, sizes, dtype, seed)
                    if overflows(a):
                        continue
                    for title, place, move, qr in those:
                        result = judged(qrtool, a, move(a), qr)
                        if result is None:
                            continue
                        results.append({
                            "program": f"{title}, {place}", "type": dtype, "shape": shape,
                            "kind": kind if args.seeds == 1 else f"{kind}, seed {seed}",
                            "result": result})
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
