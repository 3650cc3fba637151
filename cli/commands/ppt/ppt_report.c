/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_report.h"

#include "fields_ppt.h"

#include <math.h>

const char *ppt_ns_text(char text[KTRXER_UNITS_TEXT], double ns)
{
	return isfinite(ns) && fabs(ns) < 9e18 ? ktrxer_format_ns(text, (int64_t)llround(ns)) : "unknown";
}

static void say_resolved(struct cli *cli, const char *prefix, const struct ppt_result *r)
{
	char x[3][KTRXER_UNITS_TEXT];

	out_text(cli, "%send-link capacity: %s (95 %%: %s to %s)", prefix, out_rate(x[0], r->capacity_bit_s),
		 out_rate(x[1], r->capacity.low), out_rate(x[2], r->capacity.high));
	out_text(cli, "%sdPPT, trailing minus heading packet: %s (95 %%: %s to %s)", prefix,
		 ppt_ns_text(x[0], r->delta_ns), ppt_ns_text(x[1], r->delta.low), ppt_ns_text(x[2], r->delta.high));
	if (r->serial)
		out_text(cli, "%sservice time of the receiver: %s a packet; the larger sizes give the capacity", prefix,
			 ppt_ns_text(x[0], r->service_ns));
	out_text(cli,
		 "%sfixed by construction, 8 (s2 - s1) / c: PPT_t %s, and PPT_h = PPT_t - dPPT %s; neither is a "
		 "measurement of the host",
		 prefix, ppt_ns_text(x[0], r->phase2.trailing_ns), ppt_ns_text(x[1], r->phase2.heading_ns));
}

static void say_coalesced(struct cli *cli, const char *prefix, const struct ppt_result *r)
{
	char x[KTRXER_UNITS_TEXT];
	const bool known = r->coalescing_ns > 0;

	out_text(cli,
		 "%sno result: the receiver coalesces interrupts%s%s (%zu pairs came with one interrupt): "
		 "switch it off with `ethtool -C DEV rx-usecs 0`, or use NIC stamps",
		 prefix, known ? " with a period of about " : "", known ? ppt_ns_text(x, r->coalescing_ns) : "",
		 r->together);
}

void ppt_say_reading(struct cli *cli, const char *prefix, const struct ppt_result *r)
{
	char x[KTRXER_UNITS_TEXT];

	switch (r->reading) {
	case PPT_RESOLVED:
		say_resolved(cli, prefix, r);
		break;
	case PPT_UNRESOLVED:
		out_text(cli,
			 "%sno result: the gaps do not show whether they grow with the packet's size (slope %.3f to "
			 "%.3f ns a byte): use more probes, a larger difference of the sizes, or a finer clock (it has "
			 "%s)",
			 prefix, r->slope.low, r->slope.high, ppt_ns_text(x, r->resolution_ns));
		break;
	case PPT_SERVICE_TIME:
		out_text(cli,
			 "%sservice time of the receiver: %s a packet. The gaps do not grow with the packet's size, so "
			 "the receiver, and not its link, sets them: capacity and dPPT cannot be estimated",
			 prefix, ppt_ns_text(x, r->service_ns));
		break;
	case PPT_DECREASING:
		out_text(cli,
			 "%sno result: the gaps fall as packets grow (slope %.3f to %.3f ns a byte), which no link "
			 "does: check the sizes",
			 prefix, r->slope.low, r->slope.high);
		break;
	case PPT_COALESCED:
		say_coalesced(cli, prefix, r);
		break;
	default:
		break;
	}
}

static void slope_json(struct json *json, const struct ppt_result *r)
{
	ppt_figures_slope_ns_per_byte_open(json);
	ppt_slope_value(json, r->phase1.m_avg);
	ppt_slope_low(json, r->slope.low);
	ppt_slope_high(json, r->slope.high);
	json_object_end(json);
}

static void resolved_json(struct json *json, const struct ppt_result *r)
{
	ppt_figures_capacity_bit_s_open(json);
	ppt_capacity_value(json, r->capacity_bit_s);
	ppt_capacity_low(json, r->capacity.low);
	ppt_capacity_high(json, r->capacity.high);
	json_object_end(json);
	ppt_figures_delta_ns_open(json);
	ppt_delta_value(json, r->delta_ns);
	ppt_delta_low(json, r->delta.low);
	ppt_delta_high(json, r->delta.high);
	json_object_end(json);
}

void ppt_gaps_json(struct json *json, const struct ppt_gaps *gaps)
{
	ppt_gaps_kept(json, gaps->kept);
	ppt_gaps_bin_ns(json, gaps->bin_ns);
	ppt_gaps_small_ns(json, gaps->small_ns);
	ppt_gaps_peak_ns(json, gaps->peak_ns);
	ppt_gaps_limit_ns(json, gaps->limit_ns);
	ppt_gaps_average_ns(json, gaps->average_ns);
	ppt_gaps_sigma_ns(json, gaps->sigma_ns);
	ppt_gaps_low_ns(json, gaps->low_ns);
	ppt_gaps_high_ns(json, gaps->high_ns);
}

/* The figures of the paper, whatever the reading: they are what its equations give for these gaps. */
static void paper_json(struct json *json, const struct ppt_result *r)
{
	ppt_figures_paper_open(json);
	ppt_paper_m_low_ns_per_byte(json, r->phase1.m_low);
	ppt_paper_m_high_ns_per_byte(json, r->phase1.m_high);
	ppt_paper_m_avg_ns_per_byte(json, r->phase1.m_avg);
	ppt_paper_gamma_ns(json, r->phase1.gamma_ns);
	ppt_paper_expected1_ns(json, r->phase1.expected1_ns);
	ppt_paper_expected2_ns(json, r->phase1.expected2_ns);
	ppt_paper_delta1_ns(json, r->phase1.delta1_ns);
	ppt_paper_delta2_ns(json, r->phase1.delta2_ns);
	ppt_paper_ppt_note(json, "fixed by construction: 8 (s2 - s1) / c");
	ppt_paper_ppt_trailing_ns(json, r->phase2.trailing_ns);
	ppt_paper_ppt_heading_ns(json, r->phase2.heading_ns);
	ppt_paper_ppt_average_ns(json, r->phase2.average_ns);
	json_object_end(json);
}

void ppt_figures_json(struct json *json, const struct ppt_result *r)
{
	const bool estimated = r->gaps[0].count && r->reading < PPT_TOO_FEW;

	if (estimated) {
		ppt_figures_interval(json, "95 %, t with the standard error of 1000 bootstrap resamples");
		slope_json(json, r);
	}
	if (r->reading == PPT_RESOLVED) {
		resolved_json(json, r);
	} else {
		ppt_figures_capacity_bit_s_null(json);
		ppt_figures_delta_ns_null(json);
	}
	if (r->reading == PPT_SERVICE_TIME || (r->reading == PPT_RESOLVED && r->serial))
		ppt_figures_service_ns(json, r->service_ns);
	if (r->reading == PPT_COALESCED) {
		if (r->coalescing_ns > 0)
			ppt_figures_coalescing_ns(json, r->coalescing_ns);
		else
			ppt_figures_coalescing_ns_null(json);
		ppt_figures_together(json, r->together);
	}
	if (estimated)
		paper_json(json, r);
}
