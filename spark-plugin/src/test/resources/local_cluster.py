"""A job for a cluster: shuffles, checks the answer, and says whether the exchanges were ours."""

from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
rows = spark.range(0, 100000, 1, 4).select(
    "id", (F.col("id") % 97).alias("key"), F.col("id").cast("string").alias("text")
)
grouped = rows.repartition(8, "key").groupBy("key").agg(F.count("*").alias("n"), F.max("text"))
answer = {row["key"]: row["n"] for row in grouped.collect()}
assert answer == {key: len(range(key, 100000, 97)) for key in range(97)}, answer
ordered = [row["id"] for row in rows.orderBy(F.col("id").desc()).collect()]
assert ordered == list(range(99999, -1, -1))
plan = grouped._jdf.queryExecution().executedPlan().toString()
print("MANAGER", spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().shuffleManager().getClass().getName())
print("OURS", "CometShuffleExchange" in plan)
print("EXECUTORS", spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos().__len__())
