# The Debian packages, from the committed tree, into dist/. `make test-fresh` installs them on bare systems and tests them there.
.PHONY: deb test-deb
deb: ## build the Debian packages into dist/
	@scripts/setup deb
	@scripts/deb

# The suppressed tags are unavoidable in a package outside of Debian.
test-deb: deb ## lintian over the packages
	@scripts/setup test-deb
	lintian --allow-root --fail-on error,warning --suppress-tags \
		initial-upload-closes-no-bugs,bogus-mail-host,bogus-mail-host-in-debian-changelog dist/*.changes
