package org.apache.spark.comet;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;

/** What Scala hides as private[sql] and the suites need: Java sees it. */
final class SparkAccess {
  private SparkAccess() {}

  /** A DataFrame of any logical plan, so that every bit of its rows can be given as InternalRows. */
  static Dataset<Row> dataFrame(
      org.apache.spark.sql.classic.SparkSession session, LogicalPlan plan) {
    return Dataset.ofRows(session, plan);
  }
}
