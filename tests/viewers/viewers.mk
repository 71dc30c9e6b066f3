# viewers.mk -- tests/viewers: what is exported, in other people's viewers and readers. tests/e2e/viewers.t runs a part.
.PHONY: viewers
## viewers: every format that is written in the web viewers that read it, and in other programs; needs npm, Chromium and some
## viewers: 40 minutes on two cores (ONLY='chair spark': a part; ONLY=--slow: splat-transform's SOG as well; tests/viewers/run)
viewers: $(BIN)
	@O='$O' tests/viewers/run $(ONLY)
