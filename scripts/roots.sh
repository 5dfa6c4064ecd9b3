# shellcheck shell=bash
# Debian in a directory: what debian.sh and package.sh share. Sourced after common.sh, not run. No mount outlives
# its command: a root ends with the directory it is in. Whoever sources it sets `suite`, the Debian that it is about, and `optional`,
# whether there was --if-possible.
umask 022  # in a root, apt's own user has to read what is put there

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

# impossible WHY: with --if-possible that is no failure.
impossible() {
    [ -n "$optional" ] || die "$1"
    say "${0##*/}: NOT checked in Debian $suite: $1"
    exit 0
}

# What make_root and in_root need of this machine.
need_roots() {
    [ "$(id -u)" -eq 0 ] || impossible "chroot needs root"
    packages=(mmdebstrap)
    install_packages
}

bootstrap() { # OPTION... SUITE DIR
    # shellcheck disable=SC2086  # debootstrap_options, from the environment, are several
    timeout --foreground 900 mmdebstrap --quiet --mode=root --variant=apt \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io ${debootstrap_options:-} "$@"
}
lacks_packages() { # [INCLUDE]: there is that Debian, but not with these packages
    bootstrap --simulate "$suite" /dev/null && ! bootstrap --simulate "$@" "$suite" /dev/null
}

# make_root DIR [PACKAGE...]: apt and what is essential, and PACKAGEs with what they need.
make_root() {
    local dir=$1 include=()
    shift
    [ $# -eq 0 ] || include=("--include=$(IFS=,; echo "$*")")
    say "installing Debian $suite into $dir"
    if ! bootstrap "${include[@]}" "$suite" "$dir"; then
        # A list that is wrong must not pass for a mirror that is not there.
        lacks_packages "${include[@]}" > /dev/null 2>&1 && die "Debian $suite does not have all of: $*"
        impossible "mmdebstrap could not install Debian $suite"
    fi
    echo '127.0.0.1 localhost' > "$dir/etc/hosts"  # what an installed system has
    [ ! -e /etc/resolv.conf ] || cp --remove-destination "$(realpath /etc/resolv.conf)" "$dir/etc/resolv.conf"
}

# in_root DIR WHERE COMMAND...: runs it in the root DIR, there in the directory WHERE, with no locale, TMPDIR nor ccache
# that is this machine's.
in_root() {
    local dir=$1 where=$2
    shift 2
    chroot "$dir" env -u TMPDIR -u CMAKE_CXX_COMPILER_LAUNCHER -C "$where" LC_ALL=C.UTF-8 "$@"
}

# in_system DIR WHERE COMMAND...: the same, with what a running system has mounted: /proc, /sys, terminals, shared memory.
in_system() {
    # shellcheck disable=SC2016  # the inner shell's
    unshare --mount --propagation private sh -euc '
        dir=$0 where=$1
        shift
        mount --bind "$dir" "$dir"  # "ip netns" wants a root that is a mount point
        mount -t proc proc "$dir/proc"
        mount -t sysfs sysfs "$dir/sys"
        mkdir -p "$dir/dev/pts" "$dir/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$dir/dev/pts"
        ln -sf pts/ptmx "$dir/dev/ptmx"
        mount -t tmpfs -o mode=1777 tmpfs "$dir/dev/shm"
        exec chroot "$dir" env -u TMPDIR -u CMAKE_CXX_COMPILER_LAUNCHER -C "$where" LC_ALL=C.UTF-8 "$@"' "$@"
}

# copy_project DIR: the sources of the project, into DIR/zkasio. Of an earlier copy stays what was built: CMake would
# find sources that are no longer here.
copy_project() {
    [ ! "$1/zkasio" -ef "$root" ] || die "$1 is no root: the project is in it"
    mkdir -p "$1/zkasio"
    find "$1/zkasio" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
    tar -C "$root" --exclude=./build --exclude=./.git -c . | tar -C "$1/zkasio" -x
}
