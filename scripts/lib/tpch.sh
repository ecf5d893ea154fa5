# shellcheck shell=bash
# What the scripts that run TPC-H share: the jar, the data, values of options. Source it after
# common.sh and prerequisites.sh.

# need_value OPTION [VALUE ...]
need_value() {
    [ $# -ge 2 ] || die "$1 needs a value; scripts/$(basename "$0") --help shows which"
}

# The values of --scale, --jar and --json, in SCALE, JAR and JSON; the paths become absolute.
check_shared_options() {
    # shellcheck disable=SC2153 # whoever sources this sets them
    [[ $SCALE =~ ^[0-9]+(\.[0-9]+)?$ && $SCALE =~ [1-9] ]] ||
        die "--scale '$SCALE' isn't a number above 0; write 1, 10 or 0.1"
    if [ -n "$JAR" ]; then
        [ -f "$JAR" ] && [ -r "$JAR" ] ||
            die "--jar '$JAR' isn't a file that can be read; leave --jar out to build one"
        JAR=$(absolute "$JAR")
    fi
    if [ -n "$JSON" ]; then
        [ -d "$(dirname "$JSON")" ] || die "--json '$JSON': the folder $(dirname "$JSON") isn't there; make it first"
        [ -w "$(dirname "$JSON")" ] || die "--json '$JSON': may not write into $(dirname "$JSON"); name another folder"
        JSON=$(absolute "$JSON")
    fi
}

absolute() {
    printf '%s/%s\n' "$(cd "$(dirname "$1")" && pwd)" "$(basename "$1")"
}

# Builds the jar and leaves its path in JAR.
build_jar() {
    step "Building the jar (scripts/build)"
    "$PROJECT_ROOT/scripts/build" || die "scripts/build ended with $?; its messages are above" 1
    local jar newest=
    for jar in "$PROJECT_ROOT"/spark-plugin/target/comet-shuffle-spark4.1_2.13-*.jar; do
        case $jar in
            *-sources.jar | *-javadoc.jar | *-tests.jar) continue ;;
        esac
        if [ -f "$jar" ] && [[ -z $newest || $jar -nt $newest ]]; then
            newest=$jar
        fi
    done
    [ -n "$newest" ] ||
        die "scripts/build left no spark-plugin/target/comet-shuffle-spark4.1_2.13-<version>.jar" 1
    JAR=$newest
}

# generate_data SCALE: leaves the folder's path in DATA_DIR. Generates into another one first, so that
# a folder of the right name is always complete.
generate_data() {
    local scale=$1
    DATA_DIR=$BUILD_DIR/tpch/sf$scale
    step "TPC-H at scale $scale"
    if [ -d "$DATA_DIR" ]; then
        note "is there: $DATA_DIR"
        return
    fi
    need_disk_space "$scale"
    local unfinished=$DATA_DIR.unfinished.$$
    rm -rf "$DATA_DIR".unfinished.*
    mkdir -p "$(dirname "$DATA_DIR")"
    run_step "Generating into $DATA_DIR" "$LOG_DIR/tpchgen.log" \
        "$VENV_DIR/bin/tpchgen-cli" parquet --scale-factor "$scale" --output-dir "$unfinished" --no-progress
    mv "$unfinished" "$DATA_DIR"
}

# need_disk_space SCALE: Parquet takes 0.4 GB at scale 1, and Spark's files of the shuffles up to 4 GB.
need_disk_space() {
    local scale=$1 free needed
    free=$(df -Pk "$BUILD_DIR" | awk 'NR == 2 { printf "%d", $4 / 1024 }')
    needed=$(awk -v scale="$scale" 'BEGIN { printf "%d", 100 + scale * 4400 }')
    [ "$free" -ge "$needed" ] ||
        die "$BUILD_DIR has $free MiB free, scale $scale takes up to $needed; make room or give a lower --scale"
}
