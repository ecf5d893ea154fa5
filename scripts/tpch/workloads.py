"""What scripts/bench measures: workloads by name. By itself, prints them."""

# Name to query and options of the session.
WORKLOADS = {
    "repartition64_lineitem": ("select /*+ repartition(64) */ * from lineitem", {}),
    "repartition64_orders": ("select /*+ repartition(64) */ * from orders", {}),
    **{
        f"hash{n}_lineitem": (f"select /*+ repartition({n}, l_orderkey) */ * from lineitem", {})
        for n in (20, 200, 1000, 2000, 16000)
    },
    "groupby_orderkey": (
        "select l_orderkey, sum(l_extendedprice), count(*) from lineitem group by l_orderkey",
        {"spark.sql.shuffle.partitions": "200"},
    ),
    "mergejoin": (
        "select /*+ merge(o) */ l.*, o.o_orderdate, o.o_totalprice, o.o_comment "
        "from lineitem l join orders o on l_orderkey = o_orderkey",
        {"spark.sql.shuffle.partitions": "200"},
    ),
}


def chosen_workloads(wanted):
    """The workloads that `wanted` names, comma-separated or "all"."""
    names = list(WORKLOADS) if wanted == "all" else wanted.split(",")
    for name in names:
        if name not in WORKLOADS:
            raise ValueError(
                f"--workloads: none is called '{name}'; there are: {', '.join(WORKLOADS)}"
            )
    return names


if __name__ == "__main__":
    for name, (query, options) in WORKLOADS.items():
        print(f"{name:<24}{query}")
        for key, value in options.items():
            print(f"{'':<24}  {key}={value}")
