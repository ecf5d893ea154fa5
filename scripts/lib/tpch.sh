# shellcheck shell=bash
# What the scripts that run TPC-H share: the data, values of options. Source it after common.sh and
# prerequisites.sh.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/jar.sh"

# The values of --scale, --jar and --json, in SCALE, JAR and JSON; the paths become absolute.
check_shared_options() {
    # shellcheck disable=SC2153 # whoever sources this sets them
    [[ $SCALE =~ ^[0-9]+(\.[0-9]+)?$ && $SCALE =~ [1-9] ]] ||
        die "--scale '$SCALE' isn't a number above 0; write 1, 10 or 0.1"
    check_jar_and_json
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
