package org.apache.spark.comet

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.{
  MEMORY_OFFHEAP_ENABLED,
  MEMORY_OFFHEAP_SIZE,
  SHUFFLE_MANAGER
}
import org.apache.spark.shuffle.ShuffleManager

/** Whether an application can use the shuffle; if not, it stays on Spark's and is told why, once. */
object CometActivation extends Logging {

  val ManagerClass = "org.apache.spark.comet.shuffle.CometShuffleManager"
  val ExtensionsClass = "org.apache.spark.comet.sql.CometSparkSessionExtensions"
  val ExplainClass = "org.apache.spark.comet.sql.CometExplainGenerator"

  // The application that was warned last: a JVM can run several, one after another.
  private var warned: SparkConf = _

  /** What stands in the way of the shuffle in the application of `conf`, with its remedy. It is logged as a warning, once
    * for an application.
    *
    * @param manager the application's shuffle manager, once there is one
    */
  def obstacle(conf: SparkConf, manager: Option[ShuffleManager]): Option[String] = synchronized {
    val found = CometConf.invalidValue(conf)
      .orElse(offHeapObstacle(conf))
      .orElse(managerObstacle(conf))
      .orElse(manager.flatMap(otherManagerObstacle))
      .orElse(libraryObstacle())
    found.filter(_ => warned ne conf).foreach { cause =>
      warned = conf
      logWarning(s"Comet Shuffle is off, the application uses Spark's shuffle: $cause")
    }
    found
  }

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

  // The SQL extension may be set without the manager.
  private def otherManagerObstacle(manager: ShuffleManager): Option[String] =
    Option.unless(manager.getClass.getName == ManagerClass) {
      s"spark.shuffle.manager is not set, so that the manager is ${manager.getClass.getName}. Set " +
        s"spark.shuffle.manager to $ManagerClass, or spark.plugins to " +
        "org.apache.spark.comet.CometPlugin."
    }

  private def libraryObstacle(): Option[String] =
    try {
      NativeLibrary.load()
      None
    } catch {
      case e: CometNativeException => Some(e.getMessage)
    }
}
