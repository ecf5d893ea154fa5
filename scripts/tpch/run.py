"""Runs the demo's queries once, under spark-submit, and writes what it saw as JSON.

Each query runs once for its answer, which also warms it up, and then a few times to a sink that
throws the rows away, timed. The answer is the rows themselves where they are few, else a digest
that does not depend on their order. Bytes and exchanges are read from Spark's own status store,
after the fact, for the timed runs. compare.py sets two such files side by side.
"""

import argparse
import sys
import time

from pyspark.sql import SparkSession

from answers import collected, digest, throw_away
from history import History
from queries import BULK_QUERIES, chosen_queries, query_text
from results import first_line, write_json
from tables import read_tables


def main():
    arguments = parse_arguments()
    names = chosen_queries(arguments.queries)
    try:
        spark = SparkSession.builder.appName(f"demo with {arguments.label}").getOrCreate()
    except Exception as error:
        sys.exit(f"error: Spark did not start: {first_line(error)}")
    result = {
        "label": arguments.label,
        "spark": spark.version,
        "java": spark._jvm.System.getProperty("java.version"),
        "rows": {},
    }
    read_tables(spark, arguments.data)
    history = History(spark)
    for number, name in enumerate(names, start=1):
        text = query_text(name, arguments.scale)
        began = time.perf_counter()
        try:
            row = run_query(spark, history, name, text, arguments.runs)
            said = f"{row['seconds']:8.2f} s"
        except Exception as error:  # one query's failure must not hide the others' results
            row = {"error": first_line(error), "trace": str(error)}
            said = f"failed: {row['error']}"
        result["rows"][name] = row
        write_json(arguments.out, result)
        spent = time.perf_counter() - began
        place = f"[{number:2}/{len(names)}]"
        print(f"    {place} {name:<24}{said}  (with its answer {spent:.1f} s)", flush=True)
        spark._jvm.System.gc()  # lets Spark drop the files of shuffles that are over
    spark.stop()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with <table>.parquet of all 8 tables")
    parser.add_argument("--scale", required=True, type=float, help="the data's scale factor")
    parser.add_argument("--label", required=True, help="whose shuffle this run uses")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--queries", default="all", help="comma-separated names, or all")
    parser.add_argument("--runs", default=2, type=int, help="timed runs of each query")
    return parser.parse_args()


def run_query(spark, history, name, text, runs):
    frame = spark.sql(text)
    answer = digest(frame) if name in BULK_QUERIES else collected(frame)
    history.forget()  # the answer's own run
    best = None
    for _ in range(runs):
        began = time.perf_counter()
        # Planned anew each time: a plan that has run keeps its shuffles, and would not run again.
        throw_away(spark.sql(text))
        spent = time.perf_counter() - began
        best = spent if best is None else min(best, spent)
        seen = history.executions()
    return {"seconds": best, "answer": answer, **seen}


if __name__ == "__main__":
    main()
