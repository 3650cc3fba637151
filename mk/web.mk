# The pages of reports and of the explorer. They are built from web/ and committed (docs/decisions/0018-the-page-is-committed.md), so that node is needed only to change it.
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

.PHONY: bench-flent
bench-flent: build .venv/.ok .venv-flent/.ok ## CPU time and samples of ktrxer run compared with the real Flent (needs irtt, iperf, fping)
	PYTHONPATH=python .venv/bin/python -m ktrxer.bench.flent

.PHONY: bench-pictures
bench-pictures: .venv/.ok .venv-flent/.ok ## CPU time of ktrxer plot compared with the real Flent, on RUN=FILE.ktrxer
	PYTHONPATH=python .venv/bin/python -m ktrxer.bench.pictures '$(RUN)'
