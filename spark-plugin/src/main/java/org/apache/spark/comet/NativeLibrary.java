package org.apache.spark.comet;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.Properties;

/**
 * Unpacks the native library from the jar and loads it, once per class loader. The file has a
 * unique name, since one path cannot be loaded by two loaders of a JVM, and is gone once loaded.
 */
public final class NativeLibrary {
  private static final String FILE_NAME = "libcomet_shuffle.so";
  private static Throwable failure;
  private static boolean loaded;

  private NativeLibrary() {}

  /**
   * Loads the library if it isn't yet.
   *
   * @throws CometNativeException if the platform is unsupported, the library cannot be unpacked or
   *     loaded, or is of another build than the jar; the same failure each time
   */
  public static synchronized void load() {
    if (loaded) {
      return;
    }
    if (failure != null) {
      throw new CometNativeException(failure.getMessage(), failure);
    }
    try {
      loadFrom(platform());
      loaded = true;
    } catch (CometNativeException | IOException | LinkageError e) {
      failure = e instanceof CometNativeException ? e : new CometNativeException(
          "The native library of Comet Shuffle could not be loaded: " + e.getMessage()
              + ". The temporary directory " + System.getProperty("java.io.tmpdir")
              + " must be writable and not mounted noexec; set java.io.tmpdir to another one if it"
              + " is not.", e);
      throw (CometNativeException) failure;
    }
  }

  /** Operating system and architecture, as the jar's folders name them: {@code linux-x86_64}. */
  static String platform() {
    String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    return os.replace(' ', '_') + "-" + (arch.equals("amd64") ? "x86_64" : arch);
  }

  /** Version and revision of this jar, as {@code version+revision}. */
  public static String jarVersion() throws IOException {
    Properties build = new Properties();
    try (InputStream in = NativeLibrary.class.getResourceAsStream("build.properties")) {
      if (in == null) {
        throw new IOException("build.properties is missing in the jar of Comet Shuffle");
      }
      build.load(in);
    }
    return build.getProperty("version") + "+" + build.getProperty("revision");
  }

  static void loadFrom(String platform) throws IOException {
    Path file = Files.createTempFile("comet-shuffle-", "-" + FILE_NAME);
    try {
      try (InputStream in =
          NativeLibrary.class.getResourceAsStream("native/" + platform + "/" + FILE_NAME)) {
        if (in == null) {
          throw new CometNativeException(
              "Comet Shuffle has no native library for the platform " + platform
                  + "; this jar supports linux-x86_64");
        }
        Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
      }
      System.load(file.toString());
    } finally {
      // The mapping outlives the name.
      Files.deleteIfExists(file);
    }
    checkVersion(jarVersion(), Native.version());
  }

  static void checkVersion(String jar, String library) {
    if (!jar.equals(library)) {
      throw new CometNativeException(
          "The jar of Comet Shuffle is of build " + jar + " but its native library of build "
              + library + "; build both together with scripts/build");
    }
  }
}
