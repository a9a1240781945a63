#!/usr/bin/env bash
# What TLS and HTTP/2 cost, one line for each round, the same ECDSA certificate everywhere. Needs nginx,
# openssl, h2load.
# Servers: milepost beside nginx, one worker each; full and resumed handshakes, and requests, per second of
# the server's CPU time (from /proc, so that the client's share does not count).
# Clients: `milepost load` beside `openssl s_time`, against that nginx; full handshakes per second of the
# client's CPU time. Both verify the server's signature; milepost also sends a request with each and checks
# the answer.
# Usage: scripts/bench-tls.sh [MILEPOST] [ROUNDS]
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

milepost=${1:-${CARGO_TARGET_DIR:-target}/release/milepost}
rounds=${2:-3}
seconds=3
requests=100000

work=$(mktemp -d)
servers=()
finish() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -keyout "$work/key.pem" -out "$work/certificate.pem" 2>/dev/null

port_milepost=$(free_port)
cat >"$work/httpd.conf" <<CONF
Listen 127.0.0.1:$port_milepost
Protocols h2 http/1.1
MaxKeepAliveRequests 0
SSLEngine on
SSLCertificateFile $work/certificate.pem
SSLCertificateKeyFile $work/key.pem
Redirect 301 /a http://www.example.org/b
CONF
"$milepost" serve -f "$work/httpd.conf" --workers 1 2>"$work/milepost.err" &
pid_milepost=$!
servers+=("$pid_milepost")

port_nginx=$(free_port)
cat >"$work/nginx.conf" <<CONF
worker_processes 1;
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/nginx.err;
events { worker_connections 1024; }
http {
    access_log off;
    keepalive_requests 1000000000;
    server {
        listen 127.0.0.1:$port_nginx ssl http2;
        ssl_certificate $work/certificate.pem;
        ssl_certificate_key $work/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets on;
        location = /a { return 301 http://www.example.org/b; }
    }
}
CONF
nginx -c "$work/nginx.conf" -e "$work/nginx.err" &
pid_nginx=$!
servers+=("$pid_nginx")
sleep 1

# CPU time of a process in hundredths of a second.
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# What `time` said last, user and system together, in hundredths of a second.
TIMEFORMAT='%U %S'
spent() { awk 'END { printf "%.0f", 100 * ($1 + $2) }' "$work/time"; }

# Prints what one run did per CPU second: name, number, CPU before, CPU after.
say() { awk -v name="$1" -v n="$2" -v t="$(($4 - $3))" 'BEGIN { printf "%-34s %9.0f\n", name, 100 * n / t }'; }

for _ in $(seq "$rounds"); do
    for name in milepost nginx; do
        port=port_$name pid=pid_$name
        # s_time closes before a ticket of TLS 1.3 has come, so it cannot resume with that.
        for kind in "-new -tls1_2" "-new -tls1_3" "-reuse -tls1_2"; do
            read -ra options <<<"$kind"
            before=$(cpu "${!pid}")
            count=$(timeout 30 openssl s_time -connect "127.0.0.1:${!port}" "${options[@]}" \
                -time "$seconds" 2>/dev/null | sed -n 's/^\([0-9]*\) connections in [0-9]* real.*/\1/p')
            say "$name handshakes $kind" "$count" "$before" "$(cpu "${!pid}")"
        done
        for kind in h2 h1; do
            options=(-n "$requests" -c 10 -m 10)
            [ "$kind" = h2 ] || options+=(--h1)
            before=$(cpu "${!pid}")
            right=$(timeout 120 h2load "${options[@]}" "https://127.0.0.1:${!port}/a" |
                sed -n 's/^status codes: .* \([0-9]*\) 3xx.*/\1/p')
            say "$name $kind requests" "$right" "$before" "$(cpu "${!pid}")"
        done
    done

    for version in 1_2 1_3; do
        { time timeout 30 openssl s_time -connect "127.0.0.1:$port_nginx" -new "-tls$version" \
            -time "$seconds" >"$work/out" 2>/dev/null; } 2>"$work/time"
        count=$(sed -n 's/^\([0-9]*\) connections in [0-9]* real.*/\1/p' "$work/out")
        say "openssl s_time tls$version" "$count" 0 "$(spent)"
        { time "$milepost" load -c 1 -d "${seconds}s" --no-keep-alive --insecure --tls-resume off \
            --tls-min "${version/_/.}" --tls-max "${version/_/.}" --json --expect-status 301 \
            "https://127.0.0.1:$port_nginx/a" >"$work/out" 2>/dev/null; } 2>"$work/time"
        count=$(grep -o '"full_handshakes": *[0-9]*' "$work/out" | grep -o '[0-9]*$')
        say "milepost load tls$version" "$count" 0 "$(spent)"
    done
done
