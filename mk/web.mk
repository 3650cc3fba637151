# The pages of reports and of the explorer. They are built from web/ and committed (docs/decisions/0018-pages-and-plots.md), so that node is needed only to change it.
REPORT ?=

web/node_modules/.ok: web/package-lock.json
	cd web && npm ci
	touch $@

.PHONY: web picture
web: ## build the pages of reports and of the explorer after a change in web/ (needs node)
	@scripts/setup web
	@$(MAKE) --no-print-directory web/node_modules/.ok
	cd web && npm run --silent check && npm run --silent build

picture: .venv/.ok ## docs/report.png from REPORT=FILE.html (default: a synthetic run); needs node and Chromium
	@scripts/setup web browser
	@$(MAKE) --no-print-directory web/node_modules/.ok
	web/picture '$(REPORT)' docs/report.png

.PHONY: bench-explorer
bench-explorer: .venv/.ok ## figures of the explorer in Chromium: first picture, frames a second, table of 10,000 runs (needs node and a quiet machine)
	@scripts/setup web browser
	@$(MAKE) --no-print-directory web/node_modules/.ok
	PYTHONPATH=python KTRXER_PYTHON=$(CURDIR)/.venv/bin/python node web/measure.mjs
