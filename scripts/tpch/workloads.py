"""The benchmark's workloads: their names, their order and their text. By itself, lists them."""

TABLES = ("lineitem", "orders")


def round_robin(table):
    return f"SELECT /*+ REPARTITION(64) */ * FROM {table}"


def by_hash(partitions):
    return f"SELECT /*+ REPARTITION({partitions}, l_orderkey) */ * FROM lineitem"


# The number of partitions of the last two is spark.sql.shuffle.partitions.
WORKLOADS = {
    "repartition64_lineitem": round_robin("lineitem"),
    "repartition64_orders": round_robin("orders"),
    "hash20_lineitem": by_hash(20),
    "hash200_lineitem": by_hash(200),
    "hash1000_lineitem": by_hash(1000),
    "hash2000_lineitem": by_hash(2000),
    "hash16000_lineitem": by_hash(16000),
    "groupby_orderkey": (
        "SELECT l_orderkey, sum(l_extendedprice), count(*) FROM lineitem GROUP BY l_orderkey"
    ),
    "mergejoin": (
        "SELECT /*+ MERGE(lineitem, orders) */ * FROM lineitem JOIN orders"
        " ON l_orderkey = o_orderkey"
    ),
}


def chosen_workloads(wanted):
    """The workloads that `wanted` names, comma-separated or "all", in the order of the list."""
    if wanted == "all":
        return list(WORKLOADS)
    names = wanted.split(",")
    for name in names:
        if name not in WORKLOADS:
            raise ValueError(
                f"--workloads '{wanted}': no workload is called '{name}'; there are:"
                f" {', '.join(WORKLOADS)}"
            )
    return [name for name in WORKLOADS if name in names]


if __name__ == "__main__":
    for workload, text in WORKLOADS.items():
        print(f"{workload:<24}{text}")
