# shellcheck shell=bash
# What the scripts that test or measure the jar share: the jar, values of options. Source it after
# common.sh and prerequisites.sh.

# need_value OPTION [VALUE ...]
need_value() {
    [ $# -ge 2 ] || die "$1 needs a value; scripts/$(basename "$0") --help shows which"
}

# The values of --jar and --json, in JAR and JSON; the paths become absolute.
check_jar_and_json() {
    # shellcheck disable=SC2153 # whoever sources this sets them
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
