#!/usr/bin/env bash
# Makes what a release consists of: the source archive, the Debian packages for 12 and 13, and their checksums.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/release.sh [--rehearse] [--sources]

Makes build/release-VERSION of the commit that is checked out, with everything that docs/release.md uploads:
zkasio-VERSION.tar.gz, bookworm/*.deb, trixie/*.deb (each checked in a new, empty Debian of that release, which needs
root and a mirror), and SHA256SUMS. The archive depends on the commit alone: it is the same wherever it is made.

  --rehearse  although CHANGELOG.md says "not released yet", and the tree has changes that are not committed (which are
              not in the archive)
  --sources   the archive alone
USAGE
}

rehearse= sources=
while [ $# -gt 0 ]; do
    case $1 in
        --rehearse) rehearse=1 ;;
        --sources) sources=1 ;;
        -h | --help) usage; exit ;;
        *) usage_error "unknown option $1" ;;
    esac
    shift
done

version=$(sed -n 's/^project(zkasio VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
[ -n "$version" ] || die "CMakeLists.txt has no version"
if [ -z "$rehearse" ]; then
    grep -q "^## $version, [0-9]* [A-Z][a-z]* 20[0-9][0-9]\$" "$root/CHANGELOG.md" ||
        die "CHANGELOG.md has no heading \"## $version, DAY MONTH YEAR\": see docs/release.md, or --rehearse"
    [ -z "$(git -C "$root" status --porcelain)" ] || die "there are changes that are not committed, or --rehearse"
fi

out=$root/build/release-$version
rm -rf "$out"
mkdir -p "$out"
say "the sources of $(git -C "$root" rev-parse --short HEAD)"
git -C "$root" archive --format=tar --prefix="zkasio-$version/" HEAD | gzip -9n > "$out/zkasio-$version.tar.gz"
if [ -z "$sources" ]; then
    for suite in bookworm trixie; do
        "$root/scripts/package.sh" --check "$suite"
        mkdir "$out/$suite"
        cp "$root/build/packages/$suite"/*.deb "$out/$suite"
    done
fi
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS)
say "$out"
cat "$out/SHA256SUMS"
