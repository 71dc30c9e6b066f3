# docs.mk -- the pages: where they are installed, with the examples, and their pictures.
.PHONY: install-docs pictures
DOC      = $(AT)/share/doc/splatkiln
PAGES    := README.md GLOSSARY.md $(wildcard docs/*.md docs/pictures/*.jpg) schema/SCHEMA.md schema/chunks.schema.json
EXAMPLES := $(shell find examples -type f -not -path '*/__pycache__/*')

# Links between pages lead to the same places as in the source tree.
install-docs:
	for f in $(PAGES); do install -D -m 644 $$f "$(DOC)/$$f" || exit 1; done
	for f in $(EXAMPLES); do install -D -m $$([ -x $$f ] && echo 755 || echo 644) $$f "$(DOC)/$$f" || exit 1; done

## pictures: draws the pages' pictures of the demo's bake again, after make pipeline; needs npm and Chromium, like make viewers
pictures: $O/bin/kiln $O/bin/kiln-serve $(VIEWER)/viewer.js
	tests/viewers/run --install
	node docs/pictures/draw.mjs $O/viewers/node_modules $O/demo $O/bin/kiln docs/pictures
