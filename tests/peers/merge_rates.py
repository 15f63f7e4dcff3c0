#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""merge_rates.py NAME OUT.csv TABLE.csv TABLE.csv: two tables of times as one, whose times
are the geometric means of theirs. Plans by it lose little on either machine.

The tables are those of `qrtool bench --rates FILE`. A time that only the first one has is taken as
far from it as the others of the variant and type are in the middle. core/cpu/rates.csv is the
table of two processors, as the CPU's bits must not depend on which one it is.
"""
import math
import statistics
import sys


def load(path):
    """{(variant, type, q, m, n): {matrices: microseconds}}"""
    table = {}
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines()[2:]:
            *key, samples = line.split(",")
            pairs = (sample.split(":") for sample in samples.split(" "))
            table[tuple(key)] = {count: float(time) for count, time in pairs}
    return table


def main():
    name, out, first, second = sys.argv[1:]
    mine, other = load(first), load(second)
    changes = {}
    for key, samples in mine.items():
        for count in samples.keys() & other.get(key, {}).keys():
            changes.setdefault(key[:2], []).append(
                math.sqrt(other[key][count] / samples[count]))
    middle = {key: statistics.median(values) for key, values in changes.items()}
    with open(out, "w", encoding="utf-8") as file:
        print(f"# qrtool.rates/1 {name}\nvariant,type,q,m,n,matrices:microseconds", file=file)
        for key, samples in mine.items():
            means = ((count, math.sqrt(time * other[key][count])
                      if count in other.get(key, {}) else time * middle[key[:2]])
                     for count, time in samples.items())
            print(",".join(key) + "," + " ".join(f"{count}:{mean:.3g}" for count, mean in means),
                  file=file)


if __name__ == "__main__":
    main()
