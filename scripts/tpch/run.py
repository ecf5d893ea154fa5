"""Runs the demo's queries once, under spark-submit, and writes what it saw as JSON.

Each query runs once for its answer, which also warms it up, and then a few times to a sink that
throws the rows away, timed. The answer is the rows themselves where they are few, else a digest
that does not depend on their order. Bytes and exchanges are read from Spark's own status store,
after the fact, for the timed runs. compare.py sets two such files side by side.
"""

import argparse
import datetime
import decimal
import json
import os
import struct
import sys
import time

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from queries import BULK_QUERIES, chosen_queries, query_text

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")

# Node names in Spark's plans.
OUR_EXCHANGE = "CometShuffleExchange"
SPARK_EXCHANGE = "Exchange"


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


def read_tables(spark, folder):
    """Names the tables, and reads each once so that neither run pays for a cold disk."""
    for table in TABLES:
        frame = spark.read.parquet(os.path.join(folder, f"{table}.parquet"))
        frame.createOrReplaceTempView(table)
        throw_away(frame)


def run_query(spark, history, name, text, runs):
    frame = spark.sql(text)
    answer = digest(frame) if name in BULK_QUERIES else collected(frame)
    history.executions()  # forget the answer's own run
    best = None
    for _ in range(runs):
        began = time.perf_counter()
        # Planned anew each time: a plan that has run keeps its shuffles, and would not run again.
        throw_away(spark.sql(text))
        spent = time.perf_counter() - began
        best = spent if best is None else min(best, spent)
        seen = history.executions()
    return {"seconds": best, "answer": answer, **seen}


def throw_away(frame):
    frame.write.format("noop").mode("overwrite").save()


def collected(frame):
    """All rows, each as a list of exact text, in an order that depends on nothing but them."""
    rows = [[exact_text(value) for value in row] for row in frame.collect()]
    rows.sort(key=json.dumps)
    return {"columns": frame.columns, "rows": rows}


def exact_text(value):
    """Text that is equal only for values that are; floats by their bits."""
    if value is None:
        return None
    if isinstance(value, float):
        return "double:" + struct.pack(">d", value).hex()
    if isinstance(value, (bool, int, str, decimal.Decimal, datetime.date)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return "binary:" + bytes(value).hex()
    raise TypeError(f"a result column holds {type(value).__name__}, which has no exact text yet")


def digest(frame):
    """Count, sums and xors of two hashes of every row, gathered as the rows go by.

    An observation adds no exchange to the plan, unlike an aggregate. A null leaves the hash as it
    was, so that whether a value is null is hashed as well.
    """
    columns = [frame[name] for name in frame.columns]
    parts = columns + [F.isnull(column) for column in columns]
    first, second = F.xxhash64(*parts), F.xxhash64(F.lit("second"), *parts)
    wide = "decimal(38,0)"
    observation = Observation()
    throw_away(
        frame.observe(
            observation,
            F.count(F.lit(1)).alias("count"),
            F.sum(first.cast(wide)).alias("sum_1"),
            F.sum(second.cast(wide)).alias("sum_2"),
            F.bit_xor(first).alias("xor_1"),
            F.bit_xor(second).alias("xor_2"),
        )
    )
    return {"columns": frame.columns, **{key: str(value) for key, value in observation.get.items()}}


class History:
    """What Spark's status store says of the SQL executions since the last look."""

    def __init__(self, spark):
        self._bus = spark.sparkContext._jsc.sc().listenerBus()
        self._store = spark.sparkContext._jsc.sc().statusStore()
        self._sql = spark._jsparkSession.sharedState().statusStore()
        self._next = 0
        self.executions()

    def executions(self):
        """Shuffle bytes and exchanges of everything that ran since the last call."""
        self._bus.waitUntilEmpty()
        total = {"bytes": 0, "exchanges_ours": 0, "exchanges_spark": 0, "left_to_spark": []}
        newest = self._next
        for execution in scala_items(self._sql.executionsList()):
            number = execution.executionId()
            if number >= self._next:
                newest = max(newest, number + 1)
                total["bytes"] += self._bytes_written(execution)
                self._count_exchanges(number, total)
        self._next = newest
        return total

    def _bytes_written(self, execution):
        """Over all attempts of the stages that ran; a skipped stage wrote nothing."""
        written = 0
        for stage in scala_items(execution.stages().toSeq()):
            written += self._store.lastStageAttempt(stage).shuffleWriteBytes()
        return written

    def _count_exchanges(self, number, total):
        """In the final adaptive plan, subqueries included; a reused exchange is not one more."""
        for node in scala_items(self._sql.planGraph(number).allNodes()):
            if node.name() == OUR_EXCHANGE:
                total["exchanges_ours"] += 1
            elif node.name() == SPARK_EXCHANGE:
                total["exchanges_spark"] += 1
                total["left_to_spark"].append(node.desc())


def scala_items(sequence):
    """A Scala sequence as a Python list."""
    return [sequence.apply(index) for index in range(sequence.size())]


def first_line(error):
    """The line that says what went wrong; py4j puts one before it that only names the call."""
    for line in str(error).splitlines():
        line = line.strip(" :")
        if line and not line.startswith("An error occurred while calling"):
            return line
    return type(error).__name__


def write_json(path, value):
    """Whole or not at all: whoever reads the file never sees half of it."""
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.replace(unfinished, path)


if __name__ == "__main__":
    main()
