"""What a suite's events say: how each test ended, whose fault it is, and whether we were on."""

import collections
import json

MANAGER = "org.apache.spark.comet.shuffle.CometShuffleManager"
# What Spark says to all later tests when one has ended their application.
KNOCK_ON = ("Cannot call methods on a stopped SparkContext", "SparkContext was shut down")


class Run:
    """One JVM's run of a suite."""

    def __init__(self, events, code, seconds):
        self.code, self.seconds = code, seconds
        self.tests = {}  # name: the event that ended it
        self.expected = 0
        self.aborted = []  # events
        self.complete = False
        self.managers = collections.Counter()  # jobs
        self.ours = self.sparks = 0  # exchanges in the last plans
        self._started = {}
        for line in read_lines(events):
            self._take(line)

    def _take(self, line):
        match line["event"]:
            case "run":
                self.expected = line["tests"]
            case "start":
                self._started[line["test"]] = line
            case "passed" | "failed" | "canceled" | "ignored" as how:
                self._started.pop(line["test"], None)
                self.tests[line["test"]] = {**line, "how": how}
            case "aborted":
                self.aborted.append(line)
            case "complete":
                self.complete = True
            case "job":
                self.managers[line["manager"]] += 1
            case "query":
                self.ours += line["ours"]
                self.sparks += line["sparks"]

    def named(self, how):
        return [name for name, test in self.tests.items() if test["how"] == how]

    def count(self, how):
        return len(self.named(how))

    @property
    def unfinished(self):
        return list(self._started)

    @property
    def not_run(self):
        ended = len(self.tests) - self.count("ignored")
        return max(0, self.expected - ended - len(self._started))

    @property
    def end(self):
        """Why it ended before its tests had; None if it did not."""
        if self.code is None:
            return "the limit of time ended it"
        return None if self.complete else f"the JVM ended with {self.code}"


def read_lines(path):
    """The events; a JVM that was killed may leave half a line at the end."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


class Verdict:
    """A suite's run with our shuffle, beside that without it and the list of what may fail."""

    def __init__(self, suite, control, ours, listed, whole):
        self.suite, self.control, self.ours = suite, control, ours
        self.by_design, self.as_control, self.knock_on = {}, [], []
        self.faults = []  # {"test", "message", "trace"}
        self.problems = []  # sentences
        for name in ours.named("failed"):
            self._judge(name, ours.tests[name], listed)
        for name in ours.unfinished:
            self._fault(name, f"did not end: {ours.end}")
        for event in ours.aborted:
            self._fault("(suite)", event["message"], event["trace"])
        if ours.end and not ours.unfinished:
            self._fault("(suite)", ours.end)
        self._check(listed, whole)

    def _judge(self, name, test, listed):
        failed_before = self.control and name in self.control.named("failed")
        if failed_before:
            self.as_control.append(name)
        elif name in listed:
            self.by_design[name] = listed[name]
        elif any(words in test["message"] + test["trace"] for words in KNOCK_ON):
            self.knock_on.append(name)
        else:
            self._fault(name, test["message"], test["trace"])

    def _fault(self, test, message, trace=""):
        self.faults.append({"test": test, "message": message or "", "trace": trace})

    def _check(self, listed, whole):
        ours = self.ours
        for name in listed:
            if ours.tests.get(name, {}).get("how") == "passed":
                self.problems.append(f"by-design.tsv lists '{name}', which passes")
            elif whole and name not in ours.tests and ours.complete:
                self.problems.append(f"by-design.tsv lists '{name}', which there is not")
        if self.control:
            passed = set(self.control.named("passed"))
            for name in passed & {*ours.named("canceled"), *ours.named("ignored")}:
                self.problems.append(f"'{name}' passes in the control and cancels with ours")
        if self.not_run:
            self.problems.append(f"{self.not_run} tests were not run, or only after Spark was gone")
        if not ours.tests:
            self.problems.append("no test ran")
        elif not self.jobs:
            self.problems.append("not engaged: no job ran under our shuffle manager")
        elif whole and self.suite.is_sql and not ours.ours:
            self.problems.append("not engaged: no plan had an exchange of ours")

    @property
    def jobs(self):
        return self.ours.managers[MANAGER]

    @property
    def not_run(self):
        return self.ours.not_run + len(self.knock_on)

    @property
    def ok(self):
        return not self.faults and not self.problems
