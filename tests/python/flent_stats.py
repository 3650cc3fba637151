# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the Python of .venv-flent: prints, as JSON, the rows of `flent -f stats_csv` of files by series, without names and titles of files.

flent_stats.py CSV FILE...    CSV: a file that is overwritten"""

import csv
import json
import logging
import sys


def rows(target, file):
    from flent import formatters, resultset, settings

    made = settings.load(["-i", file, "-f", "stats_csv", "-o", target])
    results = resultset.load(file)
    made.update(results.meta())
    made.load_test(informational=True)
    made.OUTPUT = target
    formatter = formatters.new(made)
    formatter.format([results])
    formatter.output.flush()
    with open(target) as text:
        return {row[2]: row[3:] for row in csv.reader(text)}


def main():
    logging.disable(logging.CRITICAL)
    print(json.dumps({file: rows(sys.argv[1], file) for file in sys.argv[2:]}))


if __name__ == "__main__":
    main()
