# Measurements of this machine, without a pass or fail. The limits that a change must keep are tests (tests/system/test_figures.py).
.PHONY: bench bench-flent bench-pictures soak soak-adversary figures timing
timing: ## one probe each 10 ms: ktrxer compared with sleeping sockets, by the far end's kernel stamps (ten seconds)
	@scripts/setup build demo
	@scripts/as-owner env TARGETS='all bench/baseline/arrivals' scripts/build $(BUILD)
	@scripts/netns-root env PYTHONPATH=lab python3 -m ktrxer_lab.bench.timing

bench: ## the four benches in under five minutes: tables, and ratios with their targets; rows in build/bench/
	@scripts/setup build demo bench
	@$(MAKE) --no-print-directory build
	@scripts/netns-root env PYTHONPATH=lab python3 -m ktrxer_lab.bench.ratios --keep $(BUILD)/bench

figures: ## the figures that a change must keep, with their strict limits; writes build/bench.json
	@scripts/setup build demo
	@$(MAKE) --no-print-directory build
	@scripts/netns-root env PYTHONPATH=lab python3 -m ktrxer_lab.bench.figures --strict --json $(BUILD)/bench.json

soak: ## an hour at 10 kpps (SOAK_SECONDS=3600 SOAK_ENGINE=auto): counts add up, memory does not grow, mean rate is exact; a line a minute
	@scripts/setup build demo
	@$(MAKE) --no-print-directory build
	@scripts/netns-root env PYTHONPATH=lab python3 -m ktrxer_lab.bench.soak --seconds $(or $(SOAK_SECONDS),3600) --engine $(or $(SOAK_ENGINE),auto)
	@$(MAKE) --no-print-directory soak-adversary

soak-adversary: .venv/.tests ## ten minutes of hostile clients beside honest ones of `ktrxer serve` (ADVERSARY_SECONDS=600)
	@scripts/setup build test
	@$(MAKE) --no-print-directory build
	@KTRXER_ADVERSARY_S=$(or $(ADVERSARY_SECONDS),600) scripts/netns-root .venv/bin/python -m pytest -q -rP tests/system/test_adversary.py

# Beside the real Flent.
bench-flent: .venv/.ok .venv-flent/.ok ## processor time and latency samples of ktrxer run compared with Flent's (needs irtt, fping, and netperf or iperf)
	@$(MAKE) --no-print-directory build
	PYTHONPATH=lab .venv/bin/python -m ktrxer_lab.bench.flent

bench-pictures: .venv/.plot .venv-flent/.ok ## processor time of ktrxer plot compared with Flent's, on RUN=FILE.ktrxer
	PYTHONPATH=lab .venv/bin/python -m ktrxer_lab.bench.pictures '$(RUN)'
