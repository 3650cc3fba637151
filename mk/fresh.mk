.PHONY: test-fresh
test-fresh: ## a newcomer's steps on bare Debian 12 and 13: demo, tests, install, packages in the variant of the day, FRESH=all: in each (needs root; ten minutes on 2 cores)
	@scripts/setup fresh
	@scripts/test-fresh $(FRESH)
