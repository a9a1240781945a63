#!/usr/bin/env bash
# Holds `milepost serve` against h2spec, over TLS and in the clear. Needs openssl, and Go to build h2spec
# from its module if there is none. Usage: scripts/h2spec.sh [MILEPOST]
#
# One case is expected to fail in the clear: after a wrong preface h2spec wants the connection closed and
# nothing said, and there the first bytes are HTTP/1, which is answered 400.
set -euo pipefail

milepost=${1:-${CARGO_TARGET_DIR:-target}/release/milepost}
version=v2.2.1+incompatible
clear_failures=1

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    chmod -R u+w "$work" && rm -rf "$work"
}
trap finish EXIT

h2spec=$(type -P h2spec || true)
if [ -z "$h2spec" ]; then
    GOBIN=$work GOPATH=$work/go GOFLAGS=-modcacherw \
        go install "github.com/summerwind/h2spec/cmd/h2spec@$version"
    h2spec=$work/h2spec
fi
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -keyout "$work/key.pem" -out "$work/certificate.pem" 2>/dev/null
echo hello >"$work/index.html"

# Serves with some directives; prints the port.
serve() {
    printf '%s\n' "Listen 127.0.0.1:0" "DocumentRoot $work" "KeepAliveTimeout 60" \
        "<Directory />" "Require all granted" "</Directory>" "$@" >"$work/httpd.conf"
    "$milepost" serve -f "$work/httpd.conf" --workers 1 2>"$work/stderr" &
    server=$!
    for _ in $(seq 100); do
        port=$(sed -n 's/.* on 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$work/stderr")
        [ -z "$port" ] || return 0
        sleep 0.1
    done
    cat "$work/stderr" >&2
    exit 2
}

# Runs h2spec; prints what fails, and the number of it on the last line.
spec() {
    timeout 300 "$h2spec" -h 127.0.0.1 -p "$port" -o 5 "$@" >"$work/report" 2>&1 || true
    sed -n '/^Failures:/,$p' "$work/report" >&2
    sed -n 's/.* \([0-9]*\) failed$/\1/p' "$work/report"
}

serve "Protocols h2 http/1.1" "SSLEngine on" \
    "SSLCertificateFile $work/certificate.pem" "SSLCertificateKeyFile $work/key.pem"
tls=$(spec -t -k)
kill "$server" && wait "$server" || true
serve "Protocols h2c http/1.1"
clear=$(spec)
echo "over TLS: $tls failed; in the clear: $clear failed, $clear_failures expected"
[ "$tls" = 0 ] && [ "$clear" = "$clear_failures" ]
