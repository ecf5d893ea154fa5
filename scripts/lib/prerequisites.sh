# shellcheck shell=bash
# Finds what the scripts need, installs what is missing where that is possible, and says what to
# type where it isn't. Source common.sh first.
#
#   require_build_tools   JDK, Maven, Rust, C compiler; sets JAVA_HOME and PATH
#   require_spark         JDK, Python, and .build/venv with pyspark and tpchgen-cli;
#                         sets SPARK_HOME, PYSPARK_PYTHON and VENV_PYTHON
#
# Both may be called again: what is there is left alone. COMET_NO_INSTALL=1 installs nothing
# system-wide; it names the command instead.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

PYSPARK_VERSION=4.1.3
TPCHGEN_VERSION=4.0.0
MIN_RUST=1.94
MIN_MAVEN=3.6.3
MIN_PYTHON=3.10
JDK_VERSIONS="17 21"
VENV_DIR=$BUILD_DIR/venv

require_build_tools() {
    require_jdk
    require_maven
    require_rust
    require_c_compiler
}

require_spark() {
    require_jdk
    require_python
    make_venv
    VENV_PYTHON=$VENV_DIR/bin/python
    SPARK_HOME=$("$VENV_PYTHON" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
    PYSPARK_PYTHON=$VENV_PYTHON
    PYSPARK_DRIVER_PYTHON=$VENV_PYTHON
    export SPARK_HOME PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON
    note "Spark $PYSPARK_VERSION: $SPARK_HOME"
}

# ---- JDK ----------------------------------------------------------------------------------------

require_jdk() {
    local home
    if ! home=$(find_jdk); then
        case $(package_manager) in
            apt-get) install_first_of "a JDK 17 or 21" openjdk-17-jdk-headless openjdk-21-jdk-headless ;;
            dnf) install_first_of "a JDK 17 or 21" java-17-openjdk-devel java-21-openjdk-devel ;;
            *) install_first_of "a JDK 17 or 21" openjdk@17 ;;
        esac
        home=$(find_jdk) || die "found no JDK 17 or 21 after installing one; set JAVA_HOME to it and start again"
    fi
    export JAVA_HOME=$home
    PATH=$JAVA_HOME/bin:$PATH
    note "JDK $(jdk_version "$home"): $home"
}

# Prints the home of the first JDK of a wanted version; $JAVA_HOME and the one on PATH come first.
find_jdk() {
    local home version candidate javac
    javac=$(command -v javac || true)
    for version in $JDK_VERSIONS; do
        for home in "${JAVA_HOME:-}" "$(jdk_home_of "$javac")" /usr/lib/jvm/*"$version"* \
            "$HOME"/.sdkman/candidates/java/"$version"* /Library/Java/JavaVirtualMachines/*/Contents/Home \
            /opt/homebrew/opt/openjdk@"$version" /usr/local/opt/openjdk@"$version"; do
            [ -n "$home" ] && [ -x "$home/bin/javac" ] || continue
            candidate=$(jdk_version "$home")
            case " $JDK_VERSIONS " in
                *" ${candidate%%.*} "*)
                    printf '%s\n' "$home"
                    return 0
                    ;;
            esac
        done
    done
    return 1
}

# jdk_home_of /usr/bin/javac: follows the links, however many there are.
jdk_home_of() {
    local path=$1 link
    [ -n "$path" ] || return 0
    while [ -L "$path" ]; do
        link=$(readlink "$path")
        case $link in
            /*) path=$link ;;
            *) path=$(dirname "$path")/$link ;;
        esac
    done
    (cd "$(dirname "$path")/.." && pwd -P)
}

# "17.0.15", from the JDK's release file, or from javac when there is none.
jdk_version() {
    local version=
    if [ -r "$1/release" ]; then
        version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$1/release")
    fi
    [ -n "$version" ] || version=$("$1/bin/javac" -version 2>&1 | sed -n 's/^javac //p')
    printf '%s\n' "$version"
}

# ---- Maven, C compiler --------------------------------------------------------------------------

require_maven() {
    have_command mvn || install_first_of "Maven" maven
    local version
    version=$(maven_version || true)
    version_at_least "${version:-0}" "$MIN_MAVEN" ||
        die "Maven is '${version:-unknown}' ($(command -v mvn)), needed is $MIN_MAVEN or later; put a later mvn first on PATH"
    note "Maven $version: $(command -v mvn)"
}

maven_version() {
    # Without colours; some versions write escape codes even into a pipe.
    mvn -B --version 2>/dev/null | sed -n 's/.*Apache Maven \([0-9.]*\).*/\1/p'
}

require_c_compiler() {
    local compiler
    if ! compiler=$(find_c_compiler); then
        case $(package_manager) in
            apt-get) install_first_of "a C compiler" build-essential ;;
            brew) die "a C compiler is missing; type: xcode-select --install" ;;
            *) install_first_of "a C compiler" gcc ;;
        esac
        compiler=$(find_c_compiler) || die "found no C compiler after installing one; put cc on PATH or set CC"
    fi
    note "C compiler: $compiler"
}

# One that compiles and links: without the C library's headers it is of no use.
find_c_compiler() {
    local name scratch
    scratch=$(mktemp -d)
    printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' >"$scratch/probe.c"
    for name in ${CC:-} cc gcc clang; do
        if have_command "$name" && "$name" "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null; then
            rm -rf "$scratch"
            command -v "$name"
            return 0
        fi
    done
    rm -rf "$scratch"
    return 1
}

# ---- Rust ---------------------------------------------------------------------------------------

require_rust() {
    if ! rust_is_recent; then
        PATH=$HOME/.cargo/bin:$PATH # where rustup puts it; an older one may stand first, or none
    fi
    if ! rust_is_recent; then
        local found
        found=$(rust_version || true)
        note "Rust $MIN_RUST or later is missing (found: ${found:-none})"
        have_command rustup || install_rustup
        local remedy="rustup toolchain install stable --profile minimal"
        may_install || die "Rust $MIN_RUST or later is missing; type: $remedy"
        # shellcheck disable=SC2086 # words of a command
        run_step "Installing Rust: $remedy" "$INSTALL_LOG" $remedy
        hash -r
        # The default, or a directory's override, may still be an older one.
        rust_is_recent || export RUSTUP_TOOLCHAIN=stable
        rust_is_recent || die "rustc is '$(rust_version)' ($(command -v rustc)), needed is $MIN_RUST or later; type: rustup update stable"
    fi
    note "Rust $(rust_version): $(command -v rustc)"
}

# Formatter and linter of Rust, which a minimal installation lacks.
require_rust_components() {
    local remedy="rustup component add rustfmt clippy"
    if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then
        return 0
    fi
    have_command rustup && may_install || die "rustfmt or clippy is missing; type: $remedy"
    # shellcheck disable=SC2086 # words of a command
    run_step "Installing rustfmt and clippy: $remedy" "$INSTALL_LOG" $remedy
}

rust_version() {
    rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p'
}

rust_is_recent() {
    have_command rustc && have_command cargo && version_at_least "$(rust_version)" "$MIN_RUST"
}

install_rustup() {
    local by_hand="install rustup the way its own site says, then type: rustup toolchain install stable"
    case $(package_manager) in
        apt-get | brew) install_or_tell "rustup" "$by_hand" rustup ;;
        dnf)
            install_or_tell "rustup" "$by_hand" rustup
            have_command rustup || run_step "Setting rustup up" "$INSTALL_LOG" rustup-init -y --profile minimal
            ;;
        *) die "Rust $MIN_RUST or later is missing; $by_hand" ;;
    esac
    hash -r
    have_command rustup || die "rustup isn't on PATH after installing it; $by_hand"
}

# ---- Python and the venv ------------------------------------------------------------------------

require_python() {
    PYTHON=$(find_python) || {
        install_first_of "Python $MIN_PYTHON or later" python3
        PYTHON=$(find_python) || die "found no Python $MIN_PYTHON or later; install one and put it on PATH as python3"
    }
    if ! can_make_venv; then
        [ "$(package_manager)" = apt-get ] || die "$PYTHON lacks the modules venv and ensurepip; install them for it"
        install_first_of "Python's venv" "python$(python_version "$PYTHON")-venv" python3-venv
        can_make_venv || die "$PYTHON still lacks the modules venv and ensurepip; install them for it"
    fi
    note "Python $(python_version "$PYTHON"): $PYTHON"
}

find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11 python3.10; do
        if have_command "$name" && version_at_least "$(python_version "$name")" "$MIN_PYTHON"; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

can_make_venv() {
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null
}

# The stamp is written last: a venv without it, or with another one's, is not finished.
make_venv() {
    local stamp="pyspark==$PYSPARK_VERSION tpchgen-cli==$TPCHGEN_VERSION"
    if [ "$(cat "$VENV_DIR/complete" 2>/dev/null)" = "$stamp" ] && "$VENV_DIR/bin/python" -c 'import pyspark' 2>/dev/null; then
        return 0
    fi
    step "Installing pyspark $PYSPARK_VERSION and tpchgen-cli $TPCHGEN_VERSION into $VENV_DIR (about 450 MB)"
    rm -f "$VENV_DIR/complete"
    run_step "Making the venv" "$LOG_DIR/venv.log" "$PYTHON" -m venv --clear "$VENV_DIR"
    # shellcheck disable=SC2086 # two requirements
    run_step "Installing with pip" "$LOG_DIR/pip.log" \
        "$VENV_DIR/bin/python" -m pip install --disable-pip-version-check --no-input $stamp
    printf '%s\n' "$stamp" >"$VENV_DIR/complete"
}
