"""The tables of TPC-H, read from a folder of Parquet files."""

import os

from answers import throw_away

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def read_tables(spark, folder, tables=TABLES):
    """Names the tables, and reads each once so that no run pays for a cold disk."""
    for table in tables:
        frame = spark.read.parquet(os.path.join(folder, f"{table}.parquet"))
        frame.createOrReplaceTempView(table)
        throw_away(frame)
