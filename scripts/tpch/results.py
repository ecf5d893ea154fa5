"""How results are compared and put into words, tables and files."""

import collections
import json
import math
import os


def first_line(error):
    """The line that says what went wrong; py4j puts one before it that only names the call."""
    for line in str(error).splitlines():
        line = line.strip(" :")
        if line and not line.startswith("An error occurred while calling"):
            return line
    return type(error).__name__


def difference_of(ours, sparks):
    """What differs between two answers in words, or None. Rows may come in any order."""
    if ours["columns"] != sparks["columns"]:
        return f"columns {ours['columns']} instead of {sparks['columns']}"
    if "rows" not in ours or "rows" not in sparks:
        differing = [key for key in sparks if ours.get(key) != sparks[key]]
        if not differing and ours.keys() == sparks.keys():
            return None
        return "; ".join(f"{key} {ours.get(key)} instead of {sparks[key]}" for key in differing)
    mine, theirs = (collections.Counter(map(tuple, run["rows"])) for run in (ours, sparks))
    surplus, missing = mine - theirs, theirs - mine
    if not surplus and not missing:
        return None
    words = f"{mine.total()} rows, {surplus.total()} of them not in Spark's {theirs.total()}"
    for label, rows in (("ours alone has", surplus), ("Spark's alone has", missing)):
        if rows:
            words += f"; {label} {list(min(rows, key=repr))}"
    return words


def shown(value, form):
    return "-" if value is None else format(value, form)


def size_text(size):
    if size is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if size < 1000:
            break
        size /= 1024
    else:
        unit = "GiB"
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def print_cells(cells, headings):
    """One line of a table; a heading is a label, the side its cells keep to, and their width."""
    line = "".join(f"{cell:{side}{width}}" for cell, (_, side, width) in zip(cells, headings))
    print(line.rstrip())


def write_json(path, value):
    """Whole or not at all: whoever reads the file never sees half of it."""
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    os.replace(unfinished, path)
