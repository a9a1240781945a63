#!/usr/bin/env bash
# An upload that takes longer than the backend has patience: a real Tomcat with a `connectionTimeout` of 2 s,
# 40 MB in 8 s, sent straight, and through Apache, nginx and milepost with what they do by default. Two
# clients: one sends evenly, one pauses for 3 s in the middle, as a telephone in a tunnel does. Prints the
# status, the time and what the backend has counted.
# Needs tomcat10 (Debian: tomcat10-common, a Java runtime), apache2, nginx, python3.
# Usage: scripts/bench-upload.sh [MILEPOST]
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

milepost=${1:-${CARGO_TARGET_DIR:-target}/release/milepost}
home=${CATALINA_HOME:-/usr/share/tomcat10}
modules=${MILEPOST_HTTPD_MODULES:-/usr/lib/apache2/modules}
timeout_ms=2000

for program in java apache2 nginx python3; do
    type -P "$program" >/dev/null || { echo "needs $program" >&2; exit 2; }
done
[ -e "$home/bin/bootstrap.jar" ] || { echo "needs Tomcat in $home: set CATALINA_HOME" >&2; exit 2; }

work=$(mktemp -d)
servers=()
finish() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until something listens on a port, at most a minute.
await() {
    for _ in $(seq 600); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
        sleep 0.1
    done
    echo "nothing listens on port $1" >&2
    exit 2
}

mkdir -p "$work"/tomcat/{conf,logs,temp,work,webapps/ROOT} "$work/nginx"
tomcat=$(free_port)
cat >"$work/tomcat/conf/server.xml" <<XML
<Server port="-1">
  <Service name="Catalina">
    <Connector port="$tomcat" address="127.0.0.1" protocol="HTTP/1.1" connectionTimeout="$timeout_ms"
      maxPostSize="-1" />
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="webapps" />
    </Engine>
  </Service>
</Server>
XML
cp "$home/etc/web.xml" "$work/tomcat/conf/web.xml" 2>/dev/null ||
    cp "$home/conf/web.xml" "$work/tomcat/conf/web.xml" 2>/dev/null ||
    cp /etc/tomcat10/web.xml "$work/tomcat/conf/web.xml"
cat >"$work/tomcat/webapps/ROOT/upload.jsp" <<'JSP'
<%@ page trimDirectiveWhitespaces="true" %><%
java.io.InputStream content = request.getInputStream();
byte[] piece = new byte[65536];
long bytes = 0;
for (int count; (count = content.read(piece)) >= 0; ) bytes += count;
out.print(bytes + " bytes");
%>
JSP
java -cp "$home/bin/bootstrap.jar:$home/bin/tomcat-juli.jar" -Dcatalina.home="$home" \
    -Dcatalina.base="$work/tomcat" -Djava.io.tmpdir="$work/tomcat/temp" \
    org.apache.catalina.startup.Bootstrap start >"$work/tomcat.out" 2>&1 &
servers+=("$!")

apache=$(free_port)
{
    for module in mpm_event authz_core proxy proxy_http; do
        echo "LoadModule ${module}_module $modules/mod_$module.so"
    done
    echo "ServerName localhost
ServerRoot $work
PidFile $work/apache.pid
ErrorLog $work/apache.err
Listen 127.0.0.1:$apache
ProxyPass / http://127.0.0.1:$tomcat/"
} >"$work/apache.conf"
apache2 -X -f "$work/apache.conf" &
servers+=("$!")

nginx=$(free_port)
cat >"$work/nginx.conf" <<CONF
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/nginx.err;
events { worker_connections 64; }
http {
    access_log off;
    client_max_body_size 0;
    client_body_temp_path $work/nginx/body;
    proxy_temp_path $work/nginx/proxy;
    fastcgi_temp_path $work/nginx/fastcgi;
    uwsgi_temp_path $work/nginx/uwsgi;
    scgi_temp_path $work/nginx/scgi;
    server {
        listen 127.0.0.1:$nginx;
        location / { proxy_pass http://127.0.0.1:$tomcat; }
    }
}
CONF
nginx -p "$work/nginx" -e "$work/nginx.err" -c "$work/nginx.conf" &
servers+=("$!")

own=$(free_port)
echo "Listen 127.0.0.1:$own
ProxyPass / http://127.0.0.1:$tomcat/" >"$work/milepost.conf"
"$milepost" serve -f "$work/milepost.conf" --workers 1 2>"$work/milepost.err" &
servers+=("$!")

cat >"$work/client.py" <<'PYTHON'
import socket, sys, time

port, pause = int(sys.argv[1]), float(sys.argv[2])
PIECES, PIECE, SECONDS = 160, b"x" * 262144, 8.0
start = time.monotonic()
stream = socket.create_connection(("127.0.0.1", port), 60)
head = "POST /upload.jsp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
answer = b""
try:
    stream.sendall(f"{head}Connection: close\r\nContent-Length: {PIECES * len(PIECE)}\r\n\r\n".encode())
    moving = SECONDS - pause
    for number in range(PIECES):
        due = start + moving * number / PIECES + (pause if number >= PIECES // 2 else 0)
        time.sleep(max(0.0, due - time.monotonic()))
        stream.sendall(PIECE)
except OSError as error:
    answer = f"({error.strerror or error}) ".encode()
try:
    while part := stream.recv(65536):
        answer += part
except OSError as error:
    answer += f"({error.strerror or error})".encode()
text = answer.decode("latin-1")
at = text.find("HTTP/1.1 ")
status = text[at + 9 : at + 12] if at >= 0 else "none"
last = text.strip().splitlines()[-1] if text.strip() else ""
counted = last if last.endswith(" bytes") else ""
print(f"{status:>6} {time.monotonic() - start:6.1f} s  {counted or text[:at if at > 0 else 0]}")
PYTHON

for port in "$tomcat" "$apache" "$nginx" "$own"; do await "$port"; done
# The page is compiled at its first request.
curl -s -o /dev/null --max-time 60 -d x "http://127.0.0.1:$tomcat/upload.jsp"

printf '%-10s %-8s %6s %8s  %s\n' through client status time counted
for name in tomcat apache nginx milepost; do
    case $name in
    tomcat) port=$tomcat ;;
    apache) port=$apache ;;
    nginx) port=$nginx ;;
    milepost) port=$own ;;
    esac
    for pause in 0 3; do
        printf '%-10s %-8s ' "$name" "$([ "$pause" = 0 ] && echo even || echo pauses)"
        python3 "$work/client.py" "$port" "$pause"
    done
done
