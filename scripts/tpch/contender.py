"""A contender of scripts/bench: one application of Spark that runs what it is told, line by line.

It is started by bench.py, which knows it as a process. Commands and results are lines of JSON, on
the standard input and on a pipe of its own, since Spark writes to the standard output.
"""

import json
import os
import sys
import time

from pyspark.sql import SparkSession

from answers import digest, throw_away
from history import History
from workloads import WORKLOADS


def main():
    data, results = sys.argv[1], os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")

    def answer(value):
        print(json.dumps(value), file=results, flush=True)

    spark = SparkSession.builder.appName("bench").getOrCreate()
    history = History(spark)
    jvm = spark._jvm.java.lang
    for table in ("lineitem", "orders"):
        spark.read.parquet(os.path.join(data, f"{table}.parquet")).createOrReplaceTempView(table)
    answer({"spark": spark.version, "java": jvm.System.getProperty("java.version")})
    jvm_pid = jvm.ProcessHandle.current().pid()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer(run(spark, history, jvm_pid, **command))
        except Exception as error:  # told to bench.py, which goes on with the others
            answer({"error": str(error).strip()})
    spark.stop()


def run(spark, history, jvm_pid, workload, compare):
    """Runs a workload once; `compare` is for its digest instead of for its time."""
    query, options = WORKLOADS[workload]
    for key, value in options.items():
        spark.conf.set(key, value)
    frame = spark.sql(query)
    history.executions()
    if compare:
        return {"digest": digest(frame)}
    spark._jvm.System.gc()  # drops the files of shuffles that are over, and is not measured
    cpu, began = cpu_seconds(jvm_pid), time.perf_counter()
    throw_away(frame)
    seconds = time.perf_counter() - began
    cpu = cpu_seconds(jvm_pid) - cpu
    return {"seconds": seconds, "cpu_seconds": cpu, **history.executions()}


def cpu_seconds(pid):
    """User and system time of a process, from fields 14 and 15 of its stat (proc(5))."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
