/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt plan`: sizes of compound probes for a path of known links, and the probes' dispersion on it. */
#include "cli.h"

#include "fields_ppt.h"
#include "error.h"
#include "ppt_plan.h"
#include "shared_options.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct ppt_plan_options {
	struct opt_list links, cross;
	struct opt_range trailing;
	uint64_t heading, resolution_ns, cross_bytes, gap_bits;
};

#define FIELD(name) offsetof(struct ppt_plan_options, name)

enum { CROSS_MAX = 1000, TRAILING_MIN = 1 };

/* clang-format off */
static const struct opt ppt_plan_opts[] = {
	OPTION_HEADING(FIELD(heading), .fallback = "1502", .min = PPT_SIZE_MIN, .max = PPT_SIZE_MAX,
		       .help = "Size of the heading packet on the wire"),
	{ .name = "trailing", .type = OPT_RANGE, .offset = FIELD(trailing), .argument = "RANGE", .min = TRAILING_MIN,
	  .max = PPT_SIZE_MAX,
	  .help = "Also print the gap and the apparent capacity of each of these sizes of the trailing packet, as "
		  "50..1500/25" },
	OPTION_CLOCK_RESOLUTION(FIELD(resolution_ns), "1ns", ""),
	{ .name = "cross", .type = OPT_LIST, .offset = FIELD(cross), .argument = "LINK:A:B",
	  .help = "Cross traffic: on link LINK (the first is 1) A packets ahead of the heading packet, and B between "
		  "both" },
	{ .name = "cross-size", .type = OPT_SIZE, .offset = FIELD(cross_bytes), .argument = "BYTES", .fallback = "64",
	  .min = 1, .max = 65535,
	  .help = "Size of a packet of the cross traffic on the wire" },
	{ .name = "frame-gap", .type = OPT_UINT, .offset = FIELD(gap_bits), .argument = "BITS", .fallback = "96",
	  .max = 65535,
	  .help = "Bits of the gap between two frames on each link; the examples of the paper have none" },
	{ 0 },
};
/* clang-format on */

static const struct opt_positional ppt_plan_positionals[] = {
	{ .name = "CAPACITY",
	  .offset = FIELD(links),
	  .help = "Capacity of each link from the sender to the receiver, as 100M 155M 10M",
	  .many = true },
	{ 0 },
};

struct ppt_plan {
	struct ppt_path path;
	struct ppt_cross cross;
	bool crossed;
	struct ppt_sizing sizing;
};

static int read_path(struct ppt_path *path, const struct opt_list *links, struct ktrxer_error *err)
{
	if (links->count > PPT_LINKS_MAX)
		return ktrxer_fail(err, -EINVAL, "%d capacities: a path has at most %d links", links->count,
				   PPT_LINKS_MAX);
	for (int i = 0; i < links->count; i++) {
		int rc = ktrxer_parse_bitrate(&path->capacity_bit_s[i], links->items[i], err);

		if (rc < 0)
			return rc;
		path->links++;
	}
	return 0;
}

static bool read_cross(struct ppt_plan *plan, const char *text)
{
	unsigned link, before, between;
	char rest;

	if (strspn(text, "0123456789:") != strlen(text) || strlen(text) > 20 ||
	    sscanf(text, "%3u:%5u:%5u%c", &link, &before, &between, &rest) != 3)
		return false;
	if (link < 2 || link > plan->path.links || before > CROSS_MAX || between > CROSS_MAX)
		return false;
	plan->cross.links[link - 1].before = before;
	plan->cross.links[link - 1].between = between;
	plan->crossed = true;
	return true;
}

static int plan_make(struct cli *cli, const struct ppt_plan_options *o, struct ppt_plan *plan)
{
	struct ktrxer_error err;

	if (read_path(&plan->path, &o->links, &err) < 0) {
		cli_complain(cli, "%s", err.text);
		return EXIT_USAGE;
	}
	plan->path.gap_bits = (uint32_t)o->gap_bits;
	plan->cross.bytes = (uint32_t)o->cross_bytes;
	for (int i = 0; i < o->cross.count; i++)
		if (!read_cross(plan, o->cross.items[i])) {
			cli_complain(
				cli,
				"--cross '%s': write LINK:A:B, a link from 2 to %u and numbers of packets up to %d",
				o->cross.items[i], plan->path.links, CROSS_MAX);
			return EXIT_USAGE;
		}
	if (o->trailing.given && o->trailing.to > o->heading) {
		cli_complain(cli, "--trailing: %" PRIu64 " bytes are more than the heading packet has (%" PRIu64 ")",
			     o->trailing.to, o->heading);
		return EXIT_USAGE;
	}
	if (ppt_size(&plan->path, (uint32_t)o->heading, (uint32_t)o->resolution_ns, &plan->cross, &plan->sizing, &err) <
	    0) {
		cli_complain(cli, "%s", err.text);
		return EXIT_USAGE;
	}
	return EXIT_VALID;
}

static void say_sizes(struct cli *cli, const struct ppt_plan_options *o, const struct ppt_plan *plan)
{
	const struct ppt_sizing *s = &plan->sizing;
	char x[2][KTRXER_UNITS_TEXT];

	out_text(cli, "narrow link: %u of %u (%s); end link: %s", s->narrow, plan->path.links,
		 ktrxer_format_bitrate(x[0], plan->path.capacity_bit_s[s->narrow - 1]),
		 ktrxer_format_bitrate(x[1], plan->path.capacity_bit_s[plan->path.links - 1]));
	if (s->trailing_max_bytes < PPT_SIZE_MIN)
		out_text(cli, "heading packet %" PRIu64 " bytes: every trailing packet is dispersed", o->heading);
	else
		out_text(cli,
			 "heading packet %" PRIu64
			 " bytes: trailing packets of at most %.3f bytes stay without dispersion "
			 "(heading / trailing at least %.4f; at least "
			 "%.4f by the rule for each node)",
			 o->heading, s->trailing_max_bytes, s->alpha_min, s->alpha_rule);
	if (plan->crossed && s->largest_undispersed)
		out_text(cli, "with this cross traffic: at most %u bytes", s->largest_undispersed);
	else if (plan->crossed)
		out_text(cli, "with this cross traffic every trailing packet is dispersed");
	if (s->resolvable)
		out_text(cli,
			 "use trailing packets of %u (IPv6: %s) and %u bytes (at least %u B apart for a clock of %s)",
			 s->size1, s->size2 >= PPT_TRAILING_MIN_V6 + s->step_min ? "98" : "none", s->size2, s->step_min,
			 ktrxer_format_duration(x[0], o->resolution_ns));
	else
		out_text(cli,
			 "no two sizes: the smallest packet has %u bytes, the largest trailing packet without "
			 "dispersion %u, and a clock of %s needs %u between",
			 s->size1, s->size2, ktrxer_format_duration(x[0], o->resolution_ns), s->step_min);
}

static void row(struct cli *cli, struct json *json, const struct ppt_plan_options *o, const struct ppt_plan *plan,
		uint32_t trailing)
{
	char rate[KTRXER_UNITS_TEXT];
	struct ppt_dispersion d;

	ppt_disperse(&plan->path, (uint32_t)o->heading, trailing, &plan->cross, &d);
	out_text(cli, "%8u  %7.3f  %14.3f  %14.3f  %s", trailing, (double)o->heading / trailing, d.gap_ns / 1000,
		 d.delta_ns / 1000, out_rate(rate, d.capacity_bit_s));
	json_object(json, NULL);
	ppt_row_trailing_wire_bytes(json, trailing);
	ppt_row_alpha(json, (double)o->heading / trailing);
	ppt_row_gap_ns(json, d.gap_ns);
	ppt_row_dispersion_ns(json, d.delta_ns);
	ppt_row_apparent_capacity_bit_s(json, d.capacity_bit_s);
	json_object_end(json);
}

static void rows(struct cli *cli, struct json *json, const struct ppt_plan_options *o, const struct ppt_plan *plan)
{
	out_text(cli, "trailing    alpha          gap us   dispersion us  apparent capacity of the end link");
	ppt_plan_rows_open(json);
	for (uint64_t trailing = o->trailing.from; trailing <= o->trailing.to; trailing += o->trailing.step)
		row(cli, json, o, plan, (uint32_t)trailing);
	json_array_end(json);
}

static void plan_json(struct json *json, const struct ppt_plan_options *o, const struct ppt_plan *plan)
{
	const struct ppt_sizing *s = &plan->sizing;

	ppt_plan_links_bit_s_open(json);
	for (uint32_t i = 0; i < plan->path.links; i++)
		json_u64(json, NULL, plan->path.capacity_bit_s[i]);
	json_array_end(json);
	ppt_plan_cross_open(json);
	for (uint32_t i = 0; i < plan->path.links; i++) {
		if (!plan->cross.links[i].before && !plan->cross.links[i].between)
			continue;
		json_object(json, NULL);
		ppt_cross_link(json, i + 1);
		ppt_cross_ahead(json, plan->cross.links[i].before);
		ppt_cross_between(json, plan->cross.links[i].between);
		ppt_cross_wire_bytes(json, plan->cross.bytes);
		json_object_end(json);
	}
	json_array_end(json);
	ppt_plan_heading_wire_bytes(json, o->heading);
	ppt_plan_clock_resolution_ns(json, o->resolution_ns);
	ppt_plan_frame_gap_bits(json, o->gap_bits);
	ppt_plan_narrow_link(json, s->narrow);
	ppt_plan_trailing_max_wire_bytes(json, s->trailing_max_bytes);
	ppt_plan_alpha_min(json, s->alpha_min);
	ppt_plan_alpha_rule(json, s->alpha_rule);
	ppt_plan_largest_without_dispersion_wire_bytes(json, s->largest_undispersed);
	ppt_plan_step_min_bytes(json, s->step_min);
	ppt_plan_resolvable(json, s->resolvable);
	ppt_plan_size1_wire_bytes(json, s->size1);
	ppt_plan_size2_wire_bytes(json, s->size2);
}

static int run_ppt_plan(struct cli *cli, const void *options)
{
	const struct ppt_plan_options *o = options;
	struct ppt_plan plan = { 0 };
	struct json *json;
	int status = plan_make(cli, o, &plan);

	if (status != EXIT_VALID)
		return status;
	json = out_end(cli);
	say_sizes(cli, o, &plan);
	plan_json(json, o, &plan);
	if (o->trailing.given)
		rows(cli, json, o, &plan);
	return out_finish(cli, json) | (plan.sizing.resolvable ? EXIT_VALID : EXIT_NO_RESULT);
}

const struct command cmd_ppt_plan = {
	.name = "ppt plan",
	.summary = "Sizes of compound probes for a path of known links, and their dispersion",
	.description = OPT_PROSE("Computes the largest trailing packet that arrives right behind the heading packet on "
				 "a path whose capacities are known, the least difference of two sizes "
				 "that the receiver's clock resolves, and for each size of --trailing the gap at the "
				 "receiver and the capacity that the gap would show, with cross traffic of "
				 "--cross (Salehin, Rojas-Cessa, Lin, Dong, Kijkanjanarat; --trailing prints the data "
				 "of its figure of estimated capacity against the ratio of "
				 "sizes). Sizes are bytes on the wire. It sends nothing."),
	.examples = "ktrxer ppt plan 10M 155M 10M 100M\tA path whose narrow link is not the last one.\n"
		    "ktrxer ppt plan 10M 155M 10M 100M --frame-gap 0 --trailing 50..1500/25 --cross 3:1:1 --json\tThe "
		    "figure's data, under cross traffic.\n",
	.options = ppt_plan_opts,
	.positionals = ppt_plan_positionals,
	.options_size = sizeof(struct ppt_plan_options),
	.run = run_ppt_plan,
	.reports = true,
};
