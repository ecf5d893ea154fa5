SELECT /*+ REPARTITION(201, o_orderkey) */
  o_orderkey,
  named_struct('key', o_custkey, 'price', o_totalprice, 'status', o_orderstatus) AS customer,
  split(o_comment, ' ') AS words
FROM orders
