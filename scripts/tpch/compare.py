"""Sets the results of two runs of run.py side by side, prints a table and judges.

Ends with 0 when every answer is equal and our shuffle took every exchange, else with 1.
"""

import argparse
import json
import os
import sys

from results import (
    difference_of,
    geometric_mean,
    print_cells,
    shown,
    size_text,
    write_json,
)

HEADINGS = (
    ("query", "<", 23),
    ("ours", ">", 5),
    ("native", ">", 7),
    ("Spark's", ">", 8),
    ("bytes ours", ">", 12),
    ("Spark's", ">", 11),
    ("ratio", ">", 6),
    ("s ours", ">", 8),
    ("Spark's", ">", 9),
    ("ratio", ">", 6),
    ("equal", ">", 6),
)


def main():
    arguments = parse_arguments()
    ours, sparks = read_run(arguments.ours), read_run(arguments.spark)
    names = list(sparks["rows"]) + [name for name in ours["rows"] if name not in sparks["rows"]]
    rows, complaints = [], []
    for name in names:
        row, wrong = judge(name, ours["rows"].get(name), sparks["rows"].get(name))
        rows.append(row)
        complaints += wrong
    expected = set(arguments.expect.split(",")) if arguments.expect else set()
    for name in sorted(expected - set(names)):
        complaints.append(f"{name}: neither run has a result")
    if not names:
        complaints.append("there is no result at all: both runs failed before their first query")
    print_table(rows)
    for complaint in complaints:
        print(f"WRONG  {complaint}")
    if not complaints:
        print(f"All {len(rows)} answers are equal, and our shuffle took every exchange.")
    if arguments.json:
        versions = {"spark": sparks.get("spark"), "java": sparks.get("java")}
        versions.update(item.split("=", 1) for item in arguments.version)
        write_json(arguments.json, {"versions": versions, "rows": rows, "ok": not complaints})
        print(f"Written: {arguments.json}")
    return 1 if complaints else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True, help="run.py's JSON of the run with our shuffle")
    parser.add_argument("--spark", required=True, help="run.py's JSON of the run with Spark's")
    parser.add_argument("--expect", default="", help="comma-separated queries that must be there")
    parser.add_argument("--json", help="file to write the comparison to")
    parser.add_argument(
        "--version", action="append", default=[], metavar="NAME=VALUE", help="put into the JSON"
    )
    arguments = parser.parse_args()
    for item in arguments.version:
        if "=" not in item:
            parser.error(f"--version takes NAME=VALUE, not '{item}'")
    return arguments


def read_run(path):
    """A run that died before its first query left no file; it then has no rows."""
    if not os.path.exists(path):
        return {"rows": {}}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def judge(name, ours, sparks):
    """One row of the table, and the reasons why it isn't as it should be."""
    complaints = []
    for run, whose in ((sparks, "Spark's"), (ours, "our")):
        if run is None:
            complaints.append(f"{name}: no result with {whose} shuffle")
        elif "error" in run:
            complaints.append(f"{name}: failed with {whose} shuffle: {run['error']}")
    equal = False
    if not complaints:
        difference = difference_of(ours["answer"], sparks["answer"])
        equal = difference is None
        if difference:
            complaints.append(f"{name}: the answers differ: {difference}")
        for left in ours["left_to_spark"]:
            complaints.append(f"{name}: an exchange stayed Spark's: {left}")
        if sparks["exchanges_spark"] > 0 and ours["exchanges_ours"] == 0:
            exchanges = sparks["exchanges_spark"]
            complaints.append(
                f"{name}: our shuffle was not used; Spark's run has {exchanges} exchanges"
            )
        if sparks["exchanges_ours"] > 0:
            complaints.append(f"{name}: our shuffle took part in the run that is to be Spark's own")
    ours, sparks = ours or {}, sparks or {}
    row = {
        "query": name,
        "exchanges_ours": ours.get("exchanges_ours"),
        "exchanges_native": ours.get("exchanges_native"),
        "exchanges_spark": ours.get("exchanges_spark"),
        "bytes_ours": ours.get("bytes"),
        "bytes_spark": sparks.get("bytes"),
        "seconds_ours": ours.get("seconds"),
        "seconds_spark": sparks.get("seconds"),
        "equal": equal,
    }
    return row, complaints


def print_table(rows):
    print("Exchanges: in the run with our plugin, ours, those of them written in native code, and")
    print("left to Spark. Ratios: ours / Spark's.")
    print_cells([label for label, _, _ in HEADINGS], HEADINGS)
    for row in rows:
        print_cells(cells_of(row, "yes" if row["equal"] else "NO"), HEADINGS)
    complete = [row for row in rows if all(value is not None for value in row.values())]
    if complete:
        total = {key: sum(row[key] for row in complete) for key in complete[0] if key != "query"}
        equal = sum(row["equal"] for row in rows)
        print_cells(cells_of({"query": "total", **total}, f"{equal}/{len(rows)}"), HEADINGS)
        bytes_mean, seconds_mean = (mean_ratio(complete, what) for what in ("bytes", "seconds"))
        cells = ["geometric mean", *[""] * 5, bytes_mean, "", "", seconds_mean, ""]
        print_cells(cells, HEADINGS)


def cells_of(row, equal):
    return [
        row["query"],
        shown(row["exchanges_ours"], "d"),
        shown(row["exchanges_native"], "d"),
        shown(row["exchanges_spark"], "d"),
        size_text(row["bytes_ours"]),
        size_text(row["bytes_spark"]),
        ratio_text(row["bytes_ours"], row["bytes_spark"]),
        shown(row["seconds_ours"], ".2f"),
        shown(row["seconds_spark"], ".2f"),
        ratio_text(row["seconds_ours"], row["seconds_spark"]),
        equal,
    ]


def ratio_text(ours, sparks):
    return f"{ours / sparks:.2f}" if ours is not None and sparks else "-"


def mean_ratio(rows, what):
    """Of those rows that have a ratio: a query may shuffle nothing."""
    ours, sparks = f"{what}_ours", f"{what}_spark"
    mean = geometric_mean([row[ours] / row[sparks] for row in rows if row[ours] and row[sparks]])
    return shown(mean, ".2f")


if __name__ == "__main__":
    sys.exit(main())
