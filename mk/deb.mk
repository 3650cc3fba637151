# The Debian packages, from the committed tree, into dist/.
.PHONY: deb test-deb
deb: ## build the Debian packages into dist/
	@scripts/setup build deb
	@scripts/deb

test-deb: deb ## lintian over the packages, and their installation on a clean system
	@scripts/setup test-deb
	@scripts/test-deb
