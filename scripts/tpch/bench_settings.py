"""The benchmark's options, checked, and what they mean for each contender."""

import argparse
import dataclasses
import re

import machine
from workloads import chosen_workloads

DEFAULT_CONTENDERS = "spark-lz4,spark-zstd,ours-auto-lz4,ours-auto-zstd,ours-jvm-lz4"
SPARK_CODECS = ("lz4", "zstd", "snappy")
OUR_MODES = ("auto", "native", "jvm")
OUR_CODECS = ("lz4", "zstd", "snappy", "none")

# Options of Spark that an option of the benchmark sets, for all contenders alike.
SET_BY = {
    "spark.master": "--master",
    "spark.driver.memory": "--heap",
    "spark.memory.offHeap.enabled": "--off-heap",
    "spark.memory.offHeap.size": "--off-heap",
}

# What --conf may change.
CONF_DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    # Else the reading side would have as many tasks as the written bytes ask for, which a codec
    # changes: contenders would differ in more than their shuffle.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Enough for the run that was just measured. A driver that lives for hundreds of them would
    # fill its heap with their history.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "5",
}


@dataclasses.dataclass
class Contender:
    name: str
    conf: dict  # what makes it this contender
    ours: bool


def read_settings(words):
    """The options, contenders and workloads as lists. A ValueError says what is wrong and why."""
    settings = parse_arguments(words)
    settings.workloads = chosen_workloads(settings.workloads)
    settings.contenders = chosen_contenders(settings.contenders)
    if not re.fullmatch("[1-9][0-9]*", settings.rounds):
        raise ValueError(f"--rounds '{settings.rounds}' isn't a whole number above 0")
    settings.rounds = int(settings.rounds)
    if not re.fullmatch(r"local(\[[0-9*]+\])?", settings.master):
        raise ValueError(
            f"--master '{settings.master}' isn't local[N]: CPU time is that of the driver, where"
            " the tasks have to run; write local[2]"
        )
    check_memory(settings)
    settings.conf = read_conf("--conf", settings.conf, settings.contenders)
    ours = [contender for contender in settings.contenders if contender.ours]
    settings.ours_conf = read_conf("--ours-conf", settings.ours_conf, ours)
    return settings


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--contenders", default=DEFAULT_CONTENDERS)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--off-heap", default="2g")
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--ours-conf", action="append", default=[])
    parser.add_argument("--json")
    # From here on what scripts/bench found out or made.
    parser.add_argument("--check", action="store_true", help="only check the options")
    for option in ("--jar", "--data", "--work", "--logs", "--command-line"):
        parser.add_argument(option, default="")
    parser.add_argument("--version", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(words)


def chosen_contenders(wanted):
    names = wanted.split(",")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"--contenders '{wanted}' names {name} more than once")
    return [contender_called(name, wanted) for name in names]


def contender_called(name, wanted):
    match name.split("-"):
        case ["spark", codec] if codec in SPARK_CODECS:
            return Contender(name, {"spark.io.compression.codec": codec}, ours=False)
        case ["ours", mode, codec] if mode in OUR_MODES and codec in OUR_CODECS:
            conf = {
                "spark.plugins": "org.apache.spark.comet.CometPlugin",
                "spark.comet.shuffle.mode": mode,
                "spark.comet.shuffle.compression.codec": codec,
            }
            return Contender(name, conf, ours=True)
    raise ValueError(
        f"--contenders '{wanted}': no contender is called '{name}'; there are"
        f" spark-<{'|'.join(SPARK_CODECS)}> and"
        f" ours-<{'|'.join(OUR_MODES)}>-<{'|'.join(OUR_CODECS)}>"
    )


def check_memory(settings):
    """All contenders live at once: they must not push one another out of the memory."""
    count, there = len(settings.contenders), machine.memory_bytes()
    each = byte_count("--heap", settings.heap) + byte_count("--off-heap", settings.off_heap)
    needed = count * each
    if needed > there:
        raise ValueError(
            f"{count} contenders with --heap {settings.heap} and --off-heap {settings.off_heap}"
            f" each take {needed / 2**30:.1f} GiB, and this machine has {there / 2**30:.1f};"
            " name fewer --contenders or give them less"
        )


def byte_count(option, text):
    match = re.fullmatch("([1-9][0-9]*)([mg])", text.lower())
    if not match:
        raise ValueError(f"{option} '{text}' isn't a size; write 512m or 3g")
    return int(match[1]) * 2 ** {"m": 20, "g": 30}[match[2]]


def read_conf(option, items, contenders):
    """KEY=VALUE items as a dict, without keys that set contenders apart or are set anyway."""
    conf = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not (key.startswith("spark.") and equals):
            raise ValueError(f"{option} '{item}' isn't KEY=VALUE with a key that is spark.<name>")
        if key in SET_BY:
            raise ValueError(f"{option} '{item}': that is what {SET_BY[key]} sets; use it instead")
        for contender in contenders:
            if key in contender.conf:
                raise ValueError(
                    f"{option} '{item}': the name {contender.name} says what {key} is;"
                    " name another contender instead"
                )
        conf[key] = value
    return conf


def submit_options(settings, contender, folder):
    """The options of spark-submit for a contender that keeps its temporary files in `folder`."""
    conf = {
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        **CONF_DEFAULTS,
        **settings.conf,
        **contender.conf,
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": settings.off_heap,
    }
    options = ["--master", settings.master, "--driver-memory", settings.heap]
    if contender.ours:
        conf.update(settings.ours_conf)
        options += ["--jars", settings.jar]
    for key, value in conf.items():
        options += ["--conf", f"{key}={value}"]
    return options
