# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the Python of .venv-flent: draws plots of files with the real Flent, all in one process.

    flent_draw.py FOLDER FILE[=PLOT,...]...    prints {file: {plot: [errors and warnings of Flent]}}; without PLOT, all plots of one file
"""

import json
import logging
import os
import sys
import warnings


class Kept(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(f"{record.levelname}: {record.getMessage()}")


def main():
    folder = sys.argv[1]
    from flent import formatters, plotters, resultset, settings

    kept = Kept()
    logging.getLogger().addHandler(kept)
    found = {}
    for word in sys.argv[2:]:
        file, _, wanted = word.partition("=")
        made = settings.load(["-i", file, "-f", "plot", "-o", os.path.join(folder, "plot.svg")])
        results = resultset.load(file)
        made.update(results.meta())
        made.load_test(informational=True)
        made.compute_missing_results(results)
        found[file] = {"loading": list(kept.said)}
        whole = [name for name, one in made.PLOTS.items() if not one.get("type", "").endswith(("combine", "qq"))]
        for plot in wanted.split(",") if wanted else whole:
            kept.said.clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    made.PLOT, made.OUTPUT = plot, os.path.join(folder, "plot.svg")
                    formatter = formatters.new(made)
                    formatter.format([results])
                    problems = list(kept.said) if formatter.verify()[0] else ["Flent's own verification failed"]
                except Exception as error:
                    problems = [*kept.said, f"{type(error).__name__}: {error}"]
            found[file][plot] = problems + [str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)]
            plotters.pyplot.close("all")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
