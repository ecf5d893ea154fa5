"""The benchmark's figures: medians, ratios within the round to the first contender, the table."""

import statistics

from results import geometric_mean, print_cells, shown, size_text

MEASURES = ("seconds", "cpu_seconds", "bytes")

HEADINGS = (
    ("", "<", 18),
    ("exchanges", "<", 20),
    ("s", ">", 7),
    ("ratio", ">", 19),
    ("CPU s", ">", 9),
    ("ratio", ">", 19),
    ("bytes", ">", 11),
    ("ratio", ">", 19),
)


def summary(runs, settings):
    """A row for each workload and contender that was measured."""
    rows = []
    base = {}
    for run in runs:
        if run["contender"] == settings.contenders[0].name:
            base[run["workload"], run["round"]] = run
    for workload in settings.workloads:
        for contender in settings.contenders:
            own = [
                run
                for run in runs
                if (run["workload"], run["contender"]) == (workload, contender.name)
            ]
            if own:
                rows.append(summary_row(own, base, contender))
    return rows


def summary_row(runs, base, contender):
    last = runs[-1]
    row = {
        "workload": last["workload"],
        "contender": last["contender"],
        "rounds": len(runs),
        "exchanges": exchanges_text(last),
        "all_its_own": not contender.ours or last["exchanges_spark"] == 0,
    }
    for measure in MEASURES:
        row[measure] = statistics.median(run[measure] for run in runs)
        ratios = ratios_of(runs, base, measure)
        row[f"{measure}_ratio"] = spread(ratios) if ratios else None
    return row


def ratios_of(runs, base, measure):
    """To the first contender in the same round; none where that one failed or wrote nothing."""
    pairs = [(run, base.get((run["workload"], run["round"]))) for run in runs]
    return [run[measure] / first[measure] for run, first in pairs if first and first[measure]]


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def exchanges_text(run):
    """Whose exchanges these were, and which of our writers wrote: "1 native, 1 Spark's"."""
    native, jvm = run["exchanges_native"], run["exchanges_jvm"]
    counts = (
        (native, "native"),
        (jvm, "jvm"),
        (run["exchanges_ours"] - native - jvm, "ours"),  # of a version that does not tell
        (run["exchanges_spark"], "Spark's"),
    )
    return ", ".join(f"{count} {whose}" for count, whose in counts if count) or "none"


def print_report(rows, settings):
    base = settings.contenders[0].name
    print()
    print(f"Medians of the rounds. Ratios: to {base} in the same round, median (lowest..highest).")
    print_cells([label for label, _, _ in HEADINGS], HEADINGS)
    for workload in settings.workloads:
        print(workload)
        for row in rows:
            if row["workload"] == workload:
                print_cells(cells_of(row), HEADINGS)
    print("geometric means of the medians, of workloads that left no exchange to Spark's shuffle")
    for contender in settings.contenders:
        print_cells(mean_cells(contender.name, rows), HEADINGS)


def cells_of(row):
    return [
        f"  {row['contender']}",
        row["exchanges"],
        shown(row["seconds"], ".2f"),
        ratio_text(row["seconds_ratio"]),
        shown(row["cpu_seconds"], ".2f"),
        ratio_text(row["cpu_seconds_ratio"]),
        size_text(row["bytes"]),
        ratio_text(row["bytes_ratio"]),
    ]


def ratio_text(ratio):
    if ratio is None:
        return "-"
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}..{ratio['max']:.2f})"


def mean_cells(name, rows):
    measured = [row for row in rows if row["contender"] == name]
    own = [row for row in measured if row["all_its_own"]]
    cells = [f"  {name}", f"{len(own)} of {len(measured)}"]
    for measure in MEASURES:
        ratios = [row[f"{measure}_ratio"] for row in own]
        mean = geometric_mean([ratio["median"] for ratio in ratios if ratio])
        cells += ["", shown(mean, ".2f")]
    return cells
