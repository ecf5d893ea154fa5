-- All of lineitem in one global order: a range partitioning, then a sort.
SELECT * FROM lineitem ORDER BY l_shipdate, l_orderkey, l_linenumber
