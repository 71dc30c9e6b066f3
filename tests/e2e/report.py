"""What tests/e2e/report.t asks of a page of kiln-report: page(path) parses it and refuses whatever could load, run or send."""
import base64, hashlib, html.parser, re, sys

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.blocks = [], [], "", {}

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.blocks.setdefault(self.open[-1], []).append(data)
        else:
            self.text += data


def page(path):
    text = open(path, encoding="utf-8").read()
    p = Page()
    p.feed(text)
    p.close()
    assert not p.open, f"never closed: {p.open}"
    policy = next(a["content"] for t, a in p.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; ") and "unsafe" not in policy, policy
    for kind in ("script", "style"):  # one of each, the repository's own, named by its hash
        assert [b == open(f"stages/report/report.{'js' if kind == 'script' else 'css'}").read() for b in p.blocks[kind]] == [True], kind
        hash = base64.b64encode(hashlib.sha256(p.blocks[kind][0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{hash}'" in policy, (kind, policy)
    for tag, attributes in p.tags:
        assert tag not in ("iframe", "object", "embed", "base", "form", "audio", "video", "foreignobject"), tag
        for name, value in attributes.items():
            assert not name.startswith("on") and name != "style", (tag, name, value)
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                assert re.match("data:|#", value), (tag, name, value)
    ids = [a["id"] for _, a in p.tags if "id" in a]
    assert len(ids) == len(set(ids)), "an id twice"
    for _, a in p.tags:
        if a.get("href", "").startswith("#"):
            assert a["href"][1:] in ids, a
    return p


if __name__ == "__main__":
    page(sys.argv[1])
