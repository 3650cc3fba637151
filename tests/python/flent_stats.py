# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the Python of .venv-flent: prints, as JSON, the rows of `flent -f stats_csv` of files by series, without names and titles of files;
or the text of `flent -f org_table`.

flent_stats.py [--org] OUTPUT FILE...    OUTPUT: a file that is overwritten"""

import csv
import json
import logging
import sys


def rows(target, file):
    formatted("stats_csv", target, file)
    with open(target) as text:
        return {row[2]: row[3:] for row in csv.reader(text)}


def org(target, file):
    formatted("org_table", target, file)
    with open(target) as text:
        return text.read()


def formatted(name, target, file):
    from flent import formatters, resultset, settings

    made = settings.load(["-i", file, "-f", name, "-o", target])
    results = resultset.load(file)
    made.update(results.meta())
    made.load_test(informational=True)
    made.OUTPUT = target
    formatter = formatters.new(made)
    formatter.format([results])
    formatter.output.flush()


def main():
    logging.disable(logging.CRITICAL)
    read, words = (org, sys.argv[2:]) if sys.argv[1] == "--org" else (rows, sys.argv[1:])
    print(json.dumps({file: read(words[0], file) for file in words[1:]}))


if __name__ == "__main__":
    main()
