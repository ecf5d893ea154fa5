"""The suites that can be chosen and the tests that may fail, from the tables in spark-suites/."""

import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "spark-suites"
REASONS = ("class match:", "RDD cast:", "block sizes:")


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    runs: str  # the class
    default: bool
    limit: int  # seconds

    @property
    def is_sql(self):
        return self.runs.startswith("org.apache.spark.sql.")


def known_suites():
    suites = {}
    for name, runs, default, limit in table("suites.tsv", 4):
        suites[name] = Suite(name, runs, default == "default", int(limit))
    return suites


def chosen_suites(wanted):
    """The suites that the comma-separated names mean; without any, the default ones."""
    known = known_suites()
    if not wanted:
        return [suite for suite in known.values() if suite.default]
    suites = []
    for name in wanted.split(","):
        if name in known:
            suites.append(known[name])
        elif name.startswith("org.apache.spark."):
            suites.append(Suite(name.rpartition(".")[2], name, False, 1800))
        else:
            raise ValueError(
                f"--suites '{wanted}': no suite is called '{name}'; --list names them, and the full"
                " name of a class will do as well"
            )
    return suites


def by_design():
    """{suite: {test: reason}}"""
    entries = {}
    for suite, test, reason in table("by-design.tsv", 3):
        if not reason.startswith(REASONS):
            raise ValueError(
                f"by-design.tsv: the reason '{reason}' of '{test}' starts with none of"
                f" {', '.join(REASONS)}"
            )
        entries.setdefault(suite, {})[test] = reason
    return entries


def table(name, columns):
    for number, line in enumerate((FOLDER / name).read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) != columns:
                raise ValueError(f"{name}, line {number}: {len(cells)} columns, not {columns}")
            yield cells


if __name__ == "__main__":
    for known in known_suites().values():
        print(f"{known.name:<42}{'default' if known.default else '':<9}{known.runs}")
