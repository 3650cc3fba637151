/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ping.h"

#include "bytes.h"
#include "echo_replies.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

struct ping {
	struct prober p;
	struct ping_spec spec;
	struct ping_events events;
	struct echo_table *table;
	uint8_t proto;
	uint64_t secret; /* in each payload: a reply without it is forged */
};

static bool commit(void *client, uint64_t at_ns)
{
	struct ping *ping = client;
	struct prober *p = &ping->p;
	const uint64_t number = p->result.committed;
	struct ktx_probe probe = { .id = number, .length = p->frame.length, .at_ns = at_ns };
	struct ktrxer_error err;
	struct ktx_slot slot;

	if (ktx_reserve(p->tx, &slot) < 0 || echo_table_commit(ping->table, number) < 0)
		return false;
	template_fill(&p->frame, slot.frame, number);
	if (ktx_commit(p->tx, &probe, &err) < 0) {
		prober_fail(p, err.code, err.text);
		return false;
	}
	return true;
}

static void answer(void *client, enum echo_event event, const struct echo_result *r)
{
	struct ping *ping = client;

	if (event == ECHO_NOTHING || event == ECHO_FOREIGN)
		return;
	if (event == ECHO_ROUND_TRIP && !prober_record(&ping->p, r->rtt_ns, r->own_queue_ns, r->sent_source, r->source))
		return;
	ping->events.answer(ping->events.probe.context, event, r);
}

static void take_reports(struct ping *ping)
{
	struct ktx_report reports[32];
	struct echo_result result;
	int n;

	do {
		n = ktx_reports(ping->p.tx, reports, 32);
		for (int i = 0; i < n; i++)
			answer(ping, echo_table_report(ping->table, &reports[i], &result), &result);
	} while (prober_more(&ping->p, n, 32));
}

static void take(void *client)
{
	struct ping *ping = client;
	uint64_t number;

	take_reports(ping);
	echo_replies_take(&ping->p, ping->table, ping->proto, answer);
	while (echo_table_lost(ping->table, ktrxer_now_ns(), &number))
		ping->p.events.lost(ping->p.events.context, number, 0);
}

static bool ended(void *client)
{
	const struct ping *ping = client;
	struct echo_counts c;

	/* Count the reports that were read. The accounts also count probes whose reports are still unread. */
	echo_table_counts(ping->table, &c);
	return c.sent + c.failed == ping->p.result.committed && !c.waiting;
}

static uint64_t next_loss(void *client)
{
	const struct ping *ping = client;

	return echo_table_next_loss(ping->table);
}

void ping_run(struct ping *ping, uint64_t start_ns, int stop_fd, const struct ping_events *events)
{
	ping->events = *events;
	prober_run(&ping->p, start_ns, stop_fd, &events->probe);
}

#ifndef KTRXER_SMALL
void ping_join(struct ping *ping, struct prober *leader, const struct ping_events *events)
{
	ping->events = *events;
	prober_join(leader, &ping->p, &events->probe);
}
#endif

static int make_frame(void *client, struct ktrxer_error *err)
{
	struct ping *ping = client;
	const struct probe_spec *s = &ping->spec.probe;
	struct ktrxer_frame_spec frame = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = ping->p.path;
	uint8_t *payload = calloc(1, s->payload + ECHO_PAYLOAD_FULL);
	int rc;

	if (!payload)
		return ktrxer_fail(err, -ENOMEM, "no memory for a payload of %u bytes", s->payload);
	store_be64(payload + 8, ping->secret);
	path.device.link = ping->p.info.link;
	frame.path = &path;
	frame.proto = ping->proto;
	frame.from_port = ping->p.id;
	frame.to_port = ping->spec.udp ? s->port : 0;
	frame.tos = ping->spec.tos;
	frame.ttl = s->ttl;
	frame.payload = payload;
	frame.payload_length = s->payload;
	rc = template_make(&ping->p.frame, &frame, err);
	free(payload);
	return rc;
}

static uint32_t window_for(const struct probe_spec *s)
{
	const uint64_t waiting = s->timeout_ns / s->interval_ns * 2 + 16;
	uint32_t window = 32;

	while (window < waiting && window < 65536)
		window <<= 1;
	return window;
}

int ping_new(struct ping **out, const struct ping_spec *spec, struct ktrxer_error *err)
{
	static const struct prober_client client = {
		.commit = commit, .take = take, .ended = ended, .next_loss = next_loss
	};
	const struct probe_spec *s = &spec->probe;
	struct ping *ping = calloc(1, sizeof *ping);
	int rc;

	*out = ping;
	if (!ping)
		return ktrxer_fail(err, -ENOMEM, "no memory for a client");
	ping->spec = *spec;
	ping->p.work = &client;
	ping->p.client = ping;
	ping->proto = spec->udp ? KTRXER_UDP : s->to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP;
	if ((rc = prober_begin(&ping->p, s, 1, err)) < 0)
		return rc;
	ping->secret = load_be64(ping->p.seed);
	if (echo_table_new(&ping->table, window_for(s), s->timeout_ns, s->overtaken_ns,
			   s->payload < ECHO_PAYLOAD_FULL ? 0 : ping->secret, !spec->udp) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
	if ((rc = prober_open(&ping->p, 64, 14 + 40 + 8 + s->payload, err)) < 0 ||
	    (rc = prober_identify(&ping->p, make_frame, err)) < 0)
		return rc;
	return prober_listen(&ping->p, ping->proto, ECHO_REPLY_SNAP, err);
}

void ping_counts(const struct ping *ping, struct echo_counts *counts)
{
	echo_table_counts(ping->table, counts);
}

const struct prober *ping_prober(const struct ping *ping)
{
	return &ping->p;
}

void ping_free(struct ping *ping)
{
	if (!ping)
		return;
	prober_close(&ping->p);
	echo_table_free(ping->table);
	free(ping);
}
