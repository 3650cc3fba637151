/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_client_state.h"

#include "error.h"
#include "flow_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* TCP repeats the first segment (SYN) after 1, 3, 7, 15 s before Linux 6.5. */
#define SYN_NS (16 * (uint64_t)KTRXER_NS_PER_S)
/* A connection that stands has half a minute in all for its first answer: TCP repeats that, too. */
#define GREETING_NS (14 * (uint64_t)KTRXER_NS_PER_S)

static void too_long(struct flow_client *c)
{
	static const char *const awaited[] = {
		[CLIENT_GREETING] =
			("it took the connection, and no answer came within 30 s: it is not `ktrxer serve`, or "
			 "the path loses many packets"),
		[CLIENT_ASKING] = "it did not answer the request",
		[CLIENT_TELLING] = "it did not take note of the flows",
		[CLIENT_CONNECTING] = "it did not find all flows connected",
		[CLIENT_TIMING] = "it did not answer the exchange of clocks",
	};
	char host[KTRXER_ADDR_TEXT];

	switch (c->state) {
	case CLIENT_GREETING:
		if (!c->waits_on && flow_connect_established(c->link.source.fd)) {
			c->waits_on = true;
			flow_client_state_set(c, CLIENT_GREETING, GREETING_NS);
			return;
		}
		break;
	case CLIENT_TIMING:
		if (c->pongs) {
			flow_client_start(c);
			return;
		}
		break;
	case CLIENT_RUNNING:
		flow_client_fail(c); /* the server is gone */
		return;
	case CLIENT_DRAINING:
		/* A full queue on the path delays its messages; while any arrive, wait for the rest. */
		if (!c->link_gone && !c->stopping && ktrxer_now_ns() - c->link.heard_ns < FLOW_CLIENT_SILENCE_NS &&
		    ktrxer_now_ns() - c->over_ns < 3 * FLOW_CLIENT_SILENCE_NS) {
			c->deadline_ns = c->link.heard_ns + FLOW_CLIENT_SILENCE_NS;
			return;
		}
		flow_client_done(c);
		return;
	case CLIENT_FINAL_SYNC:
	case CLIENT_DONE:
		flow_client_done(c);
		return;
	default:
		break;
	}
	if (c->state == CLIENT_GREETING && !flow_connect_established(c->link.source.fd))
		flow_client_describe(c, &c->result.error,
				     &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = -ETIMEDOUT });
	else
		ktrxer_fail(&c->result.error, -ETIMEDOUT, "%s port %u: %s", ktrxer_addr_format(&c->options.to, host),
			    c->options.port, awaited[c->state]);
	flow_client_fail(c);
}

static void client_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct flow_client *c = (struct flow_client *)((char *)timer - offsetof(struct flow_client, timer));
	bool pings;

	if (c->state == CLIENT_DRAINING)
		flow_client_end_when_reported(c);
	if (c->deadline_ns <= now_ns)
		too_long(c);
	if (c->state == CLIENT_DONE)
		return;
	pings = !c->link_gone && (c->state == CLIENT_RUNNING || c->state == CLIENT_DRAINING ||
				  (c->state == CLIENT_CONNECTING && c->registers));
	if (pings && c->ping_ns <= now_ns)
		flow_client_ping(c);
	timer->at_ns = pings && c->ping_ns < c->deadline_ns ? c->ping_ns : c->deadline_ns;
}

void flow_client_stop(struct flow_client *c)
{
	if (c->state == CLIENT_DONE)
		return;
	c->stopping = true;
	if (!c->result.started || c->link_gone) {
		flow_client_fail(c);
		return;
	}
	control_link_say(&c->link, CONTROL_STOP);
	flow_set_stop(c->flows);
	if (c->state == CLIENT_RUNNING) /* none was running any more */
		c->state = CLIENT_DRAINING;
	c->deadline_ns = c->timer.at_ns = ktrxer_now_ns() + 2 * (uint64_t)KTRXER_NS_PER_S;
	flow_client_end_when_reported(c);
}

int flow_client_new(struct flow_client **out, const struct flow_client_options *o, struct ktrxer_error *err)
{
	struct flow_client *c = calloc(1, sizeof *c);
	const uint32_t count = o->request.flows;
	struct control_preface mine = { .kind = CONTROL_CLIENT, .version = CONTROL_VERSION };
	int rc = -ENOMEM, fd;

	*out = c;
	if (!c)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u flows", count);
	c->link.source.fd = -1;
	c->options = *o;
	c->token = *o->token;
	c->specs = calloc(count, sizeof *c->specs);
	c->heard = calloc(count, sizeof *c->heard);
	c->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = client_due };
	loop_timer_add(o->loop, &c->timer);
	if (!c->specs || !c->heard || flow_history_new(&c->history, count) < 0 || clock_offset_new(&c->clock) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u flows", count);
	memcpy(c->specs, o->specs, count * sizeof *c->specs);
	c->options.specs = c->specs;
	if (getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	control_preface_write(c->preface, &mine);
	fd = flow_connect_socket(&o->to, &o->from, o->port, NULL, &rc);
	if (fd < 0)
		return flow_client_describe(c, err, &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = rc });
	c->link.preface = flow_client_on_preface;
	c->link.frame = flow_client_on_frame;
	c->link.closed = flow_client_on_closed;
	c->link.out_limit = count / CONTROL_RECORDS * CONTROL_BODY_MAX + 4 * CONTROL_BODY_MAX;
	rc = control_link_open(&c->link, o->loop, fd);
	if (rc == 0)
		rc = control_link_bytes(&c->link, c->preface, sizeof c->preface);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the event loop does not take a socket");
	flow_client_state_set(c, CLIENT_GREETING, SYN_NS);
	return 0;
}

void flow_client_free(struct flow_client *c)
{
	if (!c)
		return;
	if (c->link.keyed && c->link.source.fd >= 0 && !c->link_gone)
		control_link_say(&c->link, CONTROL_BYE);
	flow_connect_free(c->connect);
	flow_register_free(c->registers);
	flow_set_free(c->flows);
	control_link_close(&c->link);
	loop_timer_remove(c->options.loop, &c->timer);
	flow_history_free(&c->history);
	clock_offset_free(c->clock);
	secret_forget(&c->token, sizeof c->token);
	free(c->specs);
	free(c->heard);
	free(c);
}

void flow_client_result(const struct flow_client *c, struct flow_client_result *result)
{
	*result = c->result;
	result->control_known = c->link.source.fd >= 0 && flow_tcp_traffic(c->link.source.fd, &result->control_up_bytes,
									   &result->control_down_bytes);
}

void flow_client_witness(const struct flow_client *c)
{
	for (uint32_t i = 0; c->options.witness && c->flows && i < flow_set_count(c->flows); i++)
		flow_udp_witness(flow_set_at(c->flows, i), c->options.witness);
}

struct ktrxer_hist *flow_client_lateness(const struct flow_client *c, uint32_t flow, struct ktx_accounts *accounts)
{
	return flow_udp_lateness(flow_set_at(c->flows, flow), accounts);
}

bool flow_client_engine(const struct flow_client *c, uint32_t flow, struct ktx_info *info, struct ktrxer_qdiscs *q)
{
	return flow_udp_engine(flow_set_at(c->flows, flow), info, q);
}
