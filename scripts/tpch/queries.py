"""The demo's queries: their names, their order and their text. By itself, prints what a list names.

The texts are queries/<name>.sql, TPC-H's with the values that the specification validates with.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "queries"

# Queries that hand on a whole table, rows too many to collect.
BULK_QUERIES = (
    "repartition64_orders",
    "repartition64_lineitem",
    "hash64_lineitem",
    "sort_lineitem",
    "nested201_orders",
)
# Tables of a few rows: what a shuffle costs where there is nothing to it.
SMALL_QUERIES = ("repartition_nation", "nation_region")
ALL_QUERIES = BULK_QUERIES + SMALL_QUERIES + tuple(f"q{number:02}" for number in range(1, 23))


def chosen_queries(wanted):
    """The queries that `wanted` names, comma-separated or "all"; q3 and q03 are the same one."""
    if wanted == "all":
        return list(ALL_QUERIES)
    names = set()
    for word in wanted.split(","):
        name = f"q{int(word[1:]):02}" if word[:1] == "q" and word[1:].isdigit() else word
        if name not in ALL_QUERIES:
            raise ValueError(f"no query is called '{word}'; there are: {', '.join(ALL_QUERIES)}")
        names.add(name)
    return [name for name in ALL_QUERIES if name in names]


def query_text(name, scale):
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    return text.replace("{q11_fraction}", f"{0.0001 / scale:.12f}")


if __name__ == "__main__":
    try:
        print(",".join(chosen_queries(sys.argv[1])))
    except ValueError as error:
        sys.exit(f"error: {error}")
