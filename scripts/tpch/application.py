"""A contender's process as the benchmark sees it: starts it, tells it what to run, ends it."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

PROGRAM = pathlib.Path(__file__).resolve().parent / "contender.py"
SECONDS_TO_END = 20


class RunFailed(Exception):
    """The workload failed; the application may be asked for another one."""


class Died(Exception):
    """The application is no more."""


class Application:
    def __init__(self, name, log):
        self.name, self.log = name, log
        self.alive = False
        self.versions = {}
        self._process = self._results = None

    def start(self, submit_options, data, folder):
        """`folder` is for its temporary files. Comes back when the application is ready."""
        for name in ("conf", "tmp"):
            os.makedirs(f"{folder}/{name}")
        reading, writing = os.pipe()
        command = [sys.executable, PROGRAM, "--name", self.name, "--data", data]
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, "--results", str(writing)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[writing],
                cwd=folder,
                env=environment(submit_options, folder),
                # With its JVM it is a group of its own, so that a Ctrl-C is for the benchmark
                # alone, which then ends both.
                start_new_session=True,
            )
        self.alive = True
        os.close(writing)
        self._results = os.fdopen(reading, encoding="utf-8")
        self.versions = self._result()

    def run(self, workload, answer=False):
        """One run of the workload: for what it takes, or for a digest of its rows."""
        command = json.dumps({"workload": workload, "answer": answer})
        try:
            self._process.stdin.write(f"{command}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # then there is no result either
        return self._result()

    def _result(self):
        line = self._results.readline()
        if not line:
            self.alive = False
            raise Died(f"it ended with {self._process.wait()}")
        result = json.loads(line)
        if "error" in result:
            raise RunFailed(result["error"])
        return result

    def tell_to_end(self, at_once):
        """Its input's end is enough for one that waits; one that runs a query needs a signal."""
        if self._process is None:
            return
        if at_once:
            self._signal(signal.SIGTERM)
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # what it was told last never reached it

    def wait_for_end(self):
        """Until process and JVM are gone, if need be by force."""
        if self._process is None:
            return
        deadline = time.monotonic() + SECONDS_TO_END
        while self._is_there() and time.monotonic() < deadline:
            time.sleep(0.05)
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._results.close()
        self.alive = False

    def _is_there(self):
        self._process.poll()  # else it would stay in its group as a zombie
        return self._signal(0)

    def _signal(self, number):
        """To process and JVM; says whether any of them was there."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of zombies
            return False
        return True


def environment(submit_options, folder):
    """No settings of this machine's: contenders are to have their options and no others."""
    variables = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"}
    return {
        **variables,
        "PYSPARK_SUBMIT_ARGS": shlex.join([*submit_options, "pyspark-shell"]),
        "SPARK_CONF_DIR": f"{folder}/conf",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # What Python and the JVM leave behind when a signal ends them goes with the folder.
        "TMPDIR": f"{folder}/tmp",
        "JDK_JAVA_OPTIONS": f'"-Djava.io.tmpdir={folder}/tmp"',
    }
