"""Runs the contenders of scripts/bench in turn, and prints and writes what they took."""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

from workloads import chosen_workloads

MODES = ("auto", "native", "jvm")
CODECS = ("lz4", "zstd", "snappy", "none")
DEFAULT_CONTENDERS = "spark-lz4,spark-zstd,ours-auto-lz4,ours-auto-zstd,ours-jvm-lz4"
HERE = os.path.dirname(os.path.abspath(__file__))
RATIOS = (("seconds", "wall"), ("cpu_seconds", "cpu"), ("bytes", "bytes"))


def main():
    arguments = parse_arguments()
    try:
        workloads = chosen_workloads(arguments.workloads)
        confs = {name: confs_of(name, arguments) for name in arguments.contenders.split(",")}
        check_memory(arguments, len(confs))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    contenders = []
    try:
        for name in confs:
            contenders.append(Contender(name, confs[name], arguments))
        measured = measure(contenders, workloads, arguments.rounds)
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is written")
    finally:
        for contender in contenders:
            contender.close()
        shutil.rmtree(arguments.work, ignore_errors=True)
    print_tables(measured, [contender.name for contender in contenders])
    if arguments.json:
        write_json(arguments, contenders, measured)
    failed = [contender for contender in contenders if contender.failure]
    for contender in failed:
        print(f"error: {contender.name}: {contender.failure}; log: {contender.log}", file=sys.stderr)
    sys.exit(1 if failed else 0)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "jar", "logs", "work", "revision"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--scale", required=True, type=float)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--contenders", default=DEFAULT_CONTENDERS)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--ours-conf", action="append", default=[])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--heap", default="3g")
    parser.add_argument("--off-heap", default="2g")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds is {arguments.rounds} but must be at least 1")
    return arguments


def confs_of(name, arguments):
    """The options of Spark of a contender."""
    confs = {
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": arguments.off_heap,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": os.path.join(arguments.work, name),
        "spark.sql.warehouse.dir": os.path.join(arguments.work, name, "warehouse"),
        **pairs("--conf", arguments.conf),
    }
    kind, *rest = name.split("-")
    if kind == "spark" and len(rest) == 1 and rest[0] in ("lz4", "zstd", "snappy"):
        return {**confs, "spark.io.compression.codec": rest[0]}
    if kind == "ours" and len(rest) == 2 and rest[0] in MODES and rest[1] in CODECS:
        return {
            **confs,
            "spark.jars": arguments.jar,
            "spark.plugins": "org.apache.spark.comet.CometPlugin",
            "spark.comet.shuffle.mode": rest[0],
            "spark.comet.shuffle.compression.codec": rest[1],
            **pairs("--ours-conf", arguments.ours_conf),
        }
    raise ValueError(
        f"--contenders: '{name}' is none; write spark-CODEC with lz4, zstd or snappy, or "
        f"ours-MODE-CODEC with {', '.join(MODES)} and {', '.join(CODECS)}"
    )


def pairs(option, words):
    for word in words:
        if "=" not in word:
            raise ValueError(f"{option} '{word}' has no value; write KEY=VALUE")
    return dict(word.split("=", 1) for word in words)


def check_memory(arguments, contenders):
    needed = contenders * (gigabytes(arguments.heap) + gigabytes(arguments.off_heap))
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    if needed > have:
        raise ValueError(
            f"{contenders} contenders with --heap {arguments.heap} and --off-heap "
            f"{arguments.off_heap} take {needed:.0f} GiB of the machine's {have:.0f}; lower these, "
            "or name fewer --contenders"
        )


def gigabytes(size):
    match = re.fullmatch(r"(\d+)([mg])", size)
    if not match:
        raise ValueError(f"the size '{size}' can't be read; write 512m or 3g")
    return int(match[1]) / (1024 if match[2] == "m" else 1)


class Contender:
    """An application of Spark that runs workloads when it is told to."""

    def __init__(self, name, confs, arguments):
        self.name, self.confs, self.failure = name, confs, None
        self.log = os.path.join(arguments.logs, f"bench-{name}.log")
        submit = ["--master", arguments.master, "--driver-memory", arguments.heap]
        for key, value in confs.items():
            submit += ["--conf", f"{key}={value}"]
        os.makedirs(arguments.logs, exist_ok=True)
        os.makedirs(os.path.join(arguments.work, "conf"), exist_ok=True)
        environment = {
            **os.environ,
            "PYSPARK_SUBMIT_ARGS": " ".join(f"'{word}'" for word in submit) + " pyspark-shell",
            "SPARK_CONF_DIR": os.path.join(arguments.work, "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        environment.pop("SPARK_LOCAL_DIRS", None)
        reading, writing = os.pipe()
        with open(self.log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "contender.py"), arguments.data, str(writing)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[writing], env=environment,
                cwd=arguments.work, text=True, start_new_session=True,
            )
        os.close(writing)
        self._results = os.fdopen(reading, encoding="utf-8")
        print(f"    {name} starts", flush=True)
        self.versions = self._result()

    def run(self, workload, compare=False):
        """What the workload took, or nothing once the contender has failed."""
        if self.failure:
            return None
        try:
            print(
                json.dumps({"workload": workload, "compare": compare}),
                file=self._process.stdin, flush=True,
            )
        except OSError:
            self.failure = "its process ended"
            return None
        return self._result(workload)

    def _result(self, workload="starting"):
        line = self._results.readline()
        result = json.loads(line) if line else {"error": "its process ended"}
        if "error" in result:
            self.failure = f"{workload}: {result['error'].splitlines()[0]}"
            return None
        return result

    def close(self):
        try:
            self._process.stdin.close()
            self._process.wait(timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            pass
        finally:
            # Also the JVM, which is of the same session.
            subprocess.run(["pkill", "-KILL", "-s", str(self._process.pid)], check=False)


def measure(contenders, workloads, rounds):
    """Figures by workload and contender, a list of rounds each."""
    measured = {}
    for place, workload in enumerate(workloads, start=1):
        where = f"[{place}/{len(workloads)}] {workload}"
        compare_rows(contenders, workload, where)
        figures = measured[workload] = {contender.name: [] for contender in contenders}
        for number in range(rounds + 1):
            for contender in contenders:
                result = contender.run(workload)
                if result:
                    what = f"round {number}" if number else "warm-up"
                    seconds = f"{result['seconds']:.2f} s"
                    print(f"    {where} {what}: {contender.name} {seconds}", flush=True)
                if number:
                    figures[contender.name].append(result)
    return measured


def compare_rows(contenders, workload, where):
    expected = None
    for contender in contenders:
        result = contender.run(workload, compare=True)
        if result is None:
            continue
        expected = expected or result["digest"]
        if result["digest"] != expected:
            contender.failure = f"{workload}: its rows are not those of {contenders[0].name}"
    print(f"    {where}: rows compared", flush=True)


def ratios(figures, base, name, key):
    """Within rounds, to the contender `base`."""
    rounds = zip(figures[name], figures[base])
    return [mine[key] / theirs[key] for mine, theirs in rounds if mine and theirs and theirs[key]]


def print_tables(measured, names):
    print()
    print("Medians over the rounds; ratios to the first contender of the same round as median")
    print("(lowest-highest).")
    for workload, figures in measured.items():
        print(f"\n{workload}")
        heads = ("exchanges", "seconds", "wall", "cpu", "MiB", "bytes")
        print("  {:<18}{:<18}{:>8} {:<18} {:<18}{:>9} {:<18}".format("", *heads).rstrip())
        for name in names:
            rounds = [figure for figure in figures[name] if figure]
            if not rounds:
                print(f"  {name:<18}failed")
                continue
            shown = [ratio_text(ratios(figures, names[0], name, key)) for key, _ in RATIOS]
            seconds = statistics.median(figure["seconds"] for figure in rounds)
            size = statistics.median(figure["bytes"] for figure in rounds) / (1 << 20)
            exchanges = exchange_text(rounds[-1])
            print(
                f"  {name:<18}{exchanges:<18}{seconds:>8.2f} {shown[0]:<18} {shown[1]:<18}"
                f"{size:>9.1f} {shown[2]:<18}".rstrip()
            )


def exchange_text(figure):
    jvm = figure["exchanges_ours"] - figure["exchanges_native"]
    kinds = ((figure["exchanges_native"], "native"), (jvm, "jvm"), (figure["exchanges_spark"], "Spark"))
    return ", ".join(f"{count} {kind}" for count, kind in kinds if count)


def ratio_text(values):
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def write_json(arguments, contenders, measured):
    result = {
        "command": sys.argv,
        "revision": arguments.revision,
        "jar": os.path.basename(arguments.jar),
        "scale": arguments.scale,
        "rounds": arguments.rounds,
        "machine": {
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        },
        "contenders": {
            contender.name: {"confs": contender.confs, **(contender.versions or {})}
            for contender in contenders
        },
        "measured": measured,
    }
    unfinished = f"{arguments.json}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(unfinished, arguments.json)


if __name__ == "__main__":
    main()
