SELECT /*+ MERGE(nation, region) */ r_name, count(*), min(n_name)
FROM nation JOIN region ON n_regionkey = r_regionkey
GROUP BY r_name
