/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "handover_table.h"

#include <stddef.h>

const struct handover handover_table[] = {
	{ "batch", "Make a series of runs from one file" },
	{ "compare", "Compare groups of runs: differences with intervals" },
	{ "export", "Write runs as Flent's data files" },
	{ "import", "Make runs of Flent's data files" },
	{ "lab", "Run commands in networks of namespaces, and in emulated devices" },
	{ "plot", "Draw a run for print" },
	{ "recover", "Close a run that a crash has left open" },
	{ "report", "Write a report of runs as one page" },
	{ "run", "Run a test of flows and probes, and store it" },
	{ "runs", "List stored runs, or give them as one data set" },
	{ "summary", "Summarise a run in figures" },
	{ "tests", "List and explain the tests that `run` knows" },
	{ "truth", "Run a measuring tool over paths whose truth is known" },
	{ NULL },
};
