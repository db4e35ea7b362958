"""The reverse proxy as it is: logins, the read-only part, reports, websockets, and nothing for other sites."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from douban_pipeline_tests.deploy.files import text_of
from douban_pipeline_tests.harness.rig.waiting import wait_for

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]
HOST = "douban.example.org"


class _Told(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked, and with which headers."""

    def do_GET(self):
        body = (
            f"{self.server.server_port} {self.path} {self.headers.get('Upgrade')} {self.headers.get('Authorization')}"
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@contextmanager
def upstream() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Told)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[tuple[httpx.Client, int, int, int]]:
    """A client of the proxy, and the ports of the UI, of the viewers' UI and of the HTTP service behind it."""
    # Sockets of files: a free port may be somebody else's by the time that nginx takes it. Their paths must be short.
    sockets = Path(tempfile.mkdtemp())
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", f"/CN={HOST}", "-days", "2", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command = ["openssl", "req", "-x509", *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "people").write_text("chief:{PLAIN}1\n", encoding="utf-8")
    (tmp_path / "viewers").write_text("chief:{PLAIN}1\nguest:{PLAIN}2\n", encoding="utf-8")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "review_queue.html").write_text("待审", encoding="utf-8")
    with upstream() as ui, upstream() as viewer, upstream() as service:
        site = text_of("nginx.conf")
        for old, new in {
            "listen 80;": f"listen unix:{sockets}/plain;",
            "listen 443 ssl": f"listen unix:{sockets}/tls ssl",
            "127.0.0.1:3000": f"127.0.0.1:{ui}",
            "127.0.0.1:3001": f"127.0.0.1:{viewer}",
            "http://127.0.0.1:8780": f"http://127.0.0.1:{service}",
            f"/etc/letsencrypt/live/{HOST}/fullchain.pem": str(certificate),
            f"/etc/letsencrypt/live/{HOST}/privkey.pem": str(key),
            "/etc/nginx/douban_pipeline.": f"{tmp_path}/",
            "/var/lib/douban_pipeline/reports/": f"{tmp_path}/reports/",
        }.items():
            assert old in site
            site = site.replace(old, new)
        temporary = "".join(
            f"{name}_temp_path {tmp_path}/{name}; " for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            # Folders of tests are their user's alone; nobody, which a root's nginx works as, could not read them.
            f"{'user root; ' if os.geteuid() == 0 else ''}daemon off; pid {tmp_path}/pid; events {{}} "
            f"error_log {tmp_path}/error.log; "
            f"http {{ access_log off; {temporary} {site} }}",
            encoding="utf-8",
        )
        nginx = [str(NGINX), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", f"{tmp_path}/error.log"]
        tested = subprocess.run([*nginx, "-t"], capture_output=True, text=True)
        assert tested.returncode == 0, tested.stderr
        assert "warn" not in tested.stderr
        process = subprocess.Popen(nginx)
        headers = {"Host": HOST}
        try:
            transport = httpx.HTTPTransport(uds=f"{sockets}/tls", verify=False)
            with httpx.Client(base_url="https://127.0.0.1", transport=transport, headers=headers) as client:
                # It notes its number once it listens; `-t` leaves the file empty.
                assert wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), seconds=60)
                assert client.get("/runs").status_code == 401
                yield client, ui, viewer, service
        finally:
            process.terminate()
            process.wait(timeout=60)
            shutil.rmtree(sockets)


def test_logins_parts_and_other_sites(proxy):
    client, ui, viewer, _ = proxy
    chief, guest = ("chief", "1"), ("guest", "2")
    assert client.get("/runs").status_code == client.get("/view/").status_code == 401
    assert client.get("/reports/review_queue.html").status_code == 401
    assert client.get("/runs", auth=("chief", "2")).status_code == 401

    # People decide; guests look. Dagster never sees a password.
    assert client.get("/runs?a=%2F", auth=chief).text == f"{ui} /runs?a=%2F None None"
    assert client.get("/runs", auth=guest).status_code == 401
    assert client.get("/graphql", auth=guest).status_code == 401
    for login in (chief, guest):
        assert client.get("/view/runs", auth=login).text == f"{viewer} /view/runs None None"
        report = client.get("/reports/review_queue.html", auth=login)
        assert (report.text, report.headers["Content-Type"]) == ("待审", "text/html; charset=utf-8")

    # Subscriptions are websockets.
    websocket = {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": f"https://{HOST}"}
    assert client.get("/graphql", auth=chief, headers=websocket).text == f"{ui} /graphql websocket None"

    # A page of another site that a logged-in person visits.
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert client.get("/graphql", auth=chief, headers=headers).status_code == 403
        assert client.post("/graphql", auth=chief, headers=headers).status_code == 403
    sheet = client.get("/locations/x/jobs/y", auth=chief, headers={"Sec-Fetch-Site": "cross-site"})
    assert sheet.status_code == 200, "links of a review sheet that was opened from a mail work"


def test_pages_of_the_service_ask_for_the_login_that_their_readers_have(proxy):
    client, _, _, service = proxy
    chief, guest = ("chief", "1"), ("guest", "2")
    for path in ("/", "/lists/log?q=1", "/review/", "/digest/", "/daily/2026-11-20", "/analysis/7", "/tmdb/movies/603"):
        assert client.get(path).status_code == 401
        assert client.get(path, auth=chief).text == f"{service} {path} None None"
    for path, status in (
        ("/review/", 401),
        ("/", 200),
        ("/digest/", 200),
        ("/analysis/7", 200),
        ("/tmdb/movies/603", 401),
    ):
        assert client.get(path, auth=guest).status_code == status


def test_comments_see_to_their_visitors_themselves(proxy):
    client, ui, _, service = proxy
    token = {"Authorization": "Bearer visitor"}
    for path in ("/comments/v1/sections/1/17?order=heat", "/demo?type=1&id=17", "/comments/admin"):
        assert client.get(path).text == f"{service} {path} None None"
        assert client.get(path, headers=token).text == f"{service} {path} None Bearer visitor"
        assert client.get(path, headers={"Origin": "https://evil.example"}).status_code == 403
    for path in ("/commentsx", "/demolition"):
        assert client.get(path).status_code == 401
        assert client.get(path, auth=("chief", "1")).text.startswith(f"{ui} ")
