"""One contender of the benchmark: an application that runs workloads when it is told to.

bench.py starts it. It reads commands from its standard input and writes results to a pipe of its
own, both one JSON object a line; standard output is no use for that, as the JVM writes there, too.
It ends when its input does.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback

from pyspark.sql import SparkSession

from answers import digest, throw_away
from history import History
from results import first_line
from tables import read_tables
from workloads import TABLES, WORKLOADS


def main():
    arguments = parse_arguments()
    with os.fdopen(arguments.results, "w", encoding="utf-8") as results:

        def reply(result):
            print(json.dumps(result), file=results, flush=True)

        spark = SparkSession.builder.appName(f"bench of {arguments.name}").getOrCreate()
        read_tables(spark, arguments.data, TABLES)
        runner = Runner(spark)
        reply({"spark": spark.version, "java": spark._jvm.System.getProperty("java.version")})
        for line in sys.stdin:
            try:
                reply(runner.run(**json.loads(line)))
            except Exception as error:  # one workload's failure must not hide the others' results
                traceback.print_exc()
                end_without_jvm(spark)
                reply({"error": first_line(error)})
        spark.stop()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="the contender's")
    parser.add_argument("--data", required=True, help="folder with <table>.parquet")
    parser.add_argument("--results", required=True, type=int, help="file descriptor of the pipe")
    return parser.parse_args()


class Runner:
    def __init__(self, spark):
        self._spark = spark
        self._history = History(spark)
        self._clock = CpuClock(spark)

    def run(self, workload, answer):
        """One run of the workload, for its answer or for what it takes."""
        try:
            text = WORKLOADS[workload]
            return {"answer": digest(self._spark.sql(text))} if answer else self._measured(text)
        finally:
            # Lets Spark drop the files of the shuffle before another contender's turn comes.
            self._spark._jvm.System.gc()

    def _measured(self, text):
        self._history.forget()
        cpu_before, began = self._clock.seconds(), time.perf_counter()
        throw_away(self._spark.sql(text))
        seconds = time.perf_counter() - began
        cpu_seconds = self._clock.seconds() - cpu_before
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, **self._history.executions()}


class CpuClock:
    """The CPU time of the JVM, native threads included.

    The bean's class is not for others to see, but its interface is: the method is called through
    that, as py4j would look for it in the class.
    """

    def __init__(self, spark):
        gateway, java = spark.sparkContext._gateway, spark._jvm.java.lang
        self._bean = java.management.ManagementFactory.getOperatingSystemMXBean()
        interface = java.Class.forName("com.sun.management.OperatingSystemMXBean")
        no_types = gateway.new_array(java.Class, 0)
        self._no_arguments = gateway.new_array(java.Object, 0)
        self._method = interface.getMethod("getProcessCpuTime", no_types)

    def seconds(self):
        return self._method.invoke(self._bean, self._no_arguments) / 1e9


def end_without_jvm(spark):
    """A JVM that has died fails every call from then on: there is nothing left to do."""
    try:
        code = spark.sparkContext._gateway.proc.wait(timeout=2)
    except subprocess.TimeoutExpired:
        return
    sys.exit(f"error: the JVM ended with {code}")


if __name__ == "__main__":
    main()
