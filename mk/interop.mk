.PHONY: interop
interop: build ## serve and stamp with other STAMP implementations, in both roles (tests/interop/README.md)
	@scripts/netns-root scripts/interop
