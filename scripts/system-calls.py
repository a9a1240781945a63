#!/usr/bin/env python3
"""Counts the system calls of a request for a small file, here and on nginx and Apache.

One worker each, one connection that stays open, no log; as strace -c -f counts them. Needs strace, nginx
and apache2. Usage: scripts/system-calls.py [MILEPOST]
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

REQUESTS = 500
LENGTH = 1024
# milepost keeps no file in memory that has changed within the last two seconds.
SETTLED_SECONDS = 3
MODULES = "/usr/lib/apache2/modules"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, count):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for _ in range(count):
            connection.sendall(b"GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = b""
            while len(answer.partition(b"\r\n\r\n")[2]) < LENGTH:
                answer += connection.recv(65536)


def children(process):
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False)
    return [int(child) for child in found.stdout.split()]


def measure(name, command, port, root):
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            try:
                ask(port, 2)
                break
            except OSError:
                time.sleep(0.02)
        counts = os.path.join(root, name)
        traced = [f"-p{process}" for process in [server.pid, *children(server.pid)]]
        strace = subprocess.Popen(["strace", "-c", "-f", "-o", counts, *traced], stderr=subprocess.DEVNULL)
        time.sleep(1)
        ask(port, REQUESTS)
        strace.send_signal(signal.SIGINT)
        strace.wait()
    finally:
        server.terminate()
        server.wait()
    with open(counts, encoding="utf-8") as lines:
        rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", lines.read(), re.M)
    calls = {call: round(int(count) / REQUESTS, 1) for count, call in rows if call != "total"}
    calls = {call: count for call, count in calls.items() if count >= 0.5}
    print(f"{name:9} {sum(calls.values()):5.1f}  " + ", ".join(f"{call} {count:g}" for call, count in calls.items()))


def main():
    milepost = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CARGO_TARGET_DIR", "target") + "/release/milepost"
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        with open(f"{root}/file.txt", "w", encoding="utf-8") as file:
            file.write("x" * LENGTH)
        time.sleep(SETTLED_SECONDS)
        granted = f"DocumentRoot {root}\n<Directory {root}>\nRequire all granted\n</Directory>\nMaxKeepAliveRequests 0\n"
        modules = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in ["mpm_event", "authz_core", "mime"])
        user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""

        def write(name, text):
            path = f"{root}/{name}"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return path

        port = free_port()
        conf = write("milepost.conf", f"Listen 127.0.0.1:{port}\n{granted}")
        measure("milepost", [milepost, "serve", "--workers", "1", "-f", conf], port, root)
        port = free_port()
        conf = write(
            "nginx.conf",
            f"daemon off; worker_processes 1; pid {root}/nginx.pid; error_log /dev/null; events {{}}\n"
            f"http {{ access_log off; sendfile on; keepalive_requests 1000000;\n"
            f"server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n",
        )
        measure("nginx", ["/usr/sbin/nginx", "-c", conf], port, root)
        port = free_port()
        conf = write(
            "httpd.conf",
            f"{modules}{user}ServerName a\nTypesConfig /etc/mime.types\nPidFile {root}/httpd.pid\n"
            f"ErrorLog /dev/null\nListen 127.0.0.1:{port}\n{granted}",
        )
        measure("httpd", ["/usr/sbin/apache2", "-X", "-f", conf], port, root)


main()
