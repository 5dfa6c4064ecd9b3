#!/usr/bin/env bash
# Makes Debian packages of zkasio and zklock, and checks them where nothing else is installed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"
# shellcheck source=scripts/roots.sh
. "$root/scripts/roots.sh"

usage() {
    cat << USAGE
usage: scripts/package.sh [--check RELEASE [--build-in DIR] [--if-possible]]

Without options: packages for this Debian, in build/packages/SUITE.

  --check RELEASE  packages for that release (12, 13, or a name), made in it unless it is this one. Then a new, empty
                   Debian of that release installs them, compiles programs with them, runs these, and removes them.
  --build-in DIR   a Debian of that release which has what packages are built with, as "debian.sh --packages --keep
                   DIR" leaves it
  --if-possible    where there is no root, or no mirror that has that release: say so, and succeed

--check needs root, for chroot, and a Debian mirror. DEBFULLNAME and DEBEMAIL are the packages' maintainer.
USAGE
}

release= build_in= optional=
while [ $# -gt 0 ]; do
    case $1 in
        --check) release=${2:?--check needs RELEASE}; shift ;;
        --build-in) build_in=${2:?--build-in needs DIR}; shift ;;
        --if-possible) optional=1 ;;
        -h | --help) usage; exit ;;
        *) usage_error "unknown option $1" ;;
    esac
    shift
done

suite=${this_suite:-unknown}
[ -z "$release" ] || suite=$(suite_of "$release")
[ -z "$release" ] || need_roots

# ----------------------------------------------------------------------------------------------- the packages
made_with=("${build_packages[@]}" "${package_packages[@]}" "$(boost_of "$suite")")
if [ -n "$build_in" ] && ! [[ -e $build_in/usr/bin/dpkg-buildflags && -e $build_in/usr/include/boost/asio.hpp ]]; then
    die "$build_in was made without debian.sh --packages"
fi
if [ "$suite" = "${this_suite:-unknown}" ] && [ -z "$build_in" ]; then
    packages=("${made_with[@]}")
    install_packages
    there=$root
    in_there() { env -C "$root" "$@"; }
else
    if [ -z "$build_in" ]; then
        build_in=$work/build-$suite
        make_root "$build_in" "${made_with[@]}"
    fi
    copy_project "$build_in"
    there=$build_in/zkasio
    in_there() { in_root "$build_in" /zkasio "$@"; }
fi
# Packages of the same commit are the same: the dates in them are the commit's.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2> /dev/null || date +%s)}
export SOURCE_DATE_EPOCH
number=$(in_there sh -c '. /etc/os-release && echo "${VERSION_ID:-}"')
maintainer="${DEBFULLNAME:-zkasio maintainers} <${DEBEMAIL:-maintainers@zkasio.invalid}>"

say "building packages for Debian $suite"
export DEB_BUILD_MAINT_OPTIONS=hardening=+all DEB_CXXFLAGS_MAINT_STRIP=-g
flags() { in_there dpkg-buildflags --get "$1"; }
cppflags=$(flags CPPFLAGS)  # each on its own: a failure is not noticed among arguments
cxxflags=$(flags CXXFLAGS)
ldflags=$(flags LDFLAGS)
quietly "cmake could not configure" in_there env CXXFLAGS="$cppflags $cxxflags" LDFLAGS="$ldflags" \
    cmake --preset packages -DZKASIO_DEBIAN_REVISION="1${number:+~deb$number}" -DZKASIO_DEBIAN_SUITE="$suite" \
    -DZKASIO_MAINTAINER="$maintainer" \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16
in_there rm -rf build/packages/packages
in_there cmake --build --preset packages
debs=$root/build/packages/$suite
rm -rf "$debs"
mkdir -p "$debs"
cp "$there"/build/packages/packages/*.deb "$debs"

# Debian's own checks. What they say of a maintainer's address and of the first upload is for whoever uploads; LICENSE
# names no year.
in_there sh -c 'lintian --allow-root --fail-on error,warning --suppress-tags "$0" build/packages/packages/*.deb' \
    bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs,copyright-without-copyright-notice
say "packages for Debian $suite are in ${debs#"$PWD"/}"
[ -n "$release" ] || { ls -l "$debs"; exit 0; }

# --------------------------------------------------------------------------------------------------- the check
clean=$work/clean-$suite
make_root "$clean"
mkdir -p "$clean/check/tests" "$clean/check/examples/guide"
cp "$debs"/*.deb "$clean/check"
cp -r "$root/tests/consumer" "$clean/check/tests"
cp "$root/tests/packaging/both.cpp" "$clean/check"
cp "$root/examples/locks.cpp" "$clean/check/examples"
cp -r "$root/examples/guide/start" "$clean/check/examples/guide"
cp "$root/scripts/check_packages.sh" "$clean/check"
cp -r "$there/build/packages/boost_zkasio" "$clean/check/for_boost"
say "checking packages in a new Debian $suite"
in_root "$clean" /check env DEBIAN_FRONTEND=noninteractive ./check_packages.sh
say "packages for Debian $suite pass"
