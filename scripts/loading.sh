#!/usr/bin/env bash
# Measures what it costs to load many rules: milepost, Apache and nginx on the same rules, one after the other
# in one run, each ROUNDS times; CPU seconds and memory are those of the cheapest round. Loading ends when
# the configuration is ready to serve, the index of milepost included.
#
# loading.sh MILEPOST [RULES]
set -euo pipefail

milepost=${1:?usage: loading.sh MILEPOST [RULES]}
rules=${2:-1000000}
ROUNDS=3

PATH=$PATH:/usr/sbin:/sbin
modules=/usr/lib/apache2/modules
for need in "/usr/bin/time time" "$(type -P apache2 || echo apache2) apache2-bin" \
    "$(type -P nginx || echo nginx) nginx-light"; do
    read -r program package <<<"$need"
    if [ ! -x "$program" ]; then
        echo "needs $program: apt-get install $package" >&2
        exit 1
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What Apache must have; milepost reads past it.
preamble() {
    cat <<EOF
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule alias_module $modules/mod_alias.so
LoadModule rewrite_module $modules/mod_rewrite.so
ServerName www.example
PidFile $work/pid
ErrorLog $work/error.log
Listen 127.0.0.1:1
DocumentRoot $work
EOF
}

# lines FORMAT: one line a rule; \$n stands for its number.
lines() {
    awk -v n="$rules" -v format="$1" 'BEGIN {
        parts = split(format, part, /\$n/)
        for (i = 1; i <= n; i++) {
            line = part[1]
            for (p = 2; p <= parts; p++) line = line i part[p]
            print line
        }
    }'
}

{ preamble; lines 'Redirect 301 /test/$n http://new.example.com/path/to/the/new/page/$n'; } >"$work/redirect"
{ preamble; lines 'RedirectMatch 301 ^/test/$n$ http://new.example.com/path/to/the/new/page/$n'; } \
    >"$work/redirect-match"
{
    preamble
    echo 'RewriteEngine On'
    lines 'RewriteRule ^/test/$n$ http://new.example.com/path/to/the/new/page/$n [R=301,L]'
} >"$work/rewrite"
{
    preamble
    echo 'RewriteEngine On'
    lines 'RewriteRule ^/test/$n/([^/]+)/(.*)$ http://new.example.com/$n/$2/$1 [R=301,L]'
} >"$work/captures"
{
    echo "daemon off; pid $work/nginx.pid; error_log stderr; events { } http {"
    echo 'map_hash_bucket_size 128; map_hash_max_size 4194304; map $uri $to { default "";'
    lines '/test/$n http://new.example.com/path/to/the/new/page/$n;'
    echo '} server { listen 127.0.0.1:1; if ($to) { return 301 $to; } } }'
} >"$work/map"

# measure NAME COMMAND...: prints the row of one program.
measure() {
    local name=$1 best='' row
    shift
    for _ in $(seq "$ROUNDS"); do
        if ! /usr/bin/time -v -o "$work/time" "$@" >"$work/output" 2>&1; then
            echo "$name failed: $(tail -n 3 "$work/output")" >&2
            exit 1
        fi
        row=$(awk -F ': ' '/User time/ { cpu += $2 } /System time/ { cpu += $2 }
            /Elapsed/ { parts = split($2, clock, ":"); wall = 60 * clock[parts - 1] + clock[parts] }
            /Maximum resident/ { memory = $2 / 1024 }
            END { printf "%.2f %.2f %.0f", cpu, wall, memory }' "$work/time")
        if [ -z "$best" ] || awk -v a="$row" -v b="$best" 'BEGIN { split(a, x); split(b, y); exit !(x[1] < y[1]) }'
        then
            best=$row
        fi
    done
    read -r cpu wall memory <<<"$best"
    printf '%-34s %10s %10s %12s\n' "$name" "$cpu" "$wall" "$memory"
}

echo "loading $rules rules: the cheapest of $ROUNDS rounds"
printf '%-34s %10s %10s %12s\n' '' 'CPU, s' 'elapsed, s' 'memory, MiB'
for kind in redirect redirect-match rewrite captures; do
    measure "apache2 -t, $kind" apache2 -t -f "$work/$kind"
    measure "milepost check, $kind" "$milepost" check --no-lints -f "$work/$kind"
done
measure "nginx -t, map" nginx -t -c "$work/map"
