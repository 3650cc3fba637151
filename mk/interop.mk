.PHONY: interop
interop: build ## STAMP and RPM with other implementations, in both roles (tests/interop/README.md)
	@scripts/netns-root scripts/interop
