-- Every row of lineitem, to 64 partitions by the hash of its order key.
SELECT /*+ REPARTITION(64, l_orderkey) */ * FROM lineitem
