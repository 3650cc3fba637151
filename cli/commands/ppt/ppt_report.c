/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_report.h"

#include <math.h>

const char *ppt_ns_text(char text[KTRXER_UNITS_TEXT], double ns)
{
	return isfinite(ns) && fabs(ns) < 9e18 ? ktrxer_format_ns(text, (int64_t)llround(ns)) : "unknown";
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void say_resolved(struct cli *cli, const char *prefix, const struct ppt_result *r)
{
	char x[3][KTRXER_UNITS_TEXT];

	out_text(cli, "%send-link capacity: %s (95 %%: %s to %s)", prefix, out_rate(x[0], r->capacity_bit_s),
		 out_rate(x[1], r->capacity.low), out_rate(x[2], r->capacity.high));
	out_text(cli, "%sdPPT, trailing minus heading packet: %s (95 %%: %s to %s)", prefix,
		 ppt_ns_text(x[0], r->delta_ns), ppt_ns_text(x[1], r->delta.low), ppt_ns_text(x[2], r->delta.high));
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

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void interval_json(struct json *json, const char *key, double value, const struct ppt_interval *interval,
			  int decimals)
{
	json_object(json, key);
	json_rounded(json, "value", value, decimals);
	json_rounded(json, "low", interval->low, decimals);
	json_rounded(json, "high", interval->high, decimals);
	json_object_end(json);
}

void ppt_gaps_json(struct json *json, const struct ppt_gaps *gaps)
{
	json_u64(json, "kept", gaps->kept);
	json_i64(json, "bin_ns", gaps->bin_ns);
	json_i64(json, "small_ns", gaps->small_ns);
	json_i64(json, "peak_ns", gaps->peak_ns);
	json_i64(json, "limit_ns", gaps->limit_ns);
	json_rounded(json, "average_ns", gaps->average_ns, 3);
	json_rounded(json, "sigma_ns", gaps->sigma_ns, 3);
	json_rounded(json, "low_ns", gaps->low_ns, 3);
	json_rounded(json, "high_ns", gaps->high_ns, 3);
}

/* The figures of the paper, whatever the reading: they are what its equations give for these gaps. */
static void paper_json(struct json *json, const struct ppt_result *r)
{
	json_object(json, "paper");
	json_rounded(json, "m_low_ns_per_byte", r->phase1.m_low, 6);
	json_rounded(json, "m_high_ns_per_byte", r->phase1.m_high, 6);
	json_rounded(json, "m_avg_ns_per_byte", r->phase1.m_avg, 6);
	json_rounded(json, "gamma_ns", r->phase1.gamma_ns, 3);
	json_rounded(json, "expected1_ns", r->phase1.expected1_ns, 3);
	json_rounded(json, "expected2_ns", r->phase1.expected2_ns, 3);
	json_rounded(json, "delta1_ns", r->phase1.delta1_ns, 3);
	json_rounded(json, "delta2_ns", r->phase1.delta2_ns, 3);
	json_string(json, "ppt_note", "fixed by construction: 8 (s2 - s1) / c");
	json_rounded(json, "ppt_trailing_ns", r->phase2.trailing_ns, 3);
	json_rounded(json, "ppt_heading_ns", r->phase2.heading_ns, 3);
	json_rounded(json, "ppt_average_ns", r->phase2.average_ns, 3);
	json_object_end(json);
}

void ppt_figures_json(struct json *json, const struct ppt_result *r)
{
	const bool estimated = r->gaps[0].count && r->reading < PPT_TOO_FEW;

	if (estimated) {
		json_string(json, "interval", "95 %, t with the standard error of 1000 bootstrap resamples");
		interval_json(json, "slope_ns_per_byte", r->phase1.m_avg, &r->slope, 6);
	}
	if (r->reading == PPT_RESOLVED) {
		interval_json(json, "capacity_bit_s", r->capacity_bit_s, &r->capacity, 0);
		interval_json(json, "delta_ns", r->delta_ns, &r->delta, 3);
	} else {
		json_null(json, "capacity_bit_s");
		json_null(json, "delta_ns");
	}
	if (r->reading == PPT_SERVICE_TIME)
		json_rounded(json, "service_ns", r->service_ns, 3);
	if (r->reading == PPT_COALESCED) {
		if (r->coalescing_ns > 0)
			json_rounded(json, "coalescing_ns", r->coalescing_ns, 3);
		else
			json_null(json, "coalescing_ns");
		json_u64(json, "together", r->together);
	}
	if (estimated)
		paper_json(json, r);
}
