/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_echo.h"

#include "bytes.h"
#include "echo_replies.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SLOTS = 64, HEADERS = 14 + 40 + 8, TTL = 64 };

/*
 * The probes at a send time are the two packets of one pair. Send time n has the size n % 2, and the packets have the
 * numbers 2 n and 2 n + 1.
 */
struct run {
	struct prober p;
	const struct train_echo_options *o;
	struct train_echo *echo;
	struct template frames[2]; /* one for each size */
	struct echo_table *table;
	uint8_t proto;
	uint64_t secret;
};

static struct pair_times *pair_of(const struct run *run, uint64_t number)
{
	return &run->echo->times[number / 2 % 2][number / 4];
}

static bool commit_one(struct run *run, uint64_t number, uint64_t at_ns)
{
	const struct template *frame = &run->frames[number / 2 % 2];
	struct ktx_probe probe = {
		.id = number, .length = frame->length, .at_ns = at_ns, .flags = number % 2 ? 0 : KTX_TRAIN_GOES_ON
	};
	struct ktrxer_error err;
	struct ktx_slot slot;

	if (ktx_reserve(run->p.tx, &slot) < 0 || echo_table_commit(run->table, number) < 0)
		return false;
	template_fill(frame, slot.frame, number);
	if (ktx_commit(run->p.tx, &probe, &err) == 0)
		return true;
	prober_fail(&run->p, err.code, err.text);
	return false;
}

static bool commit(void *client, uint64_t at_ns)
{
	struct run *run = client;

	for (; run->p.part < 2; run->p.part++)
		if (!commit_one(run, 2 * run->p.result.committed + run->p.part, at_ns))
			return false;
	run->p.part = 0;
	return true;
}

static void arrived(void *client, enum echo_event event, const struct echo_result *r)
{
	if (event == ECHO_ROUND_TRIP && r->source)
		pair_of(client, r->number)->arrived_ns[r->number % 2] = r->received_ns;
}

static void take_reports(struct run *run)
{
	struct ktx_report reports[32];
	struct echo_result result;
	int n;

	do {
		n = ktx_reports(run->p.tx, reports, 32);
		for (int i = 0; i < n; i++) {
			const struct ktx_report *r = &reports[i];

			/* The driver's stamp: the own queue is not a part of the path. */
			if (r->status == KTX_SENT)
				pair_of(run, r->id)->sent_ns[r->id % 2] =
					r->departure_ns ? r->departure_ns : r->sent_ns;
			arrived(run, echo_table_report(run->table, r, &result), &result);
		}
	} while (prober_more(&run->p, n, 32));
}

static void take(void *client)
{
	struct run *run = client;
	uint64_t number;

	take_reports(run);
	echo_replies_take(&run->p, run->table, run->proto, arrived);
	while (echo_table_lost(run->table, ktrxer_now_ns(), &number))
		;
}

static bool ended(void *client)
{
	const struct run *run = client;
	struct echo_counts c;

	echo_table_counts(run->table, &c);
	return c.sent + c.failed == 2 * run->p.result.committed + run->p.part && !c.waiting;
}

static uint64_t next_loss(void *client)
{
	return echo_table_next_loss(((const struct run *)client)->table);
}

static int make_frame(struct run *run, struct template *t, uint32_t length, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec frame = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->p.path;
	uint8_t *payload = calloc(1, length);
	int rc;

	if (!payload)
		return ktrxer_fail(err, -ENOMEM, "no memory for a payload of %u bytes", length);
	store_be64(payload + ECHO_PAYLOAD_NUMBER, run->secret);
	path.device.link = run->p.info.link;
	frame.path = &path;
	frame.proto = run->proto;
	frame.from_port = run->p.id;
	frame.ttl = run->o->probe.ttl ? run->o->probe.ttl : TTL;
	frame.payload = payload;
	frame.payload_length = length;
	template_free(t);
	rc = template_make(t, &frame, err);
	free(payload);
	return rc;
}

static int make_frames(void *client, struct ktrxer_error *err)
{
	struct run *run = client;
	int rc = make_frame(run, &run->p.frame, run->o->payloads[0], err);

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = make_frame(run, &run->frames[i], run->o->payloads[i], err);
	return rc;
}

static uint32_t window_for(const struct probe_spec *s)
{
	const uint64_t waiting = s->timeout_ns / s->interval_ns * 4 + 32;
	uint32_t window = 64;

	while (window < waiting && window < 65536)
		window <<= 1;
	return window;
}

static int open_all(struct run *run, struct ktrxer_error *err)
{
	const uint32_t *payloads = run->o->payloads, large = payloads[payloads[1] > payloads[0]];
	struct probe_spec spec = run->o->probe;
	int rc;

	spec.payload = large;
	spec.count *= 2; /* both sizes */
	if ((rc = prober_begin(&run->p, &spec, 2, err)) < 0)
		return rc;
	for (int i = 0; i < 2; i++) {
		run->echo->times[i] = calloc(run->o->probe.count, sizeof *run->echo->times[i]);
		if (!run->echo->times[i])
			return ktrxer_fail(err, -ENOMEM, "no memory for the times of %llu pairs",
					   (unsigned long long)run->o->probe.count);
	}
	run->secret = load_be64(run->p.seed);
	if (echo_table_new(&run->table, window_for(&spec), spec.timeout_ns, 0, run->secret, true) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
	if ((rc = prober_open(&run->p, SLOTS, HEADERS + large, err)) < 0 ||
	    (rc = prober_identify(&run->p, make_frames, err)) < 0)
		return rc;
	return prober_listen(&run->p, run->proto, ECHO_REPLY_SNAP, err);
}

int train_echo_run(struct train_echo *echo, const struct train_echo_options *o, struct ktrxer_error *err)
{
	static const struct prober_client client = {
		.commit = commit, .take = take, .ended = ended, .next_loss = next_loss
	};
	static const struct probe_events events = { 0 };
	struct run run = { .o = o,
			   .echo = echo,
			   .proto = o->probe.to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP };
	int rc;

	*echo = (struct train_echo){ 0 };
	run.p.work = &client;
	run.p.client = &run;
	rc = open_all(&run, err);
	if (rc == 0) {
		prober_run(&run.p, o->start_ns, o->stop_fd, &events);
		echo->stopped = run.p.result.stopped;
		echo->info = run.p.info;
		echo->qdiscs = run.p.result.qdiscs;
		echo->late_packets = run.p.result.accounts.late;
		if (run.p.result.failure.code) {
			*err = run.p.result.failure;
			rc = err->code;
		}
	}
	echo->path = run.p.result.path;
	prober_close(&run.p);
	echo_table_free(run.table);
	template_free(&run.frames[0]);
	template_free(&run.frames[1]);
	return rc;
}

void train_echo_free(struct train_echo *echo)
{
	free(echo->times[0]);
	free(echo->times[1]);
	*echo = (struct train_echo){ 0 };
}
