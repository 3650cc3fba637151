.PHONY: interop
interop: build ## serve and stamp against other people's STAMP, both roles (tests/interop/README.md)
	@scripts/netns-root scripts/interop
