"""Measures shuffle workloads for several contenders in turn; scripts/bench is its front.

Ends with 0 when all was measured, with 1 when a contender failed or its rows differ, with 2 when an
option is wrong, and with 128 + n when signal n ended it.
"""

import hashlib
import os
import pathlib
import shutil
import signal
import sys
import zipfile

import machine
from application import Application, Died, RunFailed
from bench_report import exchanges_text, print_report, summary
from bench_settings import read_settings, submit_options
from results import difference_of, size_text, write_json

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal to end. No Exception, so that nothing takes it for a failed run."""


def main():
    try:
        settings = read_settings(sys.argv[1:])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if settings.check:
        return 0
    facts = {"machine": machine.description(), **inputs(settings)}
    measurement, code = Measurement(settings), 0
    catch_signals()
    try:
        measurement.measure()
        measurement.end_applications(at_once=False)
    except Interrupted as interrupted:
        number = interrupted.args[0]
        code = 128 + number
        measurement.complain(f"{signal.Signals(number).name} ended it before all was measured")
    finally:
        measurement.end_applications(at_once=True)
        shutil.rmtree(settings.work, ignore_errors=True)
    report(settings, facts, measurement)
    return code or (1 if measurement.complaints else 0)


def catch_signals():
    def interrupt(number, _):
        for other in SIGNALS:  # the clean-up is short; nothing is to cut it off
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number)

    for number in SIGNALS:
        # Under nohup a closed terminal is to be no reason to end.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


class Measurement:
    """The contenders' applications and what was seen of them."""

    def __init__(self, settings):
        self.runs, self.answers, self.complaints = [], {}, []
        self._settings = settings
        self._given_up = set()  # pairs of a contender and a workload
        self.applications = [
            Application(contender.name, os.path.join(settings.logs, f"bench-{contender.name}.log"))
            for contender in settings.contenders
        ]

    def measure(self):
        self._start_all()
        for workload in self._settings.workloads:
            self._warm_up(workload)
        for number in range(1, self._settings.rounds + 1):
            # Another one is first each time: what one leaves behind does not always hit the same.
            shift = (number - 1) % len(self.applications)
            in_turn = self.applications[shift:] + self.applications[:shift]
            for workload in self._settings.workloads:
                for application in in_turn:
                    self._run(number, workload, application)

    def end_applications(self, at_once):
        for application in self.applications:
            application.tell_to_end(at_once)
        for application in self.applications:
            application.wait_for_end()

    def complain(self, text):
        self.complaints.append(text)
        say(f"error: {text}")

    def _start_all(self):
        for contender, application in zip(self._settings.contenders, self.applications):
            say(f"starting    {application.name:<18} log: {application.log}")
            folder = os.path.join(self._settings.work, contender.name)
            options = submit_options(self._settings, contender, folder)
            try:
                application.start(options, self._settings.data, folder)
            except Died as death:
                self.complain(f"{application.name} did not start: {death}; log: {application.log}")

    def _warm_up(self, workload):
        """One run of each, not counted; all must hand on the same rows."""
        for application in self.applications:
            result = self._result(workload, application, answer=True)
            if result is None:
                continue
            answer = self.answers.setdefault(workload, result["answer"])
            say(f"warm-up     {workload:<24}{application.name:<18} {answer['count']} rows")
            difference = difference_of(result["answer"], answer)
            if difference:
                self._given_up.add((application.name, workload))
                self.complain(f"{workload}: {application.name} has other rows: {difference}")

    def _run(self, number, workload, application):
        result = self._result(workload, application)
        if result is None:
            return
        run = {"round": number, "workload": workload, "contender": application.name, **result}
        self.runs.append(run)
        place = f"round {number}/{self._settings.rounds}"
        say(
            f"{place:<12}{workload:<24}{application.name:<18}{run['seconds']:8.2f} s"
            f"{run['cpu_seconds']:8.2f} s CPU{size_text(run['bytes']):>12}  {exchanges_text(run)}"
        )

    def _result(self, workload, application, answer=False):
        """None if there is none; why there is none was said when it first came to that."""
        if not application.alive or (application.name, workload) in self._given_up:
            return None
        try:
            return application.run(workload, answer)
        except RunFailed as failure:
            self._given_up.add((application.name, workload))
            self.complain(
                f"{workload} failed with {application.name}: {failure}; log: {application.log}"
            )
        except Died as death:
            self.complain(f"{application.name} died in {workload}: {death}; log: {application.log}")
        return None


def say(text):
    print(f"    {text}", flush=True)


def inputs(settings):
    """What the figures depend on besides the options: taken before anything runs."""
    jar = pathlib.Path(settings.jar)
    files = sorted(pathlib.Path(settings.data).glob("*.parquet"))
    sizes = {file.name: file.stat().st_size for file in files}
    return {
        "versions": dict(item.split("=", 1) for item in settings.version),
        "data": {"folder": settings.data, "bytes": sizes},
        "jar": {
            "file": jar.name,
            "sha256": hashlib.sha256(jar.read_bytes()).hexdigest(),
            "revision": jar_revision(jar),
        },
    }


def jar_revision(jar):
    """The one that the build stamped it with."""
    with zipfile.ZipFile(jar) as archive:
        properties = archive.read("org/apache/spark/comet/build.properties").decode()
    return dict(line.split("=", 1) for line in properties.split() if "=" in line).get("revision")


def report(settings, facts, measurement):
    rows = summary(measurement.runs, settings)
    if rows:
        print_report(rows, settings)
    sys.stdout.flush()  # what is wrong comes last
    for complaint in measurement.complaints:
        print(f"error: {complaint}", file=sys.stderr)
    if not settings.json:
        return
    for application in measurement.applications:
        facts["versions"].update(application.versions)
    options = ("rounds", "master", "heap", "off_heap", "workloads", "conf", "ours_conf")
    contenders = {contender.name: contender.conf for contender in settings.contenders}
    write_json(
        settings.json,
        {
            "command": settings.command_line,
            "options": {name: getattr(settings, name) for name in options},
            "contenders": contenders,
            **facts,
            "answers": measurement.answers,
            "runs": measurement.runs,
            "summary": rows,
            "complaints": measurement.complaints,
            "ok": not measurement.complaints,
        },
    )
    print(f"Written: {settings.json}")


if __name__ == "__main__":
    sys.exit(main())
