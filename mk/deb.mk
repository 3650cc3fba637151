# The Debian packages, from the committed tree, into dist/. `make test-fresh` installs them on bare systems and uses them there.
.PHONY: deb test-deb
deb: ## build the Debian packages into dist/
	@scripts/setup deb
	@scripts/deb

# What cannot be helped in a package that is not in Debian is named.
test-deb: deb ## lintian over the packages
	@scripts/setup test-deb
	lintian --allow-root --fail-on error,warning --suppress-tags \
		initial-upload-closes-no-bugs,bogus-mail-host,bogus-mail-host-in-debian-changelog dist/*.changes
