/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt estimate`: end-link capacity and packet processing times from the stored gaps of compound probes. */
#include "cli.h"

#include "fields_ppt.h"
#include "error.h"
#include "ppt_report.h"
#include "ppt_samples.h"
#include "shared_options.h"

#include <errno.h>
#include <string.h>

struct ppt_estimate_options {
	const char *file;
	uint64_t port, size1, size2, resolution_ns, gap_ns;
};

#define FIELD(name) offsetof(struct ppt_estimate_options, name)

/* clang-format off */
static const struct opt ppt_estimate_opts[] = {
	OPTION_PORT(FIELD(port), .help = "Destination port of the probes, where a capture has several UDP flows"),
	OPTION_SIZE1(FIELD(size1), .min = 1, .max = 65535,
		     .help = "Size of one kind of trailing packet on the wire, where the file has more than two; goes "
			     "with --size2"),
	OPTION_SIZE2(FIELD(size2), .min = 1, .max = 65535, .help = "Size of the other kind"),
	OPTION_CLOCK_RESOLUTION(FIELD(resolution_ns), NULL, "; without it, 1 ms, 1 us or 1 ns by the digits of the "
			"gaps"),
	{ .name = "inter-frame-gap", .type = OPT_DURATION, .offset = FIELD(gap_ns), .argument = "D", .min = 1,
	  .max = 1000000000,
	  .help = "Inter-frame gap of the end link; without it, 96 bit times at the estimated capacity" },
	{ 0 },
};
/* clang-format on */

static const struct opt_positional ppt_estimate_positionals[] = {
	{ .name = "FILE",
	  .offset = FIELD(file),
	  .help = "CSV with the first line `wire_bytes,gap_ns` or `wire_bytes,gap_us`, pcap or pcapng; -: standard "
		  "input" },
	{ 0 },
};

struct ppt_input {
	struct ppt_samples samples;
	struct ppt_train trains[2];
	struct ppt_capture_counts counts;
	bool capture;
	uint32_t resolution_ns;
};

/* Captures begin with one of these bytes, a CSV file with the `w` of its first line. */
static bool looks_like_capture(int first)
{
	return first == 0x0a || first == 0xa1 || first == 0xd4 || first == 0x4d || first == 0x34;
}

static int read_file(struct ppt_input *in, const struct ppt_estimate_options *o, struct ktrxer_error *err)
{
	const bool standard = strcmp(o->file, "-") == 0;
	const char *name = standard ? "standard input" : o->file;
	FILE *stream = standard ? stdin : fopen(o->file, "rbe");
	char word[80];
	int first, rc;

	if (!stream) {
		rc = -errno;
		return ktrxer_fail(err, rc, "%s: %s", name, ktrxer_strerror(rc, word, sizeof word));
	}
	first = getc(stream);
	ungetc(first, stream);
	in->capture = looks_like_capture(first);
	if (in->capture)
		return ppt_capture_read(&in->samples, stream, name, (uint16_t)o->port, &in->counts, err);
	rc = ppt_csv_read(&in->samples, stream, name, err);
	if (!standard)
		fclose(stream);
	return rc;
}

static void say_captured(struct cli *cli, const struct ppt_capture_counts *c)
{
	char from[KTRXER_ADDR_TEXT], to[KTRXER_ADDR_TEXT];

	out_text(cli,
		 "capture: %zu packets from %s port %u to %s port %u, heading packets of %u bytes on the wire; not "
		 "used: %zu heading and %zu trailing packets "
		 "alone, %zu probes with a clock that steps back, %zu with halves of different probes, %zu packets "
		 "without time, %zu of other flows",
		 c->packets, ktrxer_addr_format(&c->from, from), c->from_port, ktrxer_addr_format(&c->to, to),
		 c->to_port, c->compound.heading_bytes, c->compound.heading_alone, c->compound.trailing_alone,
		 c->compound.backwards, c->compound.split, c->no_time, c->other_flows);
}

static void say_train(struct cli *cli, const struct ppt_train *train, const struct ppt_gaps *gaps)
{
	char x[3][KTRXER_UNITS_TEXT];

	out_text(cli,
		 "trailing packets of %u bytes on the wire: %zu gaps, %zu after the filter (up to %s): mean %s, "
		 "standard deviation %s; left out: "
		 "%zu negative, %zu zero",
		 train->size_bytes, gaps->count, gaps->kept, ppt_ns_text(x[0], (double)gaps->limit_ns),
		 ppt_ns_text(x[1], gaps->average_ns), ppt_ns_text(x[2], gaps->sigma_ns), train->negative, train->zero);
}

static void capture_json(struct json *json, const struct ppt_capture_counts *c)
{
	char text[KTRXER_ADDR_TEXT];

	ppt_result_capture_open(json);
	ppt_capture_from(json, ktrxer_addr_format(&c->from, text));
	ppt_capture_from_port(json, c->from_port);
	ppt_capture_to(json, ktrxer_addr_format(&c->to, text));
	ppt_capture_to_port(json, c->to_port);
	ppt_capture_heading_wire_bytes(json, c->compound.heading_bytes);
	ppt_capture_packets(json, c->packets);
	ppt_capture_probes(json, c->compound.probes);
	ppt_capture_heading_alone(json, c->compound.heading_alone);
	ppt_capture_trailing_alone(json, c->compound.trailing_alone);
	ppt_capture_backwards(json, c->compound.backwards);
	ppt_capture_split(json, c->compound.split);
	ppt_capture_without_time(json, c->no_time);
	ppt_capture_other_flows(json, c->other_flows);
	ppt_capture_other_packets(json, c->other_packets);
	json_object_end(json);
}

static void train_json(struct json *json, const struct ppt_train *train, const struct ppt_gaps *gaps)
{
	json_object(json, NULL);
	ppt_train_trailing_wire_bytes(json, train->size_bytes);
	ppt_probes_gaps(json, gaps->count);
	ppt_probes_negative(json, train->negative);
	ppt_probes_zero(json, train->zero);
	ppt_gaps_json(json, gaps);
	json_object_end(json);
}

static void result_json(struct json *json, const struct ppt_input *in, const struct ppt_result *r)
{
	ppt_result_reading(json, ppt_reading_names[r->reading]);
	ppt_result_clock_resolution_ns(json, in->resolution_ns);
	if (in->capture)
		capture_json(json, &in->counts);
	ppt_result_trains_open(json);
	for (int i = 0; i < 2; i++)
		train_json(json, &in->trains[i], &r->gaps[i]);
	json_array_end(json);
	ppt_figures_json(json, r);
}

static int estimate(struct cli *cli, const struct ppt_estimate_options *o, struct ppt_input *in,
		    struct ktrxer_error *err)
{
	struct ppt_result r;
	struct json *json;
	int rc = read_file(in, o, err);

	if (rc < 0)
		return rc;
	in->resolution_ns = o->resolution_ns ? (uint32_t)o->resolution_ns
					     : ppt_resolution_ns(in->samples.gaps_ns, in->samples.count);
	rc = ppt_trains_split(in->trains, in->samples.sizes, in->samples.gaps_ns, in->samples.count, (uint32_t)o->size1,
			      (uint32_t)o->size2, err);
	if (rc < 0)
		return rc;
	rc = ppt_estimate(in->trains, in->resolution_ns, o->gap_ns ? (double)o->gap_ns : -1, &r, err);
	if (rc < 0)
		return rc;
	json = out_end(cli);
	if (in->capture)
		say_captured(cli, &in->counts);
	for (int i = 0; i < 2; i++)
		say_train(cli, &in->trains[i], &r.gaps[i]);
	ppt_say_reading(cli, "", &r);
	result_json(json, in, &r);
	rc = out_finish(cli, json);
	return r.reading == PPT_RESOLVED ? rc : EXIT_NO_RESULT;
}

static int run_ppt_estimate(struct cli *cli, const void *options)
{
	const struct ppt_estimate_options *o = options;
	struct ppt_input in = { 0 };
	struct ktrxer_error err = { 0 };
	int status;

	if (!o->size1 != !o->size2) {
		cli_complain(cli, "--size1 and --size2 go together");
		return EXIT_USAGE;
	}
	status = estimate(cli, o, &in, &err);
	ppt_samples_free(&in.samples);
	ppt_trains_free(in.trains);
	if (status < 0) {
		cli_complain(cli, "%s", err.text);
		return EXIT_NO_RESULT;
	}
	return status;
}

const struct command cmd_ppt_estimate = {
	.name = "ppt estimate",
	.summary = "End-link capacity and packet processing time from stored gaps of compound probes",
	.description = OPT_PROSE("A compound probe is a large packet, followed back to back by a small one; two trains "
				 "of probes differ in the size of the small packet. From the "
				 "gaps between the time stamps of both packets at the receiver this command estimates "
				 "the capacity of the receiver's link, and dPPT, the difference of the "
				 "processing times of both packets in the receiver (Salehin, Rojas-Cessa, Lin, Dong, "
				 "Kijkanjanarat). Sizes are bytes on the wire: the IP packet, 18 bytes "
				 "of Ethernet header and check sequence, 8 of preamble.\n\n"
				 "The method gives no processing time of one packet: PPT_t and PPT_h of the paper "
				 "equal 8 (s2 - s1) / c for every host, and are printed with this remark. "
				 "Gaps that do not depend on the size are reported as the receiver's service time, and "
				 "coalesced interrupts with their period; then there is no "
				 "estimate, and the exit status is 1."),
	.examples =
		"ktrxer ppt estimate gaps.csv\tEach line a size and a gap; the first line `wire_bytes,gap_ns`.\n"
		"ktrxer ppt estimate receiver.pcapng --port 9000\tProbes to UDP port 9000, captured at the receiver.\n"
		"ktrxer ppt estimate - --json <gaps.csv\tFor a program.\n",
	.options = ppt_estimate_opts,
	.positionals = ppt_estimate_positionals,
	.options_size = sizeof(struct ppt_estimate_options),
	.run = run_ppt_estimate,
	.reports = true,
};
