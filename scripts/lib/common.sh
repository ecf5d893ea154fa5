# shellcheck shell=bash
# What every script of scripts/ shares: where things are, what to say, how to run a long step.
# Source it; it does nothing by itself. Works with bash 3.2 and later.

PROJECT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD_DIR=$PROJECT_ROOT/.build # git ignores it
# shellcheck disable=SC2034 # whoever sources this uses it
LOG_DIR=$BUILD_DIR/logs

# Exit code of a script that could not start its work: wrong usage, or something is missing.
EXIT_CANNOT_START=2

say() {
    printf '%s\n' "$*"
}

# A step of the script at hand: "step 'Generating TPC-H at scale 1'".
step() {
    printf '==> %s\n' "$*"
}

# A remark on the step at hand.
note() {
    printf '    %s\n' "$*"
}

warn() {
    printf 'warning: %s\n' "$*" >&2
}

# die MESSAGE [EXIT_CODE]: the message names the value that is wrong and what to do about it.
die() {
    printf 'error: %s\n' "$1" >&2
    exit "${2:-$EXIT_CANNOT_START}"
}

# The usage text of a script: the comment at its top, from its second line to the first blank one.
usage_of() {
    awk 'NR > 1 { if ($0 !~ /^#/) exit; sub(/^# ?/, ""); print }' "$1"
}

have_command() {
    command -v "$1" >/dev/null 2>&1
}

# need_command NAME WHY: for what no package manager has to be asked for.
need_command() {
    have_command "$1" || die "the command '$1' is missing, needed for $2; install it and start again"
}

# version_at_least 1.95.0 1.94: compares number by number; a part that is absent counts as 0.
version_at_least() {
    local IFS=. index
    # shellcheck disable=SC2206 # splitting at the dots is what is wanted
    local have=(${1%%[!0-9.]*}) wanted=($2)
    for index in 0 1 2; do
        if [ "${have[index]:-0}" -ne "${wanted[index]:-0}" ]; then
            [ "${have[index]:-0}" -gt "${wanted[index]:-0}" ]
            return
        fi
    done
}

# run_step LABEL LOG COMMAND...: runs the command with its output in LOG, shows that time goes by,
# and says how long it took. If the command fails, shows the end of the log and ends the script.
run_step() {
    local label=$1 log=$2 began=$SECONDS code=0 ticker=
    shift 2
    mkdir -p "$(dirname "$log")"
    if [ -t 1 ]; then
        show_elapsed "$label" &
        ticker=$!
    else
        note "$label ..."
    fi
    "$@" >"$log" 2>&1 </dev/null || code=$?
    if [ -n "$ticker" ]; then
        kill "$ticker" 2>/dev/null || true
        wait "$ticker" 2>/dev/null || true
        printf '\r\033[K'
    fi
    if [ "$code" -ne 0 ]; then
        note "$label: failed after $((SECONDS - began)) s"
        tail -n 20 "$log" | sed 's/^/    | /' >&2
        die "'$*' ended with $code; all of its output is in $log" 1
    fi
    note "$label: $((SECONDS - began)) s"
}

# Runs beside a step for as long as the script lives, or until it is stopped.
show_elapsed() {
    local began=$SECONDS
    while kill -0 $$ 2>/dev/null; do
        printf '\r    %s ... %d s' "$1" "$((SECONDS - began))"
        sleep 1
    done
}
