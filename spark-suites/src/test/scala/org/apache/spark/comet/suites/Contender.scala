package org.apache.spark.comet.suites

import org.apache.spark.SparkConf

/** What scripts/spark-suites sets for the shuffle under test, for suites that keep Spark's system properties out of their
  * configuration.
  */
object Contender {

  def settings: Seq[(String, String)] =
    sys.props.getOrElse("comet.suites.settings", "").split(',').toSeq
      .filter(_.nonEmpty)
      .map(key => key -> sys.props(key))

  def addTo(conf: SparkConf): SparkConf = conf.setAll(settings)
}
