/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer abw`: available bandwidth of the tight link as a range, in both directions. */
#include "abw_command.h"

#include "error.h"

#include <errno.h>

#define FIELD(name) offsetof(struct abw_command_options, name)
#define TRAIN_FIELD(name) FIELD(train.name)

enum { PAYLOAD_LEAST = ABW_BYTES_LEAST, PAYLOAD_USUAL = 1472 };

static const struct opt abw_opts[] = {
	TRAIN_OPTION_DIRECTION(TRAIN_FIELD, .fallback = "both", .heading = "Probes"),
	{ .name = "method",
	  .type = OPT_CHOICE,
	  .offset = FIELD(method),
	  .argument = "M",
	  .fallback = "auto",
	  .choices = abw_methods,
	  .help = "slops: streams at one rate, a search over rates (pathload); chirp: trains of growing rate "
		  "(pathChirp); auto: streams at several rates, and the share of the time in which the queues are "
		  "empty" },
	{ .name = "max-load",
	  .type = OPT_BITRATE,
	  .offset = FIELD(max_load_bps),
	  .argument = "BITRATE",
	  .min = 10000,
	  .max = 100000000000,
	  .help = "Highest mean rate of the probes of each step; with a lower one the measurement takes longer" },
	OPTION_PAYLOAD(FIELD(payload), OPT_SIZE, .argument = "BYTES", .min = PAYLOAD_LEAST, .max = FLOW_PAYLOAD_MAX,
		       .help = "Bytes of payload of the large packets, by default as many as the MTU allows and 1472 "
			       "at most"),
	TRAIN_OPTIONS_HOW(TRAIN_FIELD, "probes"),
	{ 0 },
};

static const struct opt_positional abw_positionals[] = {
	TRAIN_POSITIONAL_HOST(TRAIN_FIELD),
	{ 0 },
};

static int plan(struct abw_run *run, struct ktrxer_error *err)
{
	const struct abw_command_options *o = run->o;
	const uint32_t head = train_run_head(&run->train), room = train_run_room(&run->train);
	const uint32_t large = o->payload ? (uint32_t)o->payload : room < PAYLOAD_USUAL ? room : PAYLOAD_USUAL;

	if (large > room || large < PAYLOAD_LEAST)
		return ktrxer_fail(
			err, -EINVAL,
			"the MTU of %u on '%s' leaves room for payloads of %u bytes: `abw` needs %u to %u of "
			"them (--payload)",
			run->train.path.mtu, run->train.path.device.name, room, PAYLOAD_LEAST, room);
	run->estimate = (struct abw_options){ .method = (enum abw_method)o->method,
					      .large_bytes = large + head,
					      .small_bytes = FLOW_PACKET_HEAD + head,
					      .max_load_bit_s = (double)o->max_load_bps,
					      .resolution_ns = TRAIN_RESOLUTION_NS };
	return 0;
}

static int measure(struct abw_run *run, enum train_way way, struct ktrxer_error *err)
{
	struct abw_way *w = &run->ways[way];
	int rc;

	*w = (struct abw_way){ .run = run, .way = way, .wanted = true };
	w->trains.step = abw_say_step;
	w->trains.context = w;
	rc = abw_begin(&w->trains.abw, &run->estimate);
	if (rc < 0)
		return ktrxer_fail(err, rc, "large packets of %u bytes and small ones of %u do not fit the method",
				   run->estimate.large_bytes, run->estimate.small_bytes);
	rc = train_abw_run(&w->trains, &run->train.plan, way == TRAIN_DOWN, train_run_head(&run->train), err);
	w->measured = rc == 0;
	run->train.plan.start_ns = 0;
	return rc;
}

static int measure_all(struct abw_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = train_run_prepare(&run->train, &err);

	if (rc < 0 || (rc = plan(run, &err)) < 0)
		return cli_fail(run->train.cli, &err);
	abw_say_what(run);
	if (train_run_wait(&run->train) < 0)
		return EXIT_NO_RESULT;
	for (int way = 0; way < TRAIN_WAYS && rc == 0; way++)
		if (train_run_wants(&run->o->train, (enum train_way)way) && !run->ways[TRAIN_UP].trains.stopped)
			rc = measure(run, (enum train_way)way, &err);
	return rc < 0 ? cli_fail(run->train.cli, &err) : abw_finish(run);
}

static int run_abw(struct cli *cli, const void *options)
{
	const struct abw_command_options *o = options;
	struct abw_run run = { .train = { .cli = cli, .o = &o->train }, .o = o };
	const int status = measure_all(&run);

	for (int way = 0; way < TRAIN_WAYS; way++)
		abw_end(&run.ways[way].trains.abw);
	train_run_free(&run.train);
	return status;
}

const struct command cmd_abw = {
	.name = "abw",
	.summary = "Available bandwidth of the tight link as a range, in both directions",
	.description = OPT_PROSE(
		"Measures how many bits a second of IP packets a path takes in addition to the traffic that it has, "
		"between this host and one where `ktrxer serve` runs. The tight link, which has the least available "
		"bandwidth of the path, decides (RFC 5136). The result is a range, because cross traffic varies, and "
		"holds for the seconds in which the probes were sent. Rates are those of IP packets of the large "
		"size.\n\n"
		"The method auto sends packets back to back, which gives the capacity of the narrow link and the noise "
		"of the time stamps; then small probes at exact times, whose delays show in which share of the time "
		"all queues are empty; then a burst of 64 packets, which shows a shaper whose bucket is smaller; then "
		"streams at several rates around the bend, above which the delay grows. The bend and the growth give "
		"the available bandwidth of the tight link, which may be another one than the narrow link. The links "
		"serve packets in order. The streams end when the range is narrow, or after 12 rates.\n\n"
		"The method slops is pathload's: fleets of 12 streams of 100 packets at one rate, a trend of the "
		"delays in each, a binary search over rates. It sends more bytes, "
		"and takes up to minutes on slow links. The method chirp is pathChirp's, which is known to be biased: "
		"its result is degraded at best.\n\n"
		"The load of the probes on the path is printed. Without a range the result is invalid, with the "
		"cause.\n\n"
		"The server requires its token; the token is never transmitted."),
	.examples = OPT_PROSE(
		"ktrxer abw far --token-file token\tBoth directions, some seconds each.\n"
		"ktrxer abw far --direction up --max-load 500k --token-file token\tNo step loads the path with "
		"more than 500 kbit/s on average.\n"
		"ktrxer abw far --method slops --json --token-file token\tBy pathload's method.\n"),
	.options = abw_opts,
	.positionals = abw_positionals,
	.options_size = sizeof(struct abw_command_options),
	.run = run_abw,
	.measures = true,
};
