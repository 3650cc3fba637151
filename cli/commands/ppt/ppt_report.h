/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer ppt estimate` and `ktrxer ppt measure`. */
#ifndef KTRXER_CLI_PPT_REPORT_H
#define KTRXER_CLI_PPT_REPORT_H

#include "cli.h"
#include "ppt.h"
#include "units.h"

/* "unknown" where it is not finite. */
const char *ppt_ns_text(char text[KTRXER_UNITS_TEXT], double ns);
/* Lines of text, each after `prefix`; nothing for the readings of ppt_probes.h. */
void ppt_say_reading(struct cli *cli, const char *prefix, const struct ppt_result *result);

void ppt_gaps_json(struct json *json, const struct ppt_gaps *gaps);
/*
 * The slope, capacity, dPPT, and the paper's figures; capacity and dPPT alone, null, for the readings of ppt_probes.h.
 */
void ppt_figures_json(struct json *json, const struct ppt_result *result);

#endif
