/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "client_log.h"

#include "fields_serve.h"
#include "serve_control.h"

#include <inttypes.h>

enum {
	KTRXER_LOG_RATE = 1,      /* lines a second about the clients of one /24 or /56 */
	KTRXER_LOG_BURST = 20,    /* so many at once */
	KTRXER_LOG_ALL_RATE = 20, /* about all clients without the token: 250 MB a day at most */
	KTRXER_LOG_ALL_BURST = 200,
};

#define STAMP_WAIT_NS (5 * (uint64_t)KTRXER_NS_PER_S) /* the reflector's table is reviewed in 4 s */

struct amount {
	uint64_t bytes[2], packets[2]; /* [0] received, [1] sent */
	uint64_t began_ns, ended_ns;
	const char *end;
};

int client_log_open(struct client_log *log, struct cli *cli, uint64_t secret)
{
	*log = (struct client_log){ .cli = cli };
	return limiter_new(&log->limiter, KTRXER_LOG_RATE, KTRXER_LOG_BURST, secret);
}

void client_log_close(struct client_log *log)
{
	limiter_free(log->limiter);
	log->limiter = NULL;
}

static bool admitted(struct client_log *log, const struct ktrxer_addr *from, bool proven)
{
	const uint64_t now_ns = ktrxer_now_ns(), line_ns = KTRXER_NS_PER_S / KTRXER_LOG_ALL_RATE;

	if (limiter_take(log->limiter, from, 1, now_ns) &&
	    (proven || limiter_bucket_take(&log->full_ns, line_ns, KTRXER_LOG_ALL_BURST * line_ns, now_ns)))
		return true;
	log->left_out++;
	return false;
}

static struct json *event_begin(struct client_log *log, const char *address, const char *action)
{
	struct json *json = out_event(log->cli, "client_ended");

	if (!json)
		return NULL;
	serve_client_address(json, address);
	serve_client_action(json, action);
	return json;
}

static void event_end(struct client_log *log, struct json *json, const struct amount *a)
{
	serve_client_bytes_in(json, a->bytes[0]);
	serve_client_bytes_out(json, a->bytes[1]);
	serve_client_packets_in(json, a->packets[0]);
	serve_client_packets_out(json, a->packets[1]);
	serve_client_duration_ns(json, a->ended_ns - a->began_ns);
	serve_client_end(json, a->end);
	serve_client_left_out_before(json, log->left_out - log->reported);
	log->reported = log->left_out;
	out_put(log->cli, json);
}

static void text_of(struct client_log *log, const char *address, const char *action, const struct amount *a)
{
	const uint64_t ms = (a->ended_ns - a->began_ns) / KTRXER_NS_PER_MS;
	char before[64] = "";

	if (log->left_out != log->reported)
		snprintf(before, sizeof before, "; %" PRIu64 " lines left out before", log->left_out - log->reported);
	out_text(log->cli,
		 "client %s: %s, %" PRIu64 " bytes in, %" PRIu64 " bytes out, %" PRIu64 ".%" PRIu64 " s: %s%s", address,
		 action, a->bytes[0], a->bytes[1], ms / 1000, ms % 1000 / 100, a->end, before);
}

static const char *end_of(const struct serve_client *c)
{
	if (c->refused != CONTROL_OK)
		return control_refusal_names[c->refused];
	return c->lost ? "lost" : c->proven ? "finished" : "not_authenticated";
}

void client_log_flows(void *context, const struct serve_client *c)
{
	const struct amount a = { .bytes = { c->bytes[0], c->bytes[1] },
				  .packets = { c->packets[0], c->packets[1] },
				  .began_ns = c->began_ns,
				  .ended_ns = c->ended_ns,
				  .end = end_of(c) };
	const uint32_t up = c->flows[0][0] + c->flows[0][1], down = c->flows[1][0] + c->flows[1][1];
	struct client_log *log = context;
	char address[KTRXER_ADDR_TEXT], action[64];
	struct json *json;

	if (!admitted(log, &c->from, c->proven))
		return;
	ktrxer_addr_format(&c->from, address);
	snprintf(action, sizeof action, "%" PRIu32 " flows up, %" PRIu32 " down", up, down);
	text_of(log, address, action, &a);
	json = event_begin(log, address, "flows");
	if (!json)
		return;
	serve_client_flows_up(json, up);
	serve_client_flows_down(json, down);
	serve_client_udp_flows(json, c->flows[0][1] + (uint64_t)c->flows[1][1]);
	event_end(log, json, &a);
}

static void stamp_line(struct client_log *log, struct client_log_stamp *s)
{
	static const char *const ends[REFLECTOR_ENDS] = { [REFLECTOR_IDLE] = "idle",
							  [REFLECTOR_RESTARTED] = "restarted",
							  [REFLECTOR_DISPLACED] = "displaced",
							  [REFLECTOR_STOPPED] = "stopping" };
	const struct reflector_client *c = &s->client;
	const struct amount a = { .bytes = { c->bytes, c->bytes },
				  .packets = { s->answers, s->answers },
				  .began_ns = c->began_ns,
				  .ended_ns = c->seen_ns,
				  .end = ends[c->end] };
	const uint32_t sessions = s->sessions;
	char address[KTRXER_ADDR_TEXT], action[64];
	struct json *json;

	s->sessions = 0;
	if (!admitted(log, &c->from, false))
		return;
	ktrxer_addr_format(&c->from, address);
	if (sessions == 1)
		snprintf(action, sizeof action, "STAMP from port %u, %" PRIu64 " answers", c->from_port, s->answers);
	else
		snprintf(action, sizeof action, "STAMP, %" PRIu32 " sessions, %" PRIu64 " answers", sessions,
			 s->answers);
	text_of(log, address, action, &a);
	json = event_begin(log, address, "stamp");
	if (!json)
		return;
	serve_client_port(json, c->from_port);
	serve_client_sessions(json, sessions);
	event_end(log, json, &a);
}

void client_log_review(struct client_log *log, bool all, uint64_t now_ns)
{
	for (int i = 0; i < CLIENT_LOG_STAMPS; i++)
		if (log->stamps[i].sessions && (all || now_ns > log->stamps[i].noted_ns + STAMP_WAIT_NS))
			stamp_line(log, &log->stamps[i]);
}

/* Sessions of one client: they ended for the same reason, and at some time there were both. */
static bool together(const struct reflector_client *c, const struct reflector_client *d)
{
	return c->end == d->end && ktrxer_addr_equal(&c->from, &d->from) && c->began_ns <= d->seen_ns &&
	       d->began_ns <= c->seen_ns;
}

void client_log_stamp(void *context, const struct reflector_client *c)
{
	struct client_log *log = context;
	struct client_log_stamp *place = &log->stamps[0], *s = NULL;

	for (int i = 0; i < CLIENT_LOG_STAMPS; i++) {
		s = &log->stamps[i];
		if (s->sessions && together(&s->client, c)) {
			s->sessions++;
			s->answers += c->answers;
			s->client.bytes += c->bytes;
			if (c->from_port < s->client.from_port)
				s->client.from_port = c->from_port;
			if (c->began_ns < s->client.began_ns)
				s->client.began_ns = c->began_ns;
			if (c->seen_ns > s->client.seen_ns)
				s->client.seen_ns = c->seen_ns;
			return;
		}
		if (place->sessions && (!s->sessions || s->noted_ns < place->noted_ns))
			place = s;
	}
	if (place->sessions)
		stamp_line(log, place);
	*place = (struct client_log_stamp){
		.client = *c, .answers = c->answers, .sessions = 1, .noted_ns = ktrxer_now_ns()
	};
}
