# viewer.mk -- the interactive viewer: what npm's packages and our pages make together. Nothing else needs npm.
.PHONY: viewer
VIEWER     := $O/share/splatkiln/viewer
VIEWER_SRC := $(wildcard stages/viewer/*.js stages/viewer/*.css stages/viewer/*.html) stages/viewer/build.mjs

## viewer: the interactive viewer for kiln-serve and kiln-export --format html, into build/share; needs npm
viewer: $(VIEWER)/viewer.js
$(VIEWER)/viewer.js: $(VIEWER_SRC) $O/viewer/installed
	@mkdir -p $(@D)
	$(call say,NODE,$@)node stages/viewer/build.mjs $O/viewer/node_modules $(@D)
# Versions and hashes are those of the lock file; install scripts are off (.npmrc).
$O/viewer/installed: stages/viewer/package.json stages/viewer/package-lock.json stages/viewer/.npmrc
	@command -v npm >/dev/null || { echo 'make viewer needs npm (Debian: apt-get install npm)' >&2; exit 1; }
	@mkdir -p $(@D)
	@cp $^ $(@D)
	$(call say,NPM,$(@D))cd $(@D) && npm ci --no-audit --no-fund --fetch-retries=1 >npm.log 2>&1 || { cat npm.log >&2; exit 1; }
	@touch $@
