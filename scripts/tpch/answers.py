"""The answer of a query: its rows, or a digest of them, in a form that only equal answers share."""

import datetime
import decimal
import json
import struct

from pyspark.sql import Observation
from pyspark.sql import functions as F


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
