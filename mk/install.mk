# Install and uninstall. PREFIX/lib/ktrxer/installed lists the files of the C part; all other files are in separate folders.
.PHONY: install install-python uninstall
INSTALLED = $(DESTDIR)$(prefix)/lib/ktrxer
FULL = { scripts/full-disk "$(DESTDIR)$(prefix)" "$(DESTDIR)/"; exit 1; }
PACKAGES = $$("$(INSTALLED)/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')

install: ## install (prefix=/usr/local, DESTDIR=); WITHOUT_PYTHON=1: the C part only; no setuid bit and no file capability is set
	@scripts/setup build $(if $(WITHOUT_PYTHON),,install)
	@scripts/writable install "$(DESTDIR)$(prefix)"
	@$(MAKE) --no-print-directory built
	@scripts/as-owner meson configure $(BUILD) --prefix "$(prefix)"
	@scripts/as-owner ninja --quiet -C $(BUILD)
	@umask 022 && { DESTDIR="$(DESTDIR)" meson install --quiet --no-rebuild -C $(BUILD); status=$$?; \
		chown -R --reference=. $(BUILD)/meson-logs; [ $$status -eq 0 ]; } || $(FULL)
	@umask 022 && mkdir -p "$(INSTALLED)" && grep '^/' $(BUILD)/meson-logs/install-log.txt >"$(INSTALLED)/installed" || $(FULL)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@echo "install: the C part is in $(DESTDIR)$(prefix), the pages docs/... are in $(DESTDIR)$(prefix)/share/doc/ktrxer"
	@[ -n "$(WITHOUT_PYTHON)" ] || $(MAKE) --no-print-directory install-python || { \
		echo "install: the Python part (run, report, plot, lab) is NOT installed. Then: make install-python (or WITHOUT_PYTHON=1)" >&2; exit 1; }

# A separate environment for the Python part. The Debian package uses this rule, too.
install-python:
	@scripts/venv "$(INSTALLED)/venv" python/requirements.txt python/requirements-plot.txt
	@"$(INSTALLED)/venv/bin/python" -m pip uninstall --quiet --yes pip setuptools 2>/dev/null
	@umask 022 && "$(INSTALLED)/venv/bin/python" -m compileall -q -j0 --invalidation-mode unchecked-hash -s "$(DESTDIR)" "$(PACKAGES)" >/dev/null || true
	@umask 022 && echo "$(prefix)/share/ktrxer/python" >"$(PACKAGES)/ktrxer.pth" || $(FULL)
	@umask 022 && install -d "$(DESTDIR)$(prefix)/bin"
	@printf '%s\n' '#!/bin/sh' '# Python with the packages of ktrxer: from ktrxer.store import open_run' 'exec "$(prefix)/lib/ktrxer/venv/bin/python3" "$$@"' \
		>"$(DESTDIR)$(prefix)/bin/ktrxer-python" || $(FULL)
	@chmod 755 "$(DESTDIR)$(prefix)/bin/ktrxer-python"
	@echo "install: the Python part is in $(INSTALLED); ktrxer-python is its interpreter"

uninstall: ## remove what `make install` installed (prefix=, DESTDIR=)
	@[ -f "$(INSTALLED)/installed" ] || { echo "uninstall: there is no $(INSTALLED)/installed: nothing was installed there by make install" >&2; exit 1; }
	@while read -r file; do [ -d "$$file" ] || rm -f "$$file"; done <"$(INSTALLED)/installed"
	@rm -rf "$(INSTALLED)" "$(DESTDIR)$(prefix)/share/ktrxer" "$(DESTDIR)$(prefix)/libexec/ktrxer" "$(DESTDIR)$(prefix)/include/ktrxer" \
		"$(DESTDIR)$(prefix)/share/doc/ktrxer"
	@rm -f "$(DESTDIR)$(prefix)/bin/ktrxer-python"
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@echo "uninstall: ktrxer is gone from $(DESTDIR)$(prefix)"
