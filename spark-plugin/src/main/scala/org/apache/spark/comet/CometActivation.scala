package org.apache.spark.comet

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.{
  MEMORY_OFFHEAP_ENABLED,
  MEMORY_OFFHEAP_SIZE,
  SHUFFLE_MANAGER
}

/** Whether an application can use the shuffle; if not, it stays on Spark's and is told why, once. */
object CometActivation extends Logging {

  val ManagerClass = "org.apache.spark.comet.shuffle.CometShuffleManager"
  val ExtensionsClass = "org.apache.spark.comet.sql.CometSparkSessionExtensions"
  val ExplainClass = "org.apache.spark.comet.sql.CometExplainGenerator"

  // The application that was looked at last: a JVM can run several, one after another.
  private var lastChecked: SparkConf = _
  private var lastObstacle: Option[String] = None

  /** What stands in the way of the shuffle in the application of `conf`, with its remedy. The first call for an
    * application logs it as a warning.
    */
  def obstacle(conf: SparkConf): Option[String] = synchronized {
    if (lastChecked ne conf) {
      lastObstacle = findObstacle(conf)
      lastChecked = conf
      lastObstacle.foreach { cause =>
        logWarning(s"Comet Shuffle is off, the application uses Spark's shuffle: $cause")
      }
    }
    lastObstacle
  }

  private def findObstacle(conf: SparkConf): Option[String] =
    CometConf.invalidValue(conf)
      .orElse(offHeapObstacle(conf))
      .orElse(managerObstacle(conf))
      .orElse(libraryObstacle())

  private def offHeapObstacle(conf: SparkConf): Option[String] =
    if (!conf.get(MEMORY_OFFHEAP_ENABLED)) {
      Some("off-heap memory is off. Set spark.memory.offHeap.enabled=true and " +
        "spark.memory.offHeap.size to a part of each executor's memory, such as 4g.")
    } else if (conf.get(MEMORY_OFFHEAP_SIZE) <= 0) {
      Some(s"spark.memory.offHeap.size is ${conf.get(MEMORY_OFFHEAP_SIZE)}. Set it to a part of " +
        "each executor's memory, such as 4g.")
    } else {
      None
    }

  private def managerObstacle(conf: SparkConf): Option[String] =
    conf.getOption(SHUFFLE_MANAGER.key).filter(_ != ManagerClass).map { manager =>
      s"spark.shuffle.manager is set to '$manager'. Leave it unset or set it to $ManagerClass."
    }

  private def libraryObstacle(): Option[String] =
    try {
      NativeLibrary.load()
      None
    } catch {
      case e: CometNativeException => Some(e.getMessage)
    }
}
