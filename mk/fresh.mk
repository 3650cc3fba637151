.PHONY: test-fresh
test-fresh: ## what a newcomer does, on bare Debian 12 and 13: demo, tests, install, packages (needs root; ten minutes on 2 cores)
	@scripts/setup fresh
	@scripts/test-fresh $(FRESH)
