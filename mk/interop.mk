.PHONY: interop
interop: build .venv/.ok ## STAMP and RPM with other implementations, in both roles (tests/interop/README.md)
	@scripts/netns-root .venv/bin/python scripts/interop
