"""One JVM that runs one suite, with all that Spark's suites want around them."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import zipfile

# What is unpacked: suites make files of their resources, which fails inside a jar.
UNPACKED = {
    "core": ("spark-core_", "core/src/test/resources"),
    "catalyst": ("spark-catalyst_", "sql/catalyst/src/test/resources"),
    "sql": ("spark-sql_", "sql/core/src/test/resources"),
}

OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util"
    " java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs"
    " sun.security.action sun.util.calendar"
).split()

JVM_OPTIONS = [
    *"-ea -Xmx4g -Xss4m -XX:MaxMetaspaceSize=2g -XX:ReservedCodeCacheSize=128m".split(),
    "-XX:TieredStopAtLevel=1",  # suites live on generated code that runs once
    *"-XX:+IgnoreUnrecognizedVMOptions --add-modules=jdk.incubator.vector".split(),
    "--enable-native-access=ALL-UNNAMED",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
]

PROPERTIES = {
    "jdk.reflect.useDirectMethodHandle": "false",
    "io.netty.tryReflectionSetAccessible": "true",
    "io.netty.allocator.type": "pooled",
    "io.netty.handler.ssl.defaultEndpointVerificationAlgorithm": "NONE",
    "spark.testing": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.master.rest.enabled": "false",
    "spark.unsafe.exceptionOnMemoryLeak": "true",
    "spark.hadoop.hadoop.caller.context.enabled": "true",
    "derby.system.durability": "test",
    "java.awt.headless": "true",
    "test.src.tables": "__not_used__",
}

LISTENER = {"spark.extraListeners": "org.apache.spark.comet.suites.EngagementListener"}


def unpack(class_path_file, folder):
    """The class path without the product: our classes, Spark's suites as folders, all else."""
    jars = pathlib.Path(class_path_file).read_text(encoding="utf-8").strip().split(os.pathsep)
    folders = []
    for name, (prefix, _) in UNPACKED.items():
        [jar] = [jar for jar in jars if is_tests_jar(os.path.basename(jar), prefix)]
        jars.remove(jar)
        folders.append(unpacked(jar, pathlib.Path(folder) / name))
    own = pathlib.Path(class_path_file).parent / "test-classes"
    return [str(own), *folders, *jars]


def is_tests_jar(name, prefix):
    return name.startswith(prefix) and name.endswith("-tests.jar")


def unpacked(jar, folder):
    stamp = folder.with_suffix(".complete")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != jar:
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(folder)
        stamp.write_text(jar, encoding="utf-8")
    return str(folder)


class SuiteJvm:
    """Runs the suite in a fresh home; events, output and Spark's log are left in `logs`."""

    def __init__(self, suite, side, settings):
        self._suite, self._settings, self._side = suite, settings, side
        base = pathlib.Path(settings.logs) / f"{suite.name}-{side}"
        self.events, self.output, self.log = (
            base.with_suffix(ending) for ending in (".events", ".out", ".log")
        )
        self._home = pathlib.Path(settings.work) / f"{suite.name}-{side}"
        self._process = None

    def run(self, tell):
        """Exit code and seconds; no code if the limit ended it. Calls `tell` with the seconds."""
        self._make_home()
        began = time.monotonic()
        try:
            with open(self.output, "wb") as output:
                self._process = subprocess.Popen(
                    self._command(),
                    cwd=self._directory(),
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            code = self._wait(began, tell)
            return code, time.monotonic() - began
        finally:
            self._end_group()
            shutil.rmtree(self._home, ignore_errors=True)

    def _wait(self, began, tell):
        limit = self._settings.limit or self._suite.limit
        while True:
            try:
                return self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - began
                if seconds > limit:
                    return None
                tell(seconds)

    def _end_group(self):
        """Executors of local-cluster masters are processes of their own, in the JVM's group."""
        if self._process:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()

    def _make_home(self):
        shutil.rmtree(self._home, ignore_errors=True)
        (self._home / "tmp").mkdir(parents=True)
        self.events.parent.mkdir(parents=True, exist_ok=True)
        for file in (self.events, self.log):
            file.unlink(missing_ok=True)
        for name, (_, place) in UNPACKED.items():
            link = self._home / place
            link.parent.mkdir(parents=True)
            link.symlink_to(pathlib.Path(self._settings.unpacked) / name)

    def _directory(self):
        return self._home / ("sql/core" if self._suite.is_sql else "core")

    def _command(self):
        java = os.path.join(os.environ["JAVA_HOME"], "bin", "java")
        contender = {**LISTENER, **self._settings.conf_of(self._side)}
        properties = {
            **PROPERTIES,
            **contender,
            "spark.test.home": self._home,
            "java.io.tmpdir": self._home / "tmp",
            "comet.suites.events": self.events,
            "comet.suites.log": self.log,
            "comet.suites.settings": ",".join(contender),
        }
        command = [java, *JVM_OPTIONS, *(f"-D{key}={value}" for key, value in properties.items())]
        command += ["org.scalatest.tools.Runner", "-s", self._suite.runs, "-oWF"]
        command += ["-C", "org.apache.spark.comet.suites.EventReporter"]
        for part in self._settings.tests:
            command += ["-z", part]
        return command

    def _environment(self):
        class_path = list(self._settings.class_path)
        if self._side == "ours":
            class_path.append(self._settings.jar)
        joined = os.pathsep.join(class_path)
        dropped = ("SPARK_HOME", "SPARK_CONF_DIR")
        return {
            **{key: value for key, value in os.environ.items() if key not in dropped},
            "CLASSPATH": joined,
            "SPARK_DIST_CLASSPATH": joined,
            "SPARK_TESTING": "1",
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_HOSTNAME": "localhost",
        }
