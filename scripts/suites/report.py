"""What was seen: progress, the table, faults, and the JSON file."""

import json
import os

HEADINGS = (
    ("suite", "<", 42),
    ("control", ">", 14),
    ("passed", ">", 8),
    ("by design", ">", 11),
    ("FAULT", ">", 7),
    ("canceled", ">", 10),
    ("ignored", ">", 9),
    ("not run", ">", 9),
    ("seconds", ">", 9),
    ("  engaged", "<", 0),
)

# Frames that say nothing of what went wrong.
PLUMBING = tuple(f"at {name}" for name in ("org.scalatest.", "scala.", "org.apache.spark.SparkFun"))


def say(text):
    print(f"    {text}", flush=True)


def print_report(verdicts):
    print()
    print("Control: passed/failed with Spark's shuffle. Engaged: jobs under our manager of all jobs,")
    print("exchanges of ours of all in the last plans of queries.")
    print_cells([heading for heading, _, _ in HEADINGS])
    for verdict in verdicts:
        print_cells(cells_of(verdict))
    for verdict in verdicts:
        print_details(verdict)


def print_cells(cells):
    line = "".join(f"{cell:{side}{width}}" for cell, (_, side, width) in zip(cells, HEADINGS))
    print(line.rstrip())


def cells_of(verdict):
    control, ours = verdict.control, verdict.ours
    return [
        verdict.suite.name,
        f"{control.count('passed')}/{control.count('failed')}" if control else "-",
        ours.count("passed"),
        len(verdict.by_design),
        len(verdict.faults),
        ours.count("canceled"),
        ours.count("ignored"),
        verdict.not_run,
        f"{ours.seconds:.0f}",
        "  " + engagement(verdict),
    ]


def engagement(verdict):
    ours = verdict.ours
    jobs = f"{verdict.jobs} of {sum(ours.managers.values())} jobs"
    if not verdict.suite.is_sql:
        return jobs
    return f"{jobs}, {ours.ours} of {ours.ours + ours.sparks} exchanges"


def print_details(verdict):
    for name in verdict.as_control:
        print(f"{verdict.suite.name}: fails in the control as well: {name}")
    for problem in verdict.problems:
        print(f"{verdict.suite.name}: {problem}")
    for fault in verdict.faults:
        print(f"{verdict.suite.name}: FAULT: {fault['test']}")
        for line in short_trace(fault):
            print(f"      {line}")


def short_trace(fault, most=24):
    """The head of the trace, or of the message when there is no trace."""
    lines = (fault["trace"] or fault["message"]).splitlines()
    shown = [line.strip()[:220] for line in lines if not line.strip().startswith(PLUMBING)]
    return shown[:most] + ([f"... {len(shown) - most} more"] if len(shown) > most else [])


def write_json(path, settings, verdicts, facts):
    value = {
        "command": settings.command_line,
        "conf": settings.conf_of("ours"),
        "tests": settings.tests,
        **facts,
        "ok": all(verdict.ok for verdict in verdicts),
        "suites": [suite_facts(verdict) for verdict in verdicts],
    }
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    os.replace(unfinished, path)
    print(f"Written: {path}")


def suite_facts(verdict):
    ours = verdict.ours
    return {
        "suite": verdict.suite.name,
        "class": verdict.suite.runs,
        "ok": verdict.ok,
        "control": run_facts(verdict.control) if verdict.control else None,
        "ours": run_facts(ours),
        "by_design": verdict.by_design,
        "faults": verdict.faults,
        "fails_in_control": verdict.as_control,
        "after_spark_was_gone": verdict.knock_on,
        "not_run": verdict.not_run,
        "problems": verdict.problems,
        "engagement": {
            "jobs": ours.managers,
            "exchanges_ours": ours.ours,
            "exchanges_spark": ours.sparks,
        },
    }


def run_facts(run):
    return {
        **{how: run.count(how) for how in ("passed", "failed", "canceled", "ignored")},
        "expected": run.expected,
        "seconds": run.seconds,
        "ended": run.end,
        "tests": {name: [test["how"], test["seconds"]] for name, test in run.tests.items()},
    }
