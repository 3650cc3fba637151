/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "handover_table.h"

#include <stddef.h>

#ifndef KTRXER_SMALL

const struct handover handover_table[] = {
	{ "batch", "Make a series of runs from one file" },
	{ "check", "Check whether the line is bloated, and where" },
	{ "compare", "Compare groups of runs: differences with intervals" },
	{ "export", "Convert runs to CSV, Parquet, OpenMetrics, Flent's files" },
	{ "import", "Convert Flent's data files to runs" },
	{ "lab", "Run commands in networks of namespaces, and in emulated devices" },
	{ "new", "Write a working file to begin with: a test of your own" },
	{ "note", "Change the title and the note of a stored run" },
	{ "plot", "Draw stored runs: SVG, PDF, PNG" },
	{ "query", "Query all runs of a directory by SQL" },
	{ "recover", "Close a run that a crash has interrupted" },
	{ "report", "Make one page with interactive plots of stored runs" },
	{ "run", "Run a test of flows and probes, and store it" },
	{ "runs", "List stored runs, or write them as one data set" },
	{ "serve-http", "Serve the responsiveness test by HTTP/2" },
	{ "summary", "Summarise a run in figures" },
	{ "tests", "List and explain the tests of `ktrxer run`" },
	{ "truth", "Check a measuring tool on paths with known properties" },
	{ "view", "Explore a directory of runs in the browser: table, plots, comparison" },
	{ NULL },
};
#endif
