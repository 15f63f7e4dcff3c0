#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arrows between the layers: core knows nobody, io and gpu know core, app knows all, but for
the C interface and what it shares with the program, which know neither io nor the rest of app.
Includes are paths from the root; rooms keep their libraries, and some headers, which nobody else
reads by way of another one either; a kernel takes nothing from another variant's room. Inside a
layer no folders include each other in a circle: neither its uppermost folders, each with all below
it, nor folders by themselves. The files of a layer that lie in none of its folders count as one
folder. What a header declares is defined in the header's folder, so that calls have the direction
of the includes. No folder grows beyond its lines."""
import pathlib
import re
import sys

ALLOWED = {
    "core": {"core"},
    "io": {"io", "core"},
    "gpu": {"gpu", "core"},
    "app": {"app", "io", "gpu", "core"},
}
# Rooms of app that know less than app, and print nothing.
NARROW = {
    "app/engine": ("app/engine/", "gpu/", "core/"),
    "app/capi": ("app/capi/", "app/engine/", "gpu/", "core/"),
}
# Libraries that belong to one room: header pattern -> the room that may include it.
OWNED = {
    r"<hdf5": "io/hdf5",
    r"<zlib": "io",
    r"<libdeflate": "io/hdf5/chunks",
    r"<zip\.h": "io/npy",
    r"<fast_float": "io/text",
    r"<CL/": "gpu/host",
    r"<CLI/": "app/cli",
    r"<mpi\.h": "app/ranks",
    r"<Eigen/": "core",
}
# Headers of a room that nobody else reads, not even by way of another header.
PRIVATE = {"gpu/host/opencl.hpp": "gpu/host"}
# A kernel includes files of its own folder and what several share. The rest of a room is its own.
SHARED = {
    "gpu": ("gpu/common/", "gpu/products/"),
    "gpu/gram": ("gpu/gram/steps/",),
    "gpu/solve": ("gpu/solve/parts/",),
    "gpu/solve/normal": ("gpu/gram/steps/",),
}

# The most lines that a folder may have, with all below it, in files of the endings of LINES_OF.
LINES_OF = (".cpp", ".hpp", ".cl", ".clh", ".py", ".h", ".c")
MOST_LINES = {
    "app": 250,
    "app/apply": 500,
    "app/bench": 4480,
    "app/capi": 3490,
    "app/cli": 2425,
    "app/commands": 2425,
    "app/engine": 1680,
    "app/factor": 880,
    "app/info": 915,
    "app/options": 300,
    "app/package": 25,
    "app/process": 1000,
    "app/python": 2000,
    "app/ranks": 500,
    "app/run": 5160,
    "app/solve": 6410,
    "app/verify": 725,
    "core": 500,
    "core/apply": 400,
    "core/backend": 200,
    "core/cpu": 9400,
    "core/eigen": 805,
    "core/factor": 950,
    "core/machine": 750,
    "core/matrix": 650,
    "core/measure": 3050,
    "core/plan": 1052,
    "core/problem": 350,
    "core/report": 450,
    "core/simd": 670,
    "core/solve": 7385,
    "gpu": 171,
    "gpu/check": 2465,
    "gpu/common": 3032,
    "gpu/composed": 1860,
    "gpu/estimate": 450,
    "gpu/gram": 8815,
    "gpu/host": 3930,
    "gpu/model": 735,
    "gpu/pipeline": 3045,
    "gpu/products": 2350,
    "gpu/reflectors": 8005,
    "gpu/solve": 8980,
    "io": 100,
    "io/checksum": 300,
    "io/csv": 4400,
    "io/factors": 500,
    "io/file": 2400,
    "io/hdf5": 8000,
    "io/mtx": 575,
    "io/npy": 3015,
    "io/octave": 450,
    "io/open": 920,
    "io/read": 1175,
    "io/report": 1105,
    "io/source": 515,
    "io/text": 400,
    "io/write": 330,
}


def narrow_room_of(path):
    return next((room for room in NARROW if path.is_relative_to(room)), None)


def is_wrong(root, path, included):
    layer, room = path.parts[0], narrow_room_of(path)
    if room and not included.startswith(NARROW[room]):
        return True
    if included.split("/")[0] not in ALLOWED[layer] or not (root / included).is_file():
        return True
    shared = [folder for room, folders in SHARED.items() if path.is_relative_to(room)
              for folder in folders]
    is_kernel = path.suffix in (".cl", ".clh")
    return is_kernel and not included.startswith((*shared, f"{path.parent.as_posix()}/"))


def wrong_lines(root, path):
    layer = path.parts[0]
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        place = f"{path}:{number}: {line}"
        own = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if own and is_wrong(root, path, own.group(1)):
            yield place
        for pattern, room in OWNED.items():
            if re.match(r"\s*#\s*include\s+" + pattern, line) and not path.is_relative_to(room):
                yield place
        is_code = path.suffix in (".cpp", ".hpp")
        prints = is_code and re.search(r"\bstd::(cout|cerr)\b|\bprintf\(", line)
        if prints and (layer != "app" or narrow_room_of(path)):
            yield place + "   (only the program prints)"


def folder_of(path, depth):
    return "/".join(path.split("/")[:-1][:depth])


def circles_of_folders(includes, depth):
    """The shortest circle from each folder of a layer by includes back to it, as folders and with
    an example of each arrow."""
    arrows = {}
    for source, target in includes:
        one, other = folder_of(source, depth), folder_of(target, depth)
        if one != other and one.split("/")[0] == other.split("/")[0]:
            arrows.setdefault(one, {}).setdefault(other, f"{source} includes {target}")
    for start in sorted(arrows):
        ways, seen = [[start]], set()
        for way in ways:
            for folder in arrows.get(way[-1], {}):
                if folder not in seen:
                    seen.add(folder)
                    ways.append([*way, folder])
            if start in seen:
                circle = next(way for way in ways[1:] if way[-1] == start)
                yield circle, ", ".join(arrows[one][two] for one, two in zip(circle, circle[1:]))
                break


def wrong_circles(root):
    includes = []
    for path in sources(root):
        includes += [(path.as_posix(), target) for target in includes_of(root, path)]
    found = {}
    for depth in (2, 100):
        for circle, example in circles_of_folders(includes, depth):
            found.setdefault(frozenset(circle), f"{' -> '.join(circle)}: {example}")
    yield from found.values()


def includes_of(root, path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', (root / path).read_text(), re.M)


def ways_to_private(root):
    """The shortest way by includes from each source outside a room to a header that is the room's
    own."""
    for header, room in PRIVATE.items():
        includers = {}
        for path in sources(root):
            for target in includes_of(root, path):
                includers.setdefault(target, []).append(path.as_posix())
        ways = [[header]]
        seen = {header}
        for way in ways:
            for includer in includers.get(way[0], []):
                if includer in seen:
                    continue
                seen.add(includer)
                ways.append([includer, *way])
                if not pathlib.PurePath(includer).is_relative_to(room):
                    yield " includes ".join(ways[-1]) + f", which is private to {room}"


def outline(text):
    """C++ without comments, literals and lines of the preprocessor. Bodies are {}, but those of
    named namespaces stay."""
    comment, literal = r"//[^\n]*|/\*.*?\*/", r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    text = re.sub(f"{comment}|{literal}", "", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
    kept, skipped, parentheses = [], 0, 0
    for part in re.findall(r"namespace [\w:]+\s*\{|[{}()]|[^{}()]", text):
        if part == "{" or skipped:
            skipped += (part == "{") - (part == "}")
            if not skipped and not parentheses:
                kept.append("{}")
        elif part.startswith("namespace"):
            kept.append(";")
        else:
            parentheses += (part == "(") - (part == ")")
            kept.append(part if part != "}" else ";")
    return "".join(kept)


def names_in(path, text):
    """The functions, with `Class::` before members, and the classes that a file has at the level of
    its namespaces: what a header declares, and what a source defines."""
    is_header = path.suffix == ".hpp"
    shown = outline(text)
    for before in re.findall(r"([^;{}]*);" if is_header else r"([^;{}]*)\{\}", shown):
        while re.search(r"<[^<>]*>", before):
            before = re.sub(r"<[^<>]*>", "", before)
        found = re.search(r"([\w:~]+)\s*\(", before)
        if found and "=" not in before[: found.start()] and not before.strip().startswith("static"):
            yield found.group(1)
    for name in re.findall(r"\b(?:class|struct)\s+(\w+)[^;{}()]*\{\}", shown):
        yield name + "::"


def definitions_elsewhere(root):
    """The headers of what is defined in another folder of the layer, each with an example."""
    declared, defined = {}, {}  # name: the files that have it
    for path in sources(root):
        if path.suffix not in (".hpp", ".cpp"):
            continue
        for name in names_in(path, (root / path).read_text()):
            if path.suffix == ".hpp" or name.endswith("::"):
                declared.setdefault(name, set()).add(path)
            else:
                defined.setdefault(name, set()).add(path)
    found = {}
    for name, places in sorted(defined.items()):
        homes = declared.get(name if "::" not in name else name.split("::")[0] + "::", set())
        folders = {place.parent for place in places}
        rooms = {home.parent for home in homes}
        strangers = sorted(place for place in places if place.parent not in rooms)
        for header in homes:
            if header.suffix == ".hpp" and strangers and header.parent not in folders:
                found.setdefault(header.as_posix(), f"{strangers[0]} defines {name}")
    return found


def wrong_definitions(root):
    found = definitions_elsewhere(root)
    for header, example in sorted(found.items()):
        yield f"{header} declares what another folder defines: {example}"


def lines_of_folders(root):
    lines = {}
    for layer in ALLOWED:
        for path in (root / layer).rglob("*"):
            if path.suffix in LINES_OF:
                folder = folder_of(path.relative_to(root).as_posix(), 2)
                lines[folder] = lines.get(folder, 0) + path.read_bytes().count(b"\n")
    return lines


def wrong_sizes(root):
    lines = lines_of_folders(root)
    for folder in sorted(lines.keys() | MOST_LINES.keys()):
        if lines.get(folder, 0) > MOST_LINES.get(folder, 0) or folder not in lines:
            yield f"{folder}: {lines.get(folder, 0)} lines, of at most {MOST_LINES.get(folder, 0)}"


def sources(root):
    for layer in ALLOWED:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".cl", ".clh"):
                yield path.relative_to(root)


def wrong_includes(root):
    for layer in ALLOWED:
        paths = [path for path in sources(root) if path.parts[0] == layer]
        if not paths:
            yield f"{layer}: no sources"
        for path in paths:
            yield from wrong_lines(root, path)


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = [*wrong_includes(root), *wrong_circles(root), *ways_to_private(root)]
    wrong += [*wrong_definitions(root), *wrong_sizes(root)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
