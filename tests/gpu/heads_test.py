#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The head of a kernel file must list exactly the defines that the kernel reads from outside,
including those that its host half sets, and all heads say the same of a define. Kernels do not ask
for the size of their launch, which CUDA's driver does not give to OpenCL's programs. Each function,
macro and type of kernels is defined in one file, unless a file has other bodies of what the file
beside it that includes it defines. Only a parameter may have a default in several files."""
import collections
import pathlib
import re
import sys

# The host half of a kernel file is the .cpp file of the same name, and for these:
HOSTS = {
    "gemm.cl": ["product.cpp"],
    "gram_twice.cl": ["gram_twice.cpp", "passes.cpp"],
    "further_passes.cl": ["further_passes.cpp", "passes.cpp"],
    "large.cl": ["large.cpp", "product.cpp"],
    "systems.cl": ["system_params.cpp"],
    "weigh.cl": ["weights.cpp"],
    "pairs_check.cl": ["pairs.cpp"],
    "shared.cl": ["shared_matrix.cpp"],
    "sums.cl": ["device_sums.cpp"],
    "check.cl": [],  # device_check.cpp sets the defines of both
    "check_rows.cl": [],
    "check_vector.cl": [],
    "refused.cl": [],
}
NO_DEFINE = {"MOST_REGISTERS"}  # an option of the compiler
NAME = r"[A-Z][A-Z_0-9]+"
# A row of a table of defines: names, then cells that are two spaces apart.
ROW = rf"//   ({NAME}(?:(?:, | = ){NAME})*),?(?:  (.*)|$)"


def with_includes(root, path, seen):
    if path in seen:
        return
    seen.append(path)
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
        with_includes(root, root / name, seen)


def head_of(text):
    lines = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        lines.append(line)
    return "\n".join(lines)


def defaults_of(text):
    """Defines that may be set from outside: #ifndef X, #define X."""
    return set(re.findall(r"^#ifndef (\w+)\n#define \1 \S", text, re.M))


def functions_of(text):
    """Names of the functions that a file defines: a word other than typedef or struct begins the
    line, and a list of parameters stands before the first brace. Attributes, and macros for them,
    may stand before the name."""
    text = re.sub(r"//.*|^ *#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    for match in re.finditer(r"^(?!typedef|struct)\w+\b[^;{}=]*\{", text, re.M):
        head = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", match[0])
        head = re.sub(r"\b[A-Z_]+\([^()]*\)\s+(?=\w)", "", head)
        name = re.match(r"[\w\s*]*?(TILED\(\w+\)|\w+)\s*\(", head.strip())
        if name:
            yield name[1]


def macros_of(text):
    """Names and definitions of the macros of a file, and whether each is a parameter's default."""
    text = re.sub(r"//.*", "", text.replace("\\\n", " "))
    defaults = re.findall(r"^#ifndef (\w+) *\n#define \1 (\d+|float|double)\n#endif", text, re.M)
    for match in re.finditer(r"^ *# *define +(\w+)(.*)$", text, re.M):
        definition = " ".join(match[2].split())
        yield match[1], definition, (match[1], definition) in defaults


def types_of(text):
    """Names and definitions of the types of a file."""
    text = re.sub(r"//.*", "", text)
    for match in re.finditer(r"^(?:typedef|struct)\b(?:[^;{}]|\{[^}]*\})*;", text, re.M):
        name = re.search(r"(\w+\(\w+\)|\w+)\s*(?:\[[^;]*)?;$",
                         re.sub(r"\s*__attribute__\(\(.*\)\);$", ";", match[0]))
        yield name[1], " ".join(match[0].split()), False


def meanings_of(text):
    """What the tables of a head say of each name, up to the first comma or semicolon. A row may
    also name the file that says it."""
    for line in head_of(text).split("\n"):
        row = re.match(ROW, line)
        meaning = re.split("  +", (row[2] or "").strip())[-1] if row else ""
        if meaning and not re.match(r"\w+\.clh", meaning):
            for name in re.findall(NAME, row[1]):
                yield name, re.split("[,;]", meaning)[0]


def have_two_bodies(paths):
    """Whether one of two files includes the other, which is beside it."""
    if len(paths) != 2 or len({path.parent for path in paths}) > 1:
        return False
    one, other = sorted(paths)
    return any(f'/{b.name}"\n' in a.read_text() for a, b in ((one, other), (other, one)))


def names_with_several_meanings(files):
    defined = collections.defaultdict(list)
    said = collections.defaultdict(set)
    for path in files:
        text = path.read_text()
        for name, definition, is_default in [*macros_of(text), *types_of(text)]:
            defined[name].append((path, definition, is_default))
        for name, meaning in meanings_of(text):
            said[name].add(meaning)
    for name, found in sorted(defined.items()):
        paths = {path for path, _, _ in found}
        where = {path.as_posix() for path in paths}
        if name.startswith("QRTOOL_"):
            if len(found) > 1:
                yield f"{name} guards {', '.join(sorted(where))}"
        elif (len(where) > 1 and not have_two_bodies(paths)
              and not all(of for _, _, of in found)):
            yield f"{name} is defined in {', '.join(sorted(where))}"
    for name, meanings in sorted(said.items()):
        if len(meanings) > 1:
            yield f"heads say of {name}: {' | '.join(sorted(meanings))}"


def main():
    root = pathlib.Path(sys.argv[1])
    faults = []
    files = sorted([*(root / "gpu").rglob("*.cl"), *(root / "gpu").rglob("*.clh")])
    faults += [f"there is no {name}" for name in HOSTS.keys() - {path.name for path in files}]
    owners = collections.defaultdict(set)
    for path in files:
        text = path.read_text()
        for name in functions_of(text):
            owners[name].add(path)
        for name in set(re.findall(r"\bget_(?:num_groups|global_size|global_offset)\b", text)):
            faults.append(f"{path.name}: {name}() has no value by CUDA's driver; pass an argument")
        if "asm" in re.findall(r"\w+", text) and path.name != "nvidia.clh":
            faults.append(f"{path.name}: inline PTX belongs in nvidia.clh")
    for name, paths in owners.items():
        if len(paths) > 1 and not have_two_bodies(paths):
            where = ", ".join(path.as_posix() for path in sorted(paths))
            faults.append(f"{name} is defined in {where}")
    faults += names_with_several_meanings(files)

    for path in files:
        if path.suffix != ".cl":
            continue
        parts = []
        with_includes(root, path, parts)
        heads = "\n".join(head_of(part.read_text()) for part in parts)
        read = set().union(*(defaults_of(part.read_text()) for part in parts))
        listed = set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", heads))
        faults += [f"{path.name}: no head lists {name}" for name in sorted(read - listed)]
        code = "\n".join(re.sub(r"//.*", "", part.read_text()) for part in parts)
        for line in head_of(path.read_text()).split("Defines")[-1].split("\n")[1:]:
            table = re.match(ROW, line)
            for name in re.findall(NAME, table[1] if table else ""):
                if not re.search(rf"\b{name}\b", code):
                    faults.append(f"{path.name} lists {name}, which it does not read")
        for host in HOSTS.get(path.name, [path.with_suffix(".cpp").name]):
            found = list((root / "gpu").rglob(host))
            if not found:
                faults.append(f"{path.name} has no host half {host}")
                continue
            text = found[0].read_text()
            set_here = set(re.findall(r'(?:\{|\[)"([A-Z][A-Z_0-9]+)"', text)) - NO_DEFINE
            for name in sorted(set_here):
                if not re.search(rf"\b{name}\b", code):
                    faults.append(f"{host} sets {name}, which {path.name} does not read")
                if name not in listed:
                    faults.append(f"{host} sets {name}, which no head of {path.name} lists")
    print("\n".join(faults) or f"{len(files)} files")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
