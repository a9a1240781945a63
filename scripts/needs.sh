#!/usr/bin/env bash
# Sees that the programs that the tests run are there. As root on Debian it installs what is missing,
# elsewhere it says in one line what to install. Nothing is skipped because something is missing.
set -euo pipefail

# Servers and root's programs stand here, which is not on every PATH.
PATH=$PATH:/usr/sbin:/sbin
for directory in /usr/lib/postgresql/*/bin; do PATH=$PATH:$directory; done

# program, Debian package, what the tests do with it
needs=(
    "cc         gcc            compile PCRE2"
    "c++        g++            compile libFuzzer"
    "apache2    apache2-bin    hold every answer against it"
    "nginx      nginx-light    run the lab's configurations"
    "haproxy    haproxy        be loaded by the load generator"
    "ab         apache2-utils  be served as HTTP/1.0"
    "wrk        wrk            be served on many connections"
    "siege      siege          hold our front end against it"
    "openssl    openssl        make certificates, and be a client of TLS"
    "h2load     nghttp2-client be served HTTP/2"
    "curl       curl           be served as by a user"
    "chromium   chromium       render the report"
    "postgres   postgresql     ask it for the values of a map"
    "mariadbd   mariadb-server ask it for the values of a map"
    "setsid     util-linux     find what a test left running"
    "kill       procps         end what a test started"
    "make       make           install and uninstall"
)

# Prints the packages of the programs that are not there.
missing() {
    local need program package
    for need in "${needs[@]}"; do
        read -r program package _ <<<"$need"
        # Not `command -v`: the shell has a kill of its own, which the tests do not.
        type -P "$program" >/dev/null || echo "$package"
    done
    # The compiler is no use without the C library's headers.
    if [ ! -e /usr/include/stdio.h ] && [ -e /etc/debian_version ]; then echo libc6-dev; fi
}

if ! command -v cargo >/dev/null; then
    echo "needs Rust with rustfmt and clippy: see rust-version in Cargo.toml" >&2
    exit 1
fi
for component in fmt clippy; do
    if ! cargo "$component" --version >/dev/null 2>&1; then
        echo "needs cargo $component: rustup component add rustfmt clippy" >&2
        exit 1
    fi
done

mapfile -t packages < <(missing)
if [ "${#packages[@]}" -eq 0 ]; then
    exit 0
fi
install="apt-get install -y --no-install-recommends ${packages[*]}"
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${packages[*]}"
    # At runlevel 1 no service is started by its package.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get update -qq -o Acquire::Retries=3
    $install -qq -o Acquire::Retries=3 >/dev/null
    mapfile -t packages < <(missing)
fi
if [ "${#packages[@]}" -gt 0 ]; then
    echo "the tests need programs that are not there: $install" >&2
    exit 1
fi
