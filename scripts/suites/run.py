"""Runs Spark's suites with our shuffle on, first without it; scripts/spark-suites is its front.

Ends with 0 when all is well, with 1 after any fault, stale entry or lack of engagement, with 2 when
an option is wrong, and with 130 when it was interrupted, after showing the suites that had ended.
"""

import argparse
import re
import shutil
import signal
import sys
import zipfile

import catalog
from jvm import SuiteJvm, unpack
from outcome import Run, Verdict
from report import print_report, say, write_json

OFF_HEAP = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "2g"}
OURS = {
    "spark.shuffle.manager": "org.apache.spark.comet.shuffle.CometShuffleManager",
    "spark.plugins": "org.apache.spark.comet.CometPlugin",
    "spark.sql.extensions": "org.apache.spark.comet.sql.CometSparkSessionExtensions",
    **OFF_HEAP,
}


def main():
    try:
        settings = read_settings(sys.argv[1:])
        suites, listed = catalog.chosen_suites(settings.suites), catalog.by_design()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if settings.check:
        return 0
    catch_signals()
    settings.class_path = unpack(settings.class_path, settings.unpacked)
    verdicts, code = [], 0
    try:
        for suite in suites:
            verdicts.append(judge(suite, settings, listed.get(suite.name, {})))
    except KeyboardInterrupt:
        print("error: it was interrupted before all suites had run", file=sys.stderr)
        code = 130
    finally:
        shutil.rmtree(settings.work, ignore_errors=True)
    print_report(verdicts)
    if settings.json:
        facts = {"revision": revision_of(settings.jar), "interrupted": code != 0}
        write_json(settings.json, settings, verdicts, facts)
    return code or (0 if all(verdict.ok for verdict in verdicts) else 1)


def revision_of(jar):
    """The one that the build stamped it with."""
    with zipfile.ZipFile(jar) as archive:
        text = archive.read("org/apache/spark/comet/build.properties").decode()
    return re.search("^revision=(.*)", text, re.MULTILINE)[1]


def catch_signals():
    """Each of them is an interruption, so that no JVM outlives this process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Under nohup a closed terminal is to be no reason to end.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def judge(suite, settings, listed):
    control = None if settings.skip_control else run(suite, "control", settings)
    return Verdict(suite, control, run(suite, "ours", settings), listed, whole=not settings.tests)


def run(suite, side, settings):
    jvm = SuiteJvm(suite, side, settings)
    say(f"{suite.name}, {side}: {jvm.output}")
    told = [0]

    def tell(seconds):
        if seconds - told[0] >= 60:
            told[0] = seconds
            so_far = Run(jvm.events, None, seconds)
            failed = so_far.count("failed")
            done = f"{len(so_far.tests)} of {so_far.expected} tests, {failed} failed"
            say(f"{suite.name}, {side}: {done} after {seconds:.0f} s")

    code, seconds = jvm.run(tell)
    result = Run(jvm.events, code, seconds)
    counts = ", ".join(f"{result.count(how)} {how}" for how in ("passed", "failed", "canceled"))
    say(f"{suite.name}, {side}: {counts}, {seconds:.0f} s{'; ' + result.end if result.end else ''}")
    return result


def read_settings(words):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--suites", default="")
    parser.add_argument("--tests", action="append", default=[])
    parser.add_argument("--skip-control", action="store_true")
    parser.add_argument("--off-heap-control", action="store_true")
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--limit", default="")
    parser.add_argument("--json")
    # From here on what scripts/spark-suites found out or made.
    parser.add_argument("--check", action="store_true", help="only check the options")
    for option in ("--jar", "--class-path", "--unpacked", "--work", "--logs", "--command-line"):
        parser.add_argument(option, default="")
    settings = parser.parse_args(words)
    if settings.limit and not (settings.limit.isdecimal() and int(settings.limit)):
        raise ValueError(f"--limit '{settings.limit}' isn't a number of seconds above 0")
    settings.limit = int(settings.limit or 0)
    ours = {**OURS, **dict(key_and_value(item) for item in settings.conf)}
    control = OFF_HEAP if settings.off_heap_control else {}
    settings.conf_of = {"control": control, "ours": ours}.__getitem__
    return settings


def key_and_value(item):
    key, equals, value = item.partition("=")
    if not (key.startswith("spark.") and equals):
        raise ValueError(f"--conf '{item}' isn't KEY=VALUE with a key that is spark.<name>")
    return key, value


if __name__ == "__main__":
    sys.exit(main())
