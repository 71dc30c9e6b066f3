"""The python of tests/e2e/kiln.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def stages(path, words):
    text, n, at = open(path).read(), [], 0
    while text[at:].strip():
        doc, at = json.JSONDecoder().raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        n.append(doc["stage"])
    assert n == ["import"] + words.split(), n


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
