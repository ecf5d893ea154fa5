-- Every row of orders, dealt out to 64 partitions in turn.
SELECT /*+ REPARTITION(64) */ * FROM orders
