.PHONY: format
format: .venv/.tests ## format the C files (.clang-format); `tests/run lint` checks them
	@scripts/format
