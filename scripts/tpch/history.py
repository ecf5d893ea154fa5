"""What Spark's status store says of the queries of an application, after the fact."""

# Node names in Spark's plans.
OUR_EXCHANGE = "CometShuffleExchange"
OUR_NATIVE_EXCHANGE = "CometShuffleExchange(native)"
OUR_JVM_EXCHANGE = "CometShuffleExchange(jvm)"
SPARK_EXCHANGE = "Exchange"


class History:
    """What Spark's status store says of the SQL executions since the last look."""

    def __init__(self, spark):
        self._bus = spark.sparkContext._jsc.sc().listenerBus()
        self._store = spark.sparkContext._jsc.sc().statusStore()
        self._sql = spark._jsparkSession.sharedState().statusStore()
        self._next = 0
        self.forget()

    def forget(self):
        """What ran until now will not be looked at."""
        self._new_executions()

    def executions(self):
        """Shuffle bytes and exchanges of everything that ran since the last call."""
        total = {
            "bytes": 0,
            "exchanges_ours": 0,
            "exchanges_native": 0,
            "exchanges_jvm": 0,
            "exchanges_spark": 0,
            "left_to_spark": [],
        }
        for execution in self._new_executions():
            total["bytes"] += self._bytes_written(execution)
            self._count_exchanges(execution.executionId(), total)
        return total

    def _new_executions(self):
        self._bus.waitUntilEmpty()
        listed = scala_items(self._sql.executionsList())
        new = [execution for execution in listed if execution.executionId() >= self._next]
        self._next = max([self._next, *(execution.executionId() + 1 for execution in new)])
        return new

    def _bytes_written(self, execution):
        """Over all attempts of the stages that ran; a skipped stage wrote nothing."""
        written = 0
        for stage in scala_items(execution.stages().toSeq()):
            written += self._store.lastStageAttempt(stage).shuffleWriteBytes()
        return written

    def _count_exchanges(self, number, total):
        """In the final adaptive plan, subqueries included; a reused exchange is not one more."""
        for node in scala_items(self._sql.planGraph(number).allNodes()):
            if node.name().startswith(OUR_EXCHANGE):
                total["exchanges_ours"] += 1
                total["exchanges_native"] += node.name() == OUR_NATIVE_EXCHANGE
                total["exchanges_jvm"] += node.name() == OUR_JVM_EXCHANGE
            elif node.name() == SPARK_EXCHANGE:
                total["exchanges_spark"] += 1
                total["left_to_spark"].append(node.desc())


def scala_items(sequence):
    """A Scala sequence as a Python list."""
    return [sequence.apply(index) for index in range(sequence.size())]
