"""What tests/e2e/serve.t and tests/soak/serve_load.t ask of kiln-serve: python3 tests/e2e/serve.py CHECK PROGRAM MANIFEST [...].
A client of raw sockets, so that a request can be anything; no library makes it well-formed."""
import fcntl, json, math, os, re, select, signal, socket, subprocess, sys, time

PAGE = re.compile(rb"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/\n")


class Server:
    def __init__(self, program, manifest, *options):
        self.process = subprocess.Popen([program, manifest, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.line = self.process.stdout.readline()
        found = PAGE.fullmatch(self.line)
        self.port, self.token = (int(found[1]), found[2].decode()) if found else (0, "")
        self.root = f"/{self.token}/"

    def __enter__(self):
        assert self.port, (self.line, self.process.stderr.read())
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.told = self.process.communicate(timeout=30)[1].decode()
        assert kind or self.process.returncode == 143, (self.process.returncode, self.told)

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return s

    def request(self, path, method="GET", host=None, more=()):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}", "Connection: close", *more]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def raw(self, data):
        """Status, headers, body; status 0: the connection was closed without an answer."""
        with self.connect() as s:
            s.sendall(data)
            return answer(s)

    def get(self, path, **how):
        return self.raw(self.request(self.root + path, **how))

    def json(self, path):
        status, headers, body = self.get(path)
        assert status == 200 and headers["content-type"] == "application/json", (path, status, body[:200])
        return json.loads(body, parse_constant=lambda word: sys.exit(f"{path} has {word}"))


def answer(s):
    data = b""
    try:
        while piece := s.recv(1 << 20):
            data += piece
    except ConnectionResetError:
        pass
    if not data:
        return 0, {}, b""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}, body


def check_headers(headers, cached=False):
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer", headers
    assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin", headers
    assert headers["content-security-policy"].startswith("default-src 'none'; "), headers
    assert ("immutable" in headers["cache-control"]) if cached else headers["cache-control"] == "no-store", headers
    assert "access-control-allow-origin" not in headers


def rules(program, manifest):
    """Who is answered, and what is refused."""
    with Server(program, manifest) as s:
        own = f"127.0.0.1:{s.port}"

        def status(path, **how):
            code, headers, _ = s.raw(s.request(path, **how))
            check_headers(headers)
            return code

        state = s.root + "state.json"
        assert status(state) == 200
        for host in (f"localhost:{s.port}", f"LocalHost:{s.port}", f"[::1]:{s.port}"):
            assert status(state, host=host) == 200, host
            assert status(state, host=host, more=[f"Origin: http://{host}"]) == 200, host
        for host in ("127.0.0.1", "localhost", f"evil.example:{s.port}", f"127.0.0.1:{s.port + 1}", f"127.0.0.1.evil:{s.port}", f"{own}x", f"x{own}", f"192.0.2.1:{s.port}", "x" * 500):
            assert status(state, host=host) == 403, host
        assert status(state, more=[f"Host: {own}"]) in (400, 403), "two Host headers"
        for origin in ("null", "http://evil.example", f"https://{own}", f"http://localhost:{s.port}", f"http://{own}.evil", ""):
            assert status(state, more=[f"Origin: {origin}"]) == 403, origin
        code, headers, _ = s.raw(s.request(state, method="POST"))
        assert code == 405 and headers["allow"] == "GET, HEAD"
        for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get", "X" * 100):
            assert status(state, method=method) == 405, method
        code, headers, body = s.raw(s.request(state, method="POST", more=["Content-Length: 1000000000"]) + b"x" * 65536)
        assert code in (0, 405), code
        assert s.raw(s.request(state, more=["Content-Length: 3"]) + b"abc")[0] == 200

        other = s.token[:-1] + ("0" if s.token[-1] != "0" else "1")
        for path in ("/", "/state.json", f"/{other}/state.json", f"/{s.token[:-1]}/state.json", f"/{s.token}0/state.json", f"/{s.token.upper()}x/state.json", f"/{s.token}", f"//{s.token}/state.json", "/favicon.ico"):
            assert status(path) == 404, path
        bad = ["../state.json", "../../etc/passwd", "viewer/../state.json", "viewer/../../../../etc/passwd", "viewer/..", "viewer/.", "viewer//etc/passwd", "./state.json", "/state.json", "%73tate.json", "..%2fstate.json", "%2e%2e/state.json", "state.json%00", "state.json/", "state.json;a", "State.json", "photo/" + "0" * 32, "photo/0.jpg", "photo/" + "0" * 33 + ".jpg", "photo/" + "F" * 32 + ".jpg", "photo/" + "0" * 32 + ".jpg/x", "splats/0/0.ply", "splats/" + "0" * 32 + "/00.ply", "splats/" + "0" * 32 + "/-1.ply", "splats/" + "0" * 32 + "/4294967296.ply", "splats/" + "0" * 32 + "/0.ply", "splats/" + "f" * 31 + "/0.ply", "x" * 600, "\xe9", "viewer/serve.html\xff"]
        for path in bad:
            assert status(s.root + path) == 404, path
        for data in (b"GET " + state.encode() + b"\x00.html HTTP/1.1\r\nHost: " + own.encode() + b"\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET " + state.encode() + b" HTTP/1.1\r\n\r\n", b"GET " + state.encode() + b" HTTP/1.0\r\n\r\n",
                     b"GET http://127.0.0.1" + state.encode() + b" HTTP/1.1\r\nHost: " + own.encode() + b"\r\nConnection: close\r\n\r\n", b"\r\n\r\n\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00" * 9, b"GET\r\n\r\n", b"A: b\r\n" * 20000):
            with s.connect() as c:
                c.settimeout(0.5)  # half a request may also wait for its deadline
                try:
                    c.sendall(data)
                    c.shutdown(socket.SHUT_WR)
                    code, _, body = answer(c)
                except OSError:
                    code, body = 0, b""
            assert code != 200 and b"version" not in body, (data[:60], code)

        whole, headers, body = s.get("state.json")
        code, head_headers, nothing = s.get("state.json", method="HEAD")
        assert (code, nothing) == (200, b"") and head_headers["content-length"] == headers["content-length"] == str(len(body))
        code, headers, _ = s.get("")
        assert (code == 302 and headers["location"] == "report.html") or code == 200, code
        with s.connect() as c:  # one connection, several requests
            for _ in range(3):
                c.sendall(s.request(state).replace(b"Connection: close\r\n", b""))
                data = b""
                while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < len(body):
                    data += c.recv(65536)
                assert data.startswith(b"HTTP/1.1 200")
        status_of_report, headers, body = s.get("report.html")
        assert status_of_report == 200 and headers["content-type"].startswith("text/html") and body.endswith(b"</html>\n"), body[-50:]
        listening = [l.split()[3] for l in subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True).stdout.splitlines() if f"pid={s.process.pid}," in l] if os.path.exists("/usr/bin/ss") else []
        assert all(a == own for a in listening), listening
    assert s.token not in s.told


def finite(v, n):
    return len(v) == n and all(isinstance(x, (int, float)) and math.isfinite(x) for x in v)


def data(program, manifest, exported):
    """JSON has what was agreed, rows are those of kiln-export (exported/LAYER-INDEX.ply), pictures are pictures."""
    with Server(program, manifest) as s:
        state, cameras, chunks = s.json("state.json"), s.json("cameras.json"), s.json("chunks.json")
        assert state["version"] == cameras["version"] == chunks["version"] == s.json("state.json")["version"]
        assert state["layer"] == chunks["layer"] and state["levels"] == chunks["levels"], state
        assert not state["running"] and state["report"] is True and state["profile"] == "inria" and abs(state["near"] - 0.2) < 1e-6 and state["radius"] > 0
        assert {x["name"]: x["state"] for x in state["stages"]}["render"] == "fresh"
        assert finite(state["up"], 3) and abs(math.hypot(*state["up"]) - 1) < 1e-9 and finite(state["centre"], 3) and finite(state["background"], 3)
        assert len(cameras["cameras"]) == state["cameras"] > 0
        for i, c in enumerate(cameras["cameras"]):
            assert c["id"] == i and c["split"] in ("train", "test") and c["width"] > 0 and c["height"] > 0
            assert finite(c["R"], 9) and finite(c["t"], 3) and finite([c["fx"], c["fy"], c["cx"], c["cy"]], 4)
            assert c["picture"] and c["heat"] and c["photo"] == (c["psnr"] is not None), c
            for kind, suffix, start in (("photo", "jpg", b"\xff\xd8\xff"), ("picture", "jpg", b"\xff\xd8\xff"), ("heat", "webp", b"RIFF")):
                code, headers, body = s.get(f"{kind}/{c['key']}.{suffix}")
                assert code == (200 if c[kind] else 404) and (not c[kind] or body.startswith(start)), (kind, i, code)
        assert len({c["key"] for c in cameras["cameras"]}) == len(cameras["cameras"]) and s.get(f"picture/{'0' * 32}.jpg")[0] == 404
        nodes, rows = chunks["nodes"], 0
        assert sum(n["parent"] == -1 for n in nodes) == 1
        for i, n in enumerate(nodes):
            assert finite(n["lo"], 3) and finite(n["hi"], 3) and all(a <= b for a, b in zip(n["lo"], n["hi"]))
            assert all(nodes[k]["parent"] == i for k in n["children"])
            errors = [d["error"] for d in n["details"]]
            assert errors == sorted(errors) and [d["level"] for d in n["details"]] == sorted({d["level"] for d in n["details"]})
            if not n["children"]:
                assert errors[0] == 0 and n["details"][0]["of"] == "layer"
                rows += n["details"][0]["rows"]
            for k in n["children"]:
                assert not errors or not nodes[k]["details"] or nodes[k]["details"][-1]["error"] <= errors[-1]
        assert rows == state["rows"]
        details = [d for n in nodes for d in n["details"]]
        assert any(d["of"] == "levels" for d in details) == (state["levels"] is not None)
        for d in details:
            code, headers, ply = s.get(f"splats/{state[d['of'] if d['of'] == 'layer' else 'levels']}/{d['chunk']}.ply")
            assert code == 200, (code, ply[:200])
            check_headers(headers, cached=True)
            head, body = ply.split(b"end_header\n", 1)
            assert f"element vertex {d['rows']}\n".encode() in head and b"property float nx" not in head
            if d["of"] == "layer":
                with open(f"{exported}/{d['chunk']}.ply", "rb") as f:
                    want_head, want = f.read().split(b"end_header\n", 1)
                columns = lambda h: [l for l in h.split(b"\n") if l.startswith(b"property")]
                assert columns(head) == columns(want_head) and body == want, d
        for degree, columns in ((0, 0), (1, 9), (2, 24), (3, 45), (7, 45)):
            ply = s.get(f"splats/{state['layer']}/0.ply?sh={degree}")[2]
            assert ply.split(b"end_header")[0].count(b"f_rest_") == min(columns, 3 * ((state["sh_degree"] + 1) ** 2 - 1)), degree
        assert s.get(f"splats/{state['layer']}/{10**6}.ply")[0] == 404


def stranger(program, manifest, secret):
    """Names are text, photos and pictures are those that the rules allow."""
    with Server(program, manifest) as s:
        evil = "</script><img src=x onerror=alert(1)>"
        state, cameras = s.json("state.json"), s.json("cameras.json")["cameras"]
        assert evil in state["name"], state["name"]
        assert [c["name"] for c in cameras if evil in c["name"]]
        codes = {}
        for c in cameras:
            for kind in ("photo", "picture"):
                code, _, body = s.get(f"{kind}/{c['key']}.jpg")
                assert code in (200, 404) and secret.encode() not in body, (c["name"], kind, code)
                codes[c["name"][:7], kind] = code
        for name, kind in (("view_00", "photo"), ("view_01", "photo"), ("view_02", "photo"), ("view_03", "photo"), ("view_00", "picture"), ("view_01", "picture")):
            assert codes[name, kind] == 404, (name, kind)
        assert codes["view_04", "photo"] == codes["view_04", "picture"] == 200
        code, _, body = s.get("report.html")
        assert code == 200 and evil.encode() not in body


def changing(program, manifest, stage):
    """While a stage runs: what there is is answered, the version moves, and the stage ends as always."""
    name = os.path.basename(stage).removeprefix("kiln-")

    def state_of(state):
        return {x["name"]: x["state"] for x in state["stages"]}[name]

    with Server(program, manifest) as s:
        before = s.json("state.json")
        with open(manifest + ".lock", "w") as lock:  # as one that runs has it
            fcntl.lockf(lock, fcntl.LOCK_EX)
            print(f"pid 1\nhost here\nstage {name}", file=lock, flush=True)
            during = s.json("state.json")
            assert during["running"] and state_of(during) == "running" and during["version"] > before["version"], during
            os.unlink(lock.name)
        child = subprocess.Popen([stage, "--quiet", manifest])
        while child.poll() is None:
            assert s.json("state.json")["version"] > before["version"]
            assert s.get("chunks.json")[0] == s.get("cameras.json")[0] == 200
        assert child.wait() == 0, child.returncode
        after = s.json("state.json")
        assert not after["running"] and after["version"] > during["version"], (during["version"], after["version"])
        assert state_of(after) == "fresh" and all(c["heat"] for c in s.json("cameras.json")["cameras"])
        assert s.json("state.json")["version"] == after["version"], "the version moves though nothing has changed"


def begun(program, manifest):
    """Of a bake that has nothing yet but what import made."""
    with Server(program, manifest) as s:
        state = s.json("state.json")
        assert state["layer"] is None and state["levels"] is None and state["rows"] == 0
        cameras = s.json("cameras.json")["cameras"]
        key = cameras[0]["key"]
        assert s.json("chunks.json")["nodes"] == [] and len(cameras) == state["cameras"]
        assert s.get(f"picture/{key}.jpg")[0] == s.get(f"heat/{key}.webp")[0] == 404 and s.get("report.html")[0] == 200


WRITER = """
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute("UPDATE scene SET name = 'former'")
db.commit()
if len(sys.argv) > 2:
    time.sleep(0.05)
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
os._exit(0)  # as if it was killed: the log stays"""


def replaced(program, manifest, other):
    """Another file in the manifest's place: what the log has of the former one is not mixed into it."""
    at, content = manifest + ".served", {path: open(path, "rb").read() for path in (manifest, other)}

    def put(path, name=at):
        with open(name, "wb") as f:
            f.write(content[path])

    def replace():
        put(other, at + ".new")
        time.sleep(0.05)  # more than the step of the file system's clock
        os.rename(at + ".new", at)

    for log in ("empty", "seen", "filled later"):
        put(manifest)
        with Server(program, at) as s:
            first = s.json("state.json")
            assert s.get("report.html")[0] == 200
            if log != "empty":
                subprocess.run([sys.executable, "-c", WRITER, at], check=True)
            if log == "seen":
                assert s.json("state.json")["name"] == "former" and s.get("report.html")[0] == 200
            replace()
            for _ in range(2):
                for path in ("state.json", "report.html") if log != "empty" else ():
                    code, _, body = s.get(path)
                    assert code == 500 and b"-wal' holds changes of the old one" in body and b"remove" in body, (log, code, body)
            if log != "empty":
                os.unlink(at + "-wal")
                os.unlink(at + "-shm")
            after = s.json("state.json")
            assert after["version"] > first["version"] and after["layer"] != first["layer"] and s.get("report.html")[0] == 200
            assert after["name"] not in ("former", first["name"]), after["name"]
        assert open(at, "rb").read() == content[other], f"{log}: the file was changed"
    put(manifest)
    with Server(program, at) as s:  # a stage of the new file writes, and moves its log into the file, before the next request
        s.json("state.json")
        replace()
        subprocess.run([sys.executable, "-c", WRITER, at, "checkpoint"], check=True)
        assert s.json("state.json")["name"] == "former"
    put(manifest)
    with Server(program, at) as s:  # copied over it: no connection can notice
        s.json("state.json")
        put(other)
        code, _, body = s.get("state.json")
        assert code == 500 and b"malformed" in body and b"if another file was copied over it, end all programs" in body, (code, body)
    with Server(program, at) as s:
        assert s.json("state.json")["layer"] == after["layer"]


def moved(program, manifest):
    """A page that asks for a camera's photo after the cameras have changed gets that one's or none."""
    import sqlite3
    with Server(program, manifest) as s:
        first, *_, last = s.json("cameras.json")["cameras"]
        before = [s.get(f"photo/{c['key']}.jpg") for c in (first, last)]
        assert [b[0] for b in before] == [200, 200] and before[0][2] != before[1][2]
        db = sqlite3.connect(manifest)
        for table, column in (("photo", "camera"), ("image", "camera"), ("tile_table", "camera"), ("camera", "name")):
            db.execute(f"DELETE FROM {table} WHERE {column} = ?", (first["name"],))
        db.commit()
        db.close()
        assert s.get(f"photo/{first['key']}.jpg")[0] == s.get(f"picture/{first['key']}.jpg")[0] == 404
        assert s.get(f"photo/{last['key']}.jpg")[2] == before[1][2]
        now = s.json("cameras.json")["cameras"][-1]
        assert now["key"] == last["key"] and now["id"] == last["id"] - 1, now


def many(program, manifest, n):
    """So many connections at a time: each is answered or refused, and the server goes on."""
    n = int(n)
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, n + 100)), hard))
    with Server(program, manifest) as s:
        state, key = s.json("state.json"), s.json("cameras.json")["cameras"][0]["key"]
        paths = ["state.json", "cameras.json", "chunks.json", "report.html", f"photo/{key}.jpg", f"picture/{key}.jpg", f"heat/{key}.webp", f"splats/{state['layer']}/0.ply", "nothing", "", "../x"]
        open_ones = {}
        poll = select.epoll()
        for i in range(n):
            c = socket.socket()
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", s.port))
            open_ones[c.fileno()] = [c, s.request(s.root + paths[i % len(paths)]), 0, b""]
            poll.register(c, select.EPOLLOUT)
        codes, until = {}, time.monotonic() + 120
        while open_ones and time.monotonic() < until:
            for fd, events in poll.poll(1):
                one = open_ones[fd]
                try:
                    if one[1]:
                        one[1] = one[1][one[0].send(one[1]):]
                        if not one[1]:
                            poll.modify(fd, select.EPOLLIN)
                        continue
                    piece = one[0].recv(1 << 18)
                except BlockingIOError:
                    continue
                except ConnectionError:
                    piece = b""
                one[2] += len(piece)
                one[3] = one[3] or piece[:16]
                if not piece:
                    poll.unregister(fd)
                    one[0].close()
                    code = int(one[3].split()[1]) if one[3] else 0
                    codes[code] = codes.get(code, 0) + 1
                    del open_ones[fd]
        print(n, "connections:", codes)
        assert not open_ones, f"{len(open_ones)} hang; {codes}"
        assert set(codes) <= {200, 302, 404, 503, 0} and codes.get(200, 0) > 0, codes
        assert s.json("state.json")["layer"] == state["layer"]


def slow(program, manifest):
    """Clients that send a byte now and then, that say nothing, and that take nothing of a large answer: ended in time."""
    with Server(program, manifest, "--max-connections", "64") as s:
        state = s.json("state.json")
        silent, slow_ones = [s.connect() for _ in range(10)], [s.connect() for _ in range(10)]
        lazy = [s.connect() for _ in range(10)]
        for c in lazy:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.sendall(s.request(s.root + f"splats/{state['layer']}/0.ply"))
        for c in silent[:5]:
            c.sendall(b"GET /")
            c.shutdown(socket.SHUT_WR)
        begin, ended = time.monotonic(), {}
        text = s.request(s.root + "state.json")
        while len(ended) < 20 and time.monotonic() < begin + 40:
            for i, c in enumerate(silent + slow_ones):
                if i in ended:
                    continue
                try:
                    if i >= 10:
                        c.send(text[:1])
                    c.settimeout(0.001)
                    if c.recv(10) == b"":
                        ended[i] = time.monotonic() - begin
                except socket.timeout:
                    pass
                except ConnectionError:
                    ended[i] = time.monotonic() - begin
            time.sleep(1)
            assert s.get("state.json")[0] == 200  # others are served meanwhile
        print("ended after", sorted(round(t) for t in ended.values()))
        assert len(ended) == 20 and max(ended.values()) < 30, ended
        for c in silent + slow_ones + lazy:
            c.close()


def ends(program, manifest):
    """How it ends, and what cannot begin."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        s = Server(program, manifest)
        with s.connect() as c:  # one that is still open
            c.sendall(b"GET ")
            s.process.send_signal(number)
            assert s.process.wait(timeout=30) == code, s.process.returncode
        s.process.communicate()
    s = subprocess.Popen([program, manifest, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = json.loads(s.stdout.readline())
    assert said["status"] == "serving" and said["address"].startswith(f"http://127.0.0.1:{said['port']}/") and said["pid"] == s.pid
    taken = subprocess.run([program, manifest, "--port", str(said["port"])], capture_output=True, text=True, timeout=30)
    assert taken.returncode == 75 and "--port" in taken.stderr, taken
    s.terminate()
    rest = s.communicate(timeout=30)[0]
    assert s.returncode == 143 and json.loads(rest)["error"] == "E_TERMINATED", rest
    tokens = set()
    for _ in range(3):
        with Server(program, manifest) as s:
            tokens.add(s.token)
    assert len(tokens) == 3
    with Server(program, manifest, "--listen", "127.0.0.1", "--max-connections", "1") as s:
        assert s.get("state.json")[0] == 200


def ram(program, manifest, watch):
    """What it takes, in bytes: before anybody asks, and at most while its pages are asked for. Both from outside."""
    peak = f"{os.environ.get('KILN_TMP', '.')}/serve.peak"
    with Server(watch, peak, program, manifest) as s:
        with open(f"/proc/{s.process.pid}/task/{s.process.pid}/children") as f:
            child = int(f.read())
        with open(f"/proc/{child}/smaps_rollup") as f:
            idle = 1024 * int(re.search(r"Pss_Anon: +(\d+)", f.read())[1])
        for path in ("state.json", "cameras.json", "chunks.json", "report.html"):
            assert s.get(path)[0] == 200, path
        cameras, chunks = s.json("cameras.json")["cameras"], s.json("chunks.json")
        for kind in ("photo/%s.jpg", "picture/%s.jpg", "heat/%s.webp"):
            for camera in (cameras[0], cameras[-1]):
                assert s.get(kind % camera["key"])[0] in (200, 404), kind
        for i in range(min(8, len(chunks["nodes"]))):
            assert s.get(f"splats/{chunks['layer']}/{i}.ply")[0] in (200, 404), i
        os.kill(child, signal.SIGTERM)  # the watcher writes what it has seen when the server has ended
        assert s.process.wait(timeout=60) == 143
    with open(peak) as f:
        print(idle, f.read().split()[0])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
