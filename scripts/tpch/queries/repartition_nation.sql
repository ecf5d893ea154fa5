SELECT /*+ REPARTITION(n_regionkey) */ * FROM nation
