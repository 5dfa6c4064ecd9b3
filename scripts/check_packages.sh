#!/bin/sh
# What package.sh runs in a new Debian: installs the packages beside it, one purpose after the other, uses them, and
# removes them. Anything that is wrong ends it.
set -eu
say() { printf '\n-- %s\n' "$*"; }
fail() { echo "error: $*" >&2; exit 1; }
apt() { apt-get -qq -y --no-install-recommends "$@" > apt.log 2>&1 || { cat apt.log >&2; fail "apt-get $*"; }; }
version=$(dpkg-deb -f zklock_*.deb Version)
upstream=${version%-*}

# A repository, so that apt takes what a package depends on, and nothing else.
for deb in *.deb; do
    dpkg-deb -f "$deb" | sed '/^$/d'
    printf 'Filename: ./%s\nSize: %s\n' "$deb" "$(stat -c %s "$deb")"
    printf 'SHA256: %s\n\n' "$(sha256sum "$deb" | cut -d' ' -f1)"
done > Packages
echo "deb [trusted=yes] file:$PWD ./" > /etc/apt/sources.list.d/check.list
all=$(sed -n 's/^Package: //p' Packages)
apt update

say "zklock, for who only runs programs"
apt install zklock
[ "$(zklock --version)" = "zklock $upstream" ] || fail "zklock --version says $(zklock --version), not $upstream"
zklock --help | grep -q elect || fail "zklock --help does not speak of elect"
gzip -t "$(dpkg -L zklock | grep 'man1/zklock.1.gz$')"
schema=/usr/share/zklock/zklock.schema.json
grep -q '"locks-recursive"' $schema || fail "$schema does not describe what zklock prints"
zcat "$(dpkg -L zklock | grep 'man1/zklock.1.gz$')" | grep -q "$schema" || fail "zklock(1) does not name $schema"
bash -n /usr/share/bash-completion/completions/zklock
apt install zsh fish
zsh -n /usr/share/zsh/vendor-completions/_zklock
fish -c "complete -C 'zklock re'" | grep -q '^revoke' || fail "fish does not complete zklock"
runtime=$(dpkg -S libzkasio.so. | head -1 | cut -d: -f1)
libraries=$(dpkg -L "$runtime" | grep '[.]so[.]') || fail "zklock came without libzkasio"
for file in /usr/bin/zklock $libraries; do
    needs=$(ldd "$file")
    ! echo "$needs" | grep 'not found\|prometheus\|libssl\|libcrypto' || fail "$file needs what it should not"
done
! dpkg -s libzkasio-dev > /dev/null 2>&1 || fail "to run programs took libzkasio-dev"

say "a program, with pkg-config"
apt install g++ cmake make pkgconf libzkasio-dev
pkg-config --exists "zkasio = $upstream" "zkasio-discovery = $upstream"
[ "$(pkg-config --variable=prefix zkasio | xargs realpath)" = /usr ] || fail "the prefix of zkasio.pc is not /usr"
# shellcheck disable=SC2046  # flags are several
c++ -std=c++20 -Wall -Wextra -Werror tests/consumer/main.cpp -o with_pkg_config $(pkg-config --cflags --libs zkasio)
./with_pkg_config
# shellcheck disable=SC2046
c++ -std=c++20 /usr/share/doc/libzkasio-dev/examples/tour.cpp -o tour $(pkg-config --cflags --libs zkasio)

say "a program on Boost.Asio, with pkg-config"
apt purge libzkasio-dev libasio-dev
apt autoremove
apt install libboost-zkasio-dev
[ "$(pkg-config --modversion boost_zkasio)" = "$upstream" ] || fail "boost_zkasio.pc has not the version $upstream"
# shellcheck disable=SC2046
c++ -std=c++20 -Wall -Wextra -Werror for_boost/tests/consumer/main.cpp -o on_boost \
    $(pkg-config --cflags --libs boost_zkasio)
./on_boost
# shellcheck disable=SC2046
c++ -std=c++20 /usr/share/doc/libboost-zkasio-dev/examples/lock_per_request.cpp -o lock_per_request \
    $(pkg-config --cflags --libs boost_zkasio)

say "programs, with find_package"
# shellcheck disable=SC2086  # packages are several
apt install $all nlohmann-json3-dev catch2
consume() { # LIBRARY SOURCES
    say "find_package($1)"
    cmake -S "$2" -B "build_$1" > cmake.log 2>&1 || { cat cmake.log >&2; fail "find_package($1)"; }
    cmake --build "build_$1" --parallel "$(nproc)"
    for program in consumer host json_consumer discovery_consumer prometheus_consumer testing_consumer tls_consumer \
        kerberos_consumer sasl_consumer; do
        "build_$1/$program" || fail "$program with $1"
    done
    readelf -d "build_$1/consumer" | grep -q "NEEDED.*lib$1\\.so\\." || fail "the consumer has not the packages' $1"
}
consume zkasio tests/consumer
consume boost_zkasio for_boost/tests/consumer

say "both in one program"
# shellcheck disable=SC2046
c++ -std=c++20 -Wall -Wextra -Werror both.cpp -o both $(pkg-config --cflags --libs zkasio boost_zkasio)
./both

say "gone again"
# shellcheck disable=SC2086
apt purge $all
left=$(find / -xdev \( -path /check -o -path /proc -o -path /sys \) -prune -o \
    \( -name '*zkasio*' -o -name '*zklock*' \) -print)
[ -z "$left" ] || fail "left behind: $left"
! ldconfig -p | grep zkasio || fail "the linker still knows zkasio"
