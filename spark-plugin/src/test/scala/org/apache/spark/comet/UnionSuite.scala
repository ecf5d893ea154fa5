package org.apache.spark.comet

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{col, count, lit}

/** A union claims its children's common partitioning, and operators above rely on it. */
class UnionSuite extends CometTestBase {
  import CometTestBase._

  private def input(session: SparkSession, from: Long): DataFrame =
    session.range(from, from + 1000, 1, 3).select((col("id") % 50).as("k"), col("id")).toDF()

  private def expected(sums: Int): Set[(Long, Long)] = (0L until 50L).map(_ -> 20L * sums).toSet

  for (adaptive <- Seq("true", "false")) {
    test(s"group by above a union of equal hash partitionings, adaptive execution $adaptive") {
      withComet(Aqe -> adaptive) { session =>
        val parts = Seq(0L, 1000L, 2000L).map(from => input(session, from).repartition(6, col("k")))
        val union = parts(0).union(parts(1)).union(parts(2))
        val counted = union.groupBy("k").agg(count(lit(1)))
        val rows = counted.collect().map(row => row.getLong(0) -> row.getLong(1))
        assert(rows.length === 50)
        assert(rows.toSet === expected(3))
        assertComet(counted)
        // Above the union another exchange of ours.
        val again = union.repartition(3, col("id")).groupBy("k").count().collect()
        assert(again.map(row => row.getLong(0) -> row.getLong(1)).toSet === expected(3))
      }
    }

    test(s"a union of exchanges with other nested names, adaptive execution $adaptive") {
      withComet(Aqe -> adaptive) { session =>
        def part(from: Long, name: String) =
          session.range(from, from + 1000, 1, 3).selectExpr(
            s"struct(id as $name, array(struct(id as $name)) as ${name}s) as s",
            s"map(id, struct(id as $name)) as m"
          ).repartition(4)
        val union = part(0, "x").union(part(1000, "y"))
        for (again <- Seq(union.repartition(1), union.repartition(3, col("s")))) {
          val df = again.asInstanceOf[DataFrame]
          // Nothing of the structs is pruned.
          val rows = df.queryExecution.toRdd.map { row =>
            val (struct, map) = (row.getStruct(0, 2), row.getMap(1))
            val element = struct.getArray(1).getStruct(0, 1).getLong(0)
            (
              struct.getLong(0),
              element,
              map.keyArray().getLong(0),
              map.valueArray().getStruct(0, 1).getLong(0)
            )
          }.collect()
          assert(rows.sorted === (0L until 2000L).map(id => (id, id, id, id)))
          val names = assertComet(df).map(_.nodeName)
          assert(names.contains("CometShuffleExchange(native)"), df.queryExecution.executedPlan)
        }
      }
    }

    test(s"global aggregate above a union of single partitions, adaptive execution $adaptive") {
      withComet(Aqe -> adaptive) { session =>
        val union = input(session, 0).repartition(1).union(input(session, 1000).repartition(1))
        val rows = union.agg(count(lit(1))).collect()
        assert(rows.map(_.getLong(0)) === Array(2000L))
        val distinct = union.select("k").distinct().collect()
        assert(distinct.length === 50)
      }
    }
  }
}
