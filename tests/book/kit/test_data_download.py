"""Downloads from a server on this machine: good, wrong, broken off, and absent; what the cache holds then."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tformer_book.kit.data import text as texts
from tformer_book.kit.data.download import fetch

GOOD = b"First Citizen:\nBefore we proceed any further, hear me speak.\n" * 50
SHA256 = hashlib.sha256(GOOD).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        body = {"/good": GOOD, "/wrong": GOOD[:-1] + b"?", "/broken": GOOD[:500]}.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(GOOD)))
        self.end_headers()
        self.wfile.write(body)  # of /broken less than was promised; then the connection closes

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = 0
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_good_file_is_downloaded_once(server, tmp_path):
    for _ in range(2):
        path = fetch(f"{server.url}/good", SHA256, "text.txt", tmp_path / "new" / "folder")
        assert path.read_bytes() == GOOD
    assert path == tmp_path / "new" / "folder" / "text.txt"
    assert server.asked == 1
    assert files(tmp_path) == [path]


def test_a_wrong_checksum_is_an_error_and_nothing_is_kept(server, tmp_path):
    with pytest.raises(ValueError, match=r"/wrong sent a file with another checksum.*not kept"):
        fetch(f"{server.url}/wrong", SHA256, "text.txt", tmp_path)
    assert files(tmp_path) == []


def test_a_transfer_that_breaks_off_is_an_error_and_nothing_is_kept(server, tmp_path):
    with pytest.raises(ConnectionError, match=r"/broken could not be downloaded, and nothing was kept"):
        fetch(f"{server.url}/broken", SHA256, "text.txt", tmp_path)
    assert files(tmp_path) == []


def test_a_missing_page_is_an_error(server, tmp_path):
    with pytest.raises(ConnectionError, match=r"/nowhere could not be downloaded.*404"):
        fetch(f"{server.url}/nowhere", SHA256, "text.txt", tmp_path)
    assert files(tmp_path) == []


def test_no_network_is_an_error(server, tmp_path):
    server.shutdown()
    server.server_close()  # nobody listens at this port now
    with pytest.raises(ConnectionError, match="could not be downloaded, and nothing was kept"):
        fetch(f"{server.url}/good", SHA256, "text.txt", tmp_path)
    assert files(tmp_path) == []


def test_a_damaged_file_in_the_cache_is_downloaded_anew(server, tmp_path):
    (tmp_path / "text.txt").write_bytes(GOOD[:100])
    assert fetch(f"{server.url}/good", SHA256, "text.txt", tmp_path).read_bytes() == GOOD
    (tmp_path / "text.txt").write_bytes(GOOD[:100])
    with pytest.raises(ConnectionError, match="nothing was kept"):
        fetch(f"{server.url}/broken", SHA256, "text.txt", tmp_path)
    assert (tmp_path / "text.txt").read_bytes() == GOOD[:100]  # as it was: found wrong again next time


def test_downloads_are_quiet(server, tmp_path, capfd):
    fetch(f"{server.url}/good", SHA256, "text.txt", tmp_path)
    assert capfd.readouterr() == ("", "")


def test_tiny_shakespeare_comes_through_the_cache(server, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "TINY_SHAKESPEARE", f"{server.url}/good")
    monkeypatch.setattr(texts, "TINY_SHAKESPEARE_SHA256", SHA256)
    assert texts.tiny_shakespeare(tmp_path) == GOOD.decode()
    assert texts.tiny_shakespeare(str(tmp_path)) == GOOD.decode()
    assert server.asked == 1
