# Debian in a directory: what debian.sh and package.sh share. Sourced after common.sh, not run. It mounts nothing: a
# root ends with the directory it is in.

# What packages are built with, and looked at, besides what the library is built with.
package_packages=(dpkg-dev file lintian)

# suite_of NUMBER_OR_NAME: the name that mirrors know a release by.
suite_of() {
    case $1 in
        12) echo bookworm ;;
        13) echo trixie ;;
        [a-z]*) echo "$1" ;;
        *) die "Debian $1 is not known here: name it, as in \"trixie\"" ;;
    esac
}

# make_root SUITE DIR [PACKAGE...]: apt and what is essential, and PACKAGEs with what they need.
make_root() {
    local suite=$1 dir=$2 include
    shift 2
    include=$(IFS=,; echo "$*")
    say "installing Debian $suite into $dir"
    # shellcheck disable=SC2086  # debootstrap_options are several
    timeout --foreground 900 mmdebstrap --quiet --mode=root --variant=apt \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io ${debootstrap_options:-} \
        ${include:+--include="$include"} "$suite" "$dir" || return 1
    echo '127.0.0.1 localhost' > "$dir/etc/hosts"  # what an installed system has
    [ ! -e /etc/resolv.conf ] || cp --remove-destination "$(realpath /etc/resolv.conf)" "$dir/etc/resolv.conf"
}

# copy_project DIR: the sources of the project, into DIR/zkasio.
copy_project() {
    mkdir -p "$1/zkasio"
    tar -C "$root" --exclude=./build --exclude=./.git -c . | tar -C "$1/zkasio" -x
}
