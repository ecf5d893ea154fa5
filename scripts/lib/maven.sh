# Maven and the stamp that both halves of the product carry. Source it after common.sh.

# The revision of the sources, for build.rs and for build.properties in the jar.
stamp_revision() {
    COMET_SHUFFLE_REVISION=$(git -C "$PROJECT_ROOT" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
    export COMET_SHUFFLE_REVISION
}

# Runs Maven on the plugin's module.
run_maven() {
    stamp_revision
    mvn -B --no-transfer-progress -f "$PROJECT_ROOT/spark-plugin/pom.xml" \
        "-Dcomet.revision=$COMET_SHUFFLE_REVISION" "$@"
}

# Runs Maven on the module of Spark's own suites, which the build does without.
run_suites_maven() {
    mvn -B --no-transfer-progress -f "$PROJECT_ROOT/spark-suites/pom.xml" "$@"
}
