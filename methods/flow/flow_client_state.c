/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The states of the client of flows. */
#include "flow_client_state.h"

#include "flow_tcp.h"

#define AHEAD_NS (20 * (uint64_t)KTRXER_NS_PER_MS)
/* TCP repeats a lost last segment after two round trips and 200 ms (RFC 8985, section 7.2). */
#define REPEAT_NS (200 * (uint64_t)KTRXER_NS_PER_MS)

int flow_client_describe(const struct flow_client *c, struct ktrxer_error *err, const struct flow_failure *failure)
{
	return c->options.describe(err, &c->options, failure);
}

void flow_client_describe_gone(struct flow_client *c, int error, bool greeted)
{
	flow_client_describe(c, &c->result.error,
			     &(struct flow_failure){ .kind = FLOW_LINK_GONE, .error = error, .greeted = greeted });
}

void flow_client_done(struct flow_client *c)
{
	if (c->state == CLIENT_DONE)
		return;
	c->state = CLIENT_DONE;
	c->timer.at_ns = KTRXER_NEVER;
	clock_offset_settle(c->clock);
	clock_offset_result(c->clock, CLOCK_OFFSET_OPEN, &c->result.clock);
	c->result.clock_bound_ns =
		clock_offset_line_bound(c->clock, CLOCK_OFFSET_OPEN, c->result.start_ns, c->result.clock.to_ns);
	c->result.remote_missing = c->flows && c->result.started ? c->options.request.flows - c->heard_count : 0;
	c->options.done(c->options.context);
}

void flow_client_state_set(struct flow_client *c, enum client_state state, uint64_t limit_ns)
{
	c->state = (uint8_t)state;
	c->deadline_ns = c->timer.at_ns = ktrxer_now_ns() + limit_ns;
}

void flow_client_fail(struct flow_client *c)
{
	if (c->flows)
		flow_set_stop(c->flows);
	flow_client_done(c);
}

void flow_client_ping(struct flow_client *c)
{
	uint8_t *body = control_link_begin(&c->link, CONTROL_FIRST_MAX);
	const uint64_t now_ns = ktrxer_now_ns();

	/* The path has no queue before the load: clock samples from now on serve for the whole load. */
	c->ping_ns = now_ns + (uint64_t)KTRXER_NS_PER_S / (now_ns < c->result.start_ns ? 4 : 1);
	if (body)
		control_link_send(&c->link, CONTROL_PING, control_time_write(body, now_ns));
}

static int64_t offset_at(const struct flow_client *c, uint64_t at_ns)
{
	return clock_offset_line(&c->result.clock, at_ns);
}

void flow_client_end_when_reported(struct flow_client *c)
{
	if (c->state != CLIENT_DRAINING || c->heard_count < c->options.request.flows)
		return;
	if (c->link_gone || c->stopping) {
		flow_client_done(c);
		return;
	}
	flow_client_state_set(c, CLIENT_FINAL_SYNC, FLOW_CLIENT_TIMING_NS);
	c->pongs = 0;
	flow_client_ping(c);
}

void flow_client_start(struct flow_client *c)
{
	const uint64_t now_ns = ktrxer_now_ns(), requested = c->options.start_ns,
		       soonest = now_ns + c->result.rtt_ns + AHEAD_NS;
	/* An unset start leaves time for one repetition. */
	const uint64_t at_ns = requested > soonest ? requested
			       : requested         ? soonest
						   : soonest + 2 * c->result.rtt_ns + REPEAT_NS;
	uint8_t *body = control_link_begin(&c->link, CONTROL_FIRST_MAX);

	if (body)
		control_link_send(&c->link, CONTROL_START,
				  control_time_write(body, at_ns + (uint64_t)offset_at(c, at_ns)));
	c->repeats = flow_tcp_repeats(c->link.source.fd);
	c->state = CLIENT_RUNNING;
	c->result.started = true;
	c->result.start_ns = at_ns;
	c->deadline_ns = KTRXER_NEVER;
	c->timer.at_ns = c->ping_ns;
	if (c->options.started)
		c->options.started(c->options.context, at_ns, requested && at_ns > requested ? at_ns - requested : 0);
	flow_set_start(c->flows, at_ns);
}
