package org.apache.spark.storage

import org.apache.spark.SparkConf
import org.apache.spark.comet.suites.Contender

class CometFallbackStorageSuite extends FallbackStorageSuite {
  override def getSparkConf(initialExecutor: Int, minExecutor: Int): SparkConf =
    Contender.addTo(super.getSparkConf(initialExecutor, minExecutor))
}
