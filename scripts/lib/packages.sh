# shellcheck shell=bash
# Installs packages with the system's package manager: apt-get, dnf or brew. prerequisites.sh
# sources it. COMET_NO_INSTALL=1 installs nothing and names the command instead.

INSTALL_LOG=$LOG_DIR/install.log

package_manager() {
    local name
    for name in apt-get dnf brew; do
        if have_command "$name"; then
            printf '%s\n' "$name"
            return
        fi
    done
    printf 'none\n'
}

may_install() {
    [ "${COMET_NO_INSTALL:-0}" != 1 ]
}

# install_first_of WHAT PACKAGE...: installs the first package that the package manager knows.
install_first_of() {
    install_or_tell "$1" "install it and start again" "${@:2}"
}

# install_or_tell WHAT BY_HAND PACKAGE...: the same; BY_HAND says what to do where it can't be done.
install_or_tell() {
    local what=$1 by_hand=$2 manager package prefix='' yes=-y
    shift 2
    manager=$(package_manager)
    [ "$manager" != none ] || die "$what is missing, and there is no apt-get, dnf or brew; $by_hand"
    if [ "$manager" != brew ] && [ "$(id -u)" -ne 0 ]; then
        prefix="sudo "
    fi
    may_install || die "$what is missing; type: $prefix$manager install $1"
    [ -z "$prefix" ] || have_command sudo ||
        die "$what is missing; as root, type: $manager install $1"
    [ -z "$prefix" ] || sudo -v || die "$what is missing, and sudo said no; as root, type: $manager install $1"
    if [ "$manager" = brew ]; then
        yes=
    fi
    if [ "$manager" = apt-get ] && [ "${PACKAGE_LISTS_READ:-no}" = no ]; then
        # shellcheck disable=SC2086 # the prefix is a word or nothing
        run_step "Reading the package lists" "$INSTALL_LOG" ${prefix}apt-get update
        PACKAGE_LISTS_READ=yes
    fi
    for package in "$@"; do
        knows_package "$manager" "$package" || continue
        # shellcheck disable=SC2086 # the prefix and -y are a word or nothing
        run_step "Installing $what: $prefix$manager install $package" "$INSTALL_LOG" \
            ${prefix}env DEBIAN_FRONTEND=noninteractive "$manager" install $yes "$package"
        hash -r
        return 0
    done
    die "$what is missing, and $manager has none of these packages: $*; $by_hand"
}

knows_package() {
    case $1 in
        apt-get) [ -n "$(apt-cache show "$2" 2>/dev/null)" ] ;;
        dnf) dnf -q info "$2" >/dev/null 2>&1 ;;
        brew) brew info "$2" >/dev/null 2>&1 ;;
    esac
}
