package org.apache.spark

import org.apache.spark.comet.suites.Contender

/** For the suites of ShuffleSuite's family, which start from an empty configuration. */
trait ContenderShuffle extends ShuffleSuite {
  override def beforeAll(): Unit = {
    super.beforeAll()
    Contender.addTo(conf)
  }
}

class CometShuffleSuite extends ShuffleSuite with ContenderShuffle

class CometSortShuffleSuite extends SortShuffleSuite with ContenderShuffle

class CometShuffleNettySuite extends ShuffleNettySuite with ContenderShuffle

class CometShuffleOldFetchProtocolSuite extends ShuffleOldFetchProtocolSuite with ContenderShuffle

class CometExternalShuffleServiceSuite extends ExternalShuffleServiceSuite with ContenderShuffle
