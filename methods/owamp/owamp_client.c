/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_client.h"

#include "bytes.h"
#include "clock_sync.h"
#include "error.h"
#include "name.h"
#include "owamp_delays.h"
#include "owamp_link.h"
#include "owamp_receiver.h"
#include "owamp_sender.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	RECORDS_OF_ONE = 4, /* packet, at most: its copies have records, too */
	DRIFT = 5000        /* 200 ppm: of two clocks against each other */
};
#define RECORD_NS (4 * (uint64_t)KTRXER_NS_PER_MS) /* for the 25 bytes of each packet's record: 50 kbit/s */
#define SOON_NS (500 * (uint64_t)KTRXER_NS_PER_MS) /* for the exchange with the server before the first packet */

struct client {
	struct loop_source source; /* of the control connection, while packets are sent */
	const struct owamp_client_options *o;
	struct owamp_client_result *result;
	struct owamp_link link;
	struct loop *loop;
	struct loop_timer end;
	int fds[OWAMP_WAYS];
	struct owamp_request requests[OWAMP_WAYS];
	struct owamp_sender *sender;
	struct owamp_receiver receiver;
	struct ktrxer_clock_pair clock;
	uint64_t start_ns, up_end_ns, down_end_ns;
	uint16_t error;
	bool sent_all, got_all, over; /* over: all packets have arrived, or their time-out has passed */
};

static const char *const accepts[] = {
	[OWAMP_FAILURE] = "without a reason",
	[OWAMP_INTERNAL] = "because of an internal error of the server",
	[OWAMP_NOT_SUPPORTED] = "because the server does not support the addresses, DSCP or size of the packets",
	[OWAMP_NEVER] = "because the number, rate or duration of the packets exceeds a limit of the server",
	[OWAMP_BUSY] = "because the server has no resources left: try later",
};

static int accepted(uint8_t accept, const char *what, struct ktrxer_error *err)
{
	if (accept == OWAMP_OK)
		return 0;
	return ktrxer_fail(err, -ECONNREFUSED, "the server refuses %s %s", what,
			   accept <= OWAMP_BUSY ? accepts[accept] : accepts[OWAMP_FAILURE]);
}

static int bad(const char *what, struct ktrxer_error *err)
{
	return ktrxer_fail(err, -EPROTO, "%s of the server is not that of OWAMP (RFC 4656)", what);
}

/* ------------------------------------------------------------------------------------------------------- connection */

static int greet(struct client *c, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_SETUP_BYTES];
	struct owamp_greeting greeting;
	struct owamp_start start;
	int rc = owamp_link_read(&c->link, data, OWAMP_GREETING_BYTES, err);

	if (rc < 0)
		return rc;
	if (owamp_greeting_read(&greeting, data) < 0)
		return bad("the greeting", err);
	if (!(greeting.modes & OWAMP_OPEN))
		return ktrxer_fail(err, -EACCES, "%s",
				   greeting.modes
					   ? "the server requires an authenticated mode of OWAMP, which this client "
					     "does not have"
					   : "the server does not serve this client");
	owamp_setup_write(data, OWAMP_OPEN);
	if ((rc = owamp_link_write(&c->link, data, OWAMP_SETUP_BYTES, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_START_BYTES, err)) < 0)
		return rc;
	return owamp_start_read(&start, data) < 0 ? bad("the start message", err)
						  : accepted(start.accept, "the connection", err);
}

/* --------------------------------------------------------------------------------------------------------- requests */

static int socket_open(struct client *c, int way, uint16_t *port, struct ktrxer_error *err)
{
	union ktrxer_name name;
	socklen_t length = ktrxer_name_make(&name, &c->link.local, 0);
	struct ktrxer_addr none;

	c->fds[way] = socket(c->link.local.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fds[way] < 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	owamp_socket_prepare(c->fds[way], c->link.local.family, c->o->dscp);
	if (bind(c->fds[way], &name.sa, length) != 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	length = sizeof name;
	if (getsockname(c->fds[way], &name.sa, &length) != 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	*port = ktrxer_name_read(&name, &none);
	return 0;
}

static int request(struct client *c, int way, struct ktrxer_error *err)
{
	const struct owamp_client_options *o = c->o;
	struct owamp_request *r = &c->requests[way];
	uint8_t data[OWAMP_REQUEST_BYTES + OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES] = { 0 };
	const bool up = way == OWAMP_UP;
	struct owamp_accepted answer;
	union ktrxer_name name;
	socklen_t length;
	int rc;

	*r = (struct owamp_request){
		.version = o->to.family == AF_INET6 ? 6 : 4,
		.conf_sender = !up,
		.conf_receiver = up,
		.slots = 1,
		.packets = o->packets,
		.padding = o->padding,
		.start = stamp_time_of_ns(c->clock.real_ns + (int64_t)(c->start_ns - c->clock.mono_ns), false),
		.timeout = owamp_time_of_ns(o->timeout_ns),
		.type_p = (uint32_t)o->dscp << 24
	};
	memcpy(r->sender, (up ? &c->link.local : &o->to)->bytes, 16);
	memcpy(r->receiver, (up ? &o->to : &c->link.local)->bytes, 16);
	rc = socket_open(c, way, up ? &r->sender_port : &r->receiver_port, err);
	if (rc < 0)
		return rc;
	/* The receiver chooses the identifier. */
	if (!up && getrandom(r->sid, sizeof r->sid, 0) != sizeof r->sid)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	owamp_request_write(data, r);
	owamp_slot_write(data + OWAMP_REQUEST_BYTES, &o->slot);
	if ((rc = owamp_link_write(&c->link, data, sizeof data, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_ACCEPT_BYTES, err)) < 0)
		return rc;
	if (owamp_accepted_read(&answer, data) < 0)
		return bad("the answer to a request", err);
	rc = accepted(answer.accept, up ? "the session up" : "the session down", err);
	if (rc < 0)
		return rc;
	if (up)
		memcpy(r->sid, answer.sid, OWAMP_SID);
	if (!answer.port)
		return bad("the port of a session", err);
	length = ktrxer_name_make(&name, &o->to, answer.port);
	return connect(c->fds[way], &name.sa, length) == 0
		       ? 0
		       : ktrxer_fail(err, -errno, "the test port of the server cannot be reached: %m");
}

/* ------------------------------------------------------------------------------------------------------------- test */

static void finish(struct client *c)
{
	c->over = true;
	loop_stop(c->loop);
}

static void on_sent(void *context)
{
	struct client *c = context;

	c->sent_all = true;
	c->up_end_ns = ktrxer_now_ns() + c->o->timeout_ns;
	c->end.at_ns = c->up_end_ns > c->down_end_ns || c->got_all ? c->up_end_ns : c->down_end_ns;
}

static void on_complete(void *context)
{
	struct client *c = context;

	c->got_all = true;
	if (!c->sender)
		finish(c);
	else if (c->sent_all)
		c->end.at_ns = c->up_end_ns;
}

static void end_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct client *c = (struct client *)((char *)timer - offsetof(struct client, end));

	(void)now_ns;
	timer->at_ns = KTRXER_NEVER;
	if (!c->sender || c->sent_all)
		finish(c);
}

/* The server stops the sessions, or the connection has ended: the next read shows which. */
static void control_ready(struct loop_source *source, uint32_t events)
{
	struct client *c = (struct client *)source;

	(void)events;
	c->result->stopped_by_peer = true;
	finish(c);
}

/* When the last packet down is due, and its time-out has passed. */
static int plan_down(struct client *c, struct ktrxer_error *err)
{
	struct owamp_schedule schedule;
	uint64_t at = 0;
	int rc = owamp_schedule_begin(&schedule, c->requests[OWAMP_DOWN].sid, &c->o->slot, 1);

	for (uint32_t i = 0; i < c->o->packets && rc == 0; i++)
		rc = owamp_schedule_next(&schedule, &at);
	owamp_schedule_end(&schedule);
	c->down_end_ns = c->start_ns + owamp_time_to_ns(at) + c->o->timeout_ns;
	c->end.at_ns = c->down_end_ns;
	return rc < 0 ? ktrxer_fail(err, rc, "the schedule of %u packets is not possible", c->o->packets) : 0;
}

static int begin_up(struct client *c, struct ktrxer_error *err)
{
	struct owamp_sender_options s = { .loop = c->loop,
					  .fd = c->fds[OWAMP_UP],
					  .slots = &c->o->slot,
					  .slot_count = 1,
					  .packets = c->o->packets,
					  .padding = c->o->padding,
					  .start_real_ns = c->clock.real_ns + (int64_t)(c->start_ns - c->clock.mono_ns),
					  .error = c->error,
					  .stamps = true,
					  .late_ns = c->o->late_ns,
					  .ended = on_sent,
					  .context = c };

	memcpy(s.sid, c->requests[OWAMP_UP].sid, OWAMP_SID);
	c->sender = calloc(1, sizeof *c->sender);
	return c->sender ? owamp_sender_begin(c->sender, &s, err)
			 : ktrxer_fail(err, -ENOMEM, "no memory for a session");
}

static int test(struct client *c, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_COMMAND_BYTES];
	int rc = 0;

	if (c->o->ways[OWAMP_DOWN]) {
		rc = owamp_receiver_begin(&c->receiver, c->loop, c->fds[OWAMP_DOWN], c->o->packets, c->error);
		c->receiver.complete = on_complete;
		c->receiver.context = c;
		rc = rc < 0 ? ktrxer_fail(err, rc, "no memory for a session") : plan_down(c, err);
	}
	owamp_command_write(data, OWAMP_START_SESSIONS);
	if (rc < 0 || (rc = owamp_link_write(&c->link, data, sizeof data, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, sizeof data, err)) < 0 ||
	    (rc = accepted(data[0], "the start of the sessions", err)) < 0)
		return rc;
	if (c->o->ways[OWAMP_UP] && (rc = begin_up(c, err)) < 0)
		return rc;
	c->source = (struct loop_source){ .fd = c->link.fd, .ready = control_ready };
	rc = loop_watch(c->loop, &c->source, EPOLLIN);
	if (rc == 0) {
		rc = loop_run(c->loop, c->o->stop_fd);
		loop_unwatch(c->loop, &c->source);
	}
	if (rc < 0)
		return ktrxer_fail(err, rc, "the event loop failed");
	/* The records so far are fetched also when the measurement is to stop. */
	c->result->stopped = !c->over;
	c->link.stop_fd = -1;
	c->link.patience_ns += c->o->packets * RECORD_NS;
	return 0;
}

/* ---------------------------------------------------------------------------------------------------------- records */

static int stop_write(struct client *c, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_STOP_BYTES + OWAMP_STOPPED_BYTES + OWAMP_SKIPS_MOST * OWAMP_SKIP_BYTES + OWAMP_BLOCK +
		     OWAMP_HMAC_BYTES] = { 0 };
	size_t length = OWAMP_STOP_BYTES;

	owamp_stop_write(data, OWAMP_OK, c->sender != NULL);
	if (c->sender) {
		struct owamp_stopped s = { .next = c->sender->next, .skips = c->sender->skips };

		owamp_sender_stop(c->sender);
		memcpy(s.sid, c->requests[OWAMP_UP].sid, OWAMP_SID);
		owamp_stopped_write(data + length, &s);
		for (uint32_t i = 0; i < s.skips; i++)
			owamp_skip_write(data + length + OWAMP_STOPPED_BYTES + (size_t)i * OWAMP_SKIP_BYTES,
					 &c->sender->skip[i]);
		length += owamp_padded(OWAMP_STOPPED_BYTES + (size_t)s.skips * OWAMP_SKIP_BYTES);
	}
	return owamp_link_write(&c->link, data, length + OWAMP_HMAC_BYTES, err);
}

/* Counts the packets of ranges, which are below `most`; the bytes up to the end of the block are read, too. */
static int skips_read(struct client *c, uint32_t skips, uint32_t most, size_t before, uint32_t *packets,
		      struct ktrxer_error *err)
{
	uint8_t data[OWAMP_BLOCK];
	const size_t bytes = (size_t)skips * OWAMP_SKIP_BYTES, rest = owamp_padded(before + bytes) - before - bytes;
	int rc = 0;

	*packets = 0;
	for (uint32_t i = 0; i < skips && rc == 0; i++) {
		struct owamp_skip skip;

		rc = owamp_link_read(&c->link, data, OWAMP_SKIP_BYTES, err);
		if (rc < 0)
			return rc;
		/* All ranges together have `most` packets at most, so that there are not more ranges. */
		if (owamp_skip_read(&skip, data) < 0 || skip.last >= most || skip.last - skip.first >= most - *packets)
			return bad("a range of packets that were not sent", err);
		*packets += skip.last - skip.first + 1;
	}
	return rc == 0 ? owamp_link_read(&c->link, data, rest, err) : rc;
}

static int stop_read(struct client *c, struct ktrxer_error *err)
{
	struct owamp_way *down = &c->result->ways[OWAMP_DOWN];
	uint8_t data[OWAMP_STOPPED_BYTES], accept;
	uint32_t sessions;
	int rc = owamp_link_read(&c->link, data, OWAMP_STOP_BYTES, err);

	if (rc < 0)
		return rc;
	if (owamp_stop_read(&accept, &sessions, data) < 0 || sessions != (c->o->ways[OWAMP_DOWN] ? 1 : 0))
		return bad("the stop message", err);
	if (sessions) {
		struct owamp_stopped stopped;

		rc = owamp_link_read(&c->link, data, OWAMP_STOPPED_BYTES, err);
		if (rc < 0)
			return rc;
		(void)owamp_stopped_read(&stopped, data);
		if (memcmp(stopped.sid, c->requests[OWAMP_DOWN].sid, OWAMP_SID) != 0 || stopped.next > c->o->packets ||
		    stopped.skips > stopped.next)
			return bad("the stop message", err);
		down->next = stopped.next;
		rc = skips_read(c, stopped.skips, stopped.next, OWAMP_STOPPED_BYTES, &down->skipped, err);
	}
	return rc == 0 ? owamp_link_read(&c->link, data, OWAMP_HMAC_BYTES, err) : rc;
}

static int records_read(struct client *c, struct owamp_way *up, uint32_t records, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_RECORD_BYTES];
	const size_t bytes = (size_t)records * OWAMP_RECORD_BYTES;
	int rc = 0;

	up->records = calloc(records ? records : 1, sizeof *up->records);
	if (!up->records)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u records", records);
	for (uint32_t i = 0; i < records && rc == 0; i++) {
		struct owamp_record *r = &up->records[up->count];

		rc = owamp_link_read(&c->link, data, OWAMP_RECORD_BYTES, err);
		if (rc < 0)
			return rc;
		owamp_record_read(r, data);
		if (r->seq >= c->o->packets)
			return bad("the number of a packet", err);
		up->count += r->received != 0;
	}
	return owamp_link_read(&c->link, data, owamp_padded(bytes) - bytes, err);
}

static int fetch(struct client *c, struct ktrxer_error *err)
{
	struct owamp_way *up = &c->result->ways[OWAMP_UP];
	struct owamp_fetch f = { .end = UINT32_MAX };
	uint8_t data[OWAMP_REQUEST_BYTES];
	struct owamp_fetched fetched;
	struct owamp_request again;
	int rc;

	memcpy(f.sid, c->requests[OWAMP_UP].sid, OWAMP_SID);
	owamp_fetch_write(data, &f);
	if ((rc = owamp_link_write(&c->link, data, OWAMP_FETCH_BYTES, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_COMMAND_BYTES, err)) < 0)
		return rc;
	/* Memory and time are bounded by what this host has sent, not by what a server claims. */
	if (owamp_fetched_read(&fetched, data) < 0 || fetched.records / RECORDS_OF_ONE > c->o->packets)
		return bad("the answer to the request for records", err);
	if ((rc = accepted(fetched.accept, "the records of the session", err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_REQUEST_BYTES, err)) < 0)
		return rc;
	if (owamp_request_read(&again, data) < 0 || again.slots > OWAMP_SLOTS_MOST)
		return bad("the request before the records", err);
	for (uint32_t i = 0; i <= again.slots && rc == 0; i++)
		rc = owamp_link_read(&c->link, data, OWAMP_SLOT_BYTES, err); /* the last one is the HMAC */
	if (rc == 0)
		rc = skips_read(c, fetched.skips, c->o->packets, 0, &up->skipped, err);
	if (rc == 0)
		rc = owamp_link_read(&c->link, data, OWAMP_HMAC_BYTES, err);
	if (rc == 0)
		rc = records_read(c, up, fetched.records, err);
	return rc == 0 ? owamp_link_read(&c->link, data, OWAMP_HMAC_BYTES, err) : rc;
}

/*
 * Lateness is that above the least one, because the offset of the server's clock is not known. Two clocks that are not
 * synchronised drift apart.
 */
static int server_lateness(struct client *c, struct owamp_way *down)
{
	const struct owamp_receiver *r = &c->receiver;
	int64_t *due_ns = calloc(c->o->packets, sizeof *due_ns), least_ns = INT64_MAX;
	struct owamp_times times;
	struct owamp_schedule schedule;
	uint64_t at = 0;
	int rc = due_ns ? owamp_schedule_begin(&schedule, c->requests[OWAMP_DOWN].sid, &c->o->slot, 1) : -ENOMEM;

	for (uint32_t i = 0; i < c->o->packets && rc == 0; i++) {
		rc = owamp_schedule_next(&schedule, &at);
		due_ns[i] = (int64_t)owamp_time_to_ns(at);
	}
	if (due_ns)
		owamp_schedule_end(&schedule);
	for (int pass = 0; pass < 2 && rc == 0; pass++)
		for (uint32_t i = 0; i < r->count; i++) {
			const int64_t at_ns = due_ns[r->records[i].seq];
			int64_t late_ns;

			if (!owamp_record_times(&r->records[i], NULL, &times))
				continue;
			late_ns = times.sent_ns - at_ns - (pass ? least_ns : 0);
			if (!pass) {
				least_ns = late_ns < least_ns ? late_ns : least_ns;
			} else if (late_ns > (int64_t)c->o->late_ns + at_ns / DRIFT) {
				down->late++;
				if ((uint64_t)late_ns > down->late_most_ns)
					down->late_most_ns = (uint64_t)late_ns;
			}
		}
	free(due_ns);
	return rc;
}

/* The counts and records of this host's sender and receiver become the result's. */
static int collect(struct client *c)
{
	struct owamp_way *up = &c->result->ways[OWAMP_UP], *down = &c->result->ways[OWAMP_DOWN];
	int rc = 0;

	if (c->sender) {
		const uint32_t sent = c->sender->sent, left = c->sender->left < sent ? c->sender->left : sent;

		up->next = c->sender->next;
		up->sched_real_ns = c->sender->sched_real_ns;
		up->skipped = up->next - sent; /* of the ranges there are OWAMP_SKIPS_MOST at most */
		up->accounts = (struct ktx_accounts){ .requested = up->next,
						      .tries = up->next,
						      .sent = sent,
						      .failed = up->skipped,
						      .last_error = -c->sender->error,
						      .driver = left,
						      .queued = sent - left,
						      .stamps_missing = sent - left,
						      .late = c->sender->late };
		up->lateness = c->sender->lateness;
		c->sender->sched_real_ns = NULL;
		c->sender->lateness = NULL;
	}
	if (c->o->ways[OWAMP_DOWN]) {
		owamp_receiver_drain(&c->receiver);
		rc = server_lateness(c, down);
		down->records = c->receiver.records;
		down->count = c->receiver.count;
		down->socket_drops = c->receiver.socket_drops;
		down->user_stamped = c->receiver.user_stamped;
		down->ignored = c->receiver.ignored;
		c->receiver.records = NULL;
	}
	return rc;
}

/* ---------------------------------------------------------------------------------------------------------- the run */

static void clock_read(struct client *c)
{
	struct stamp_error error = { 0 };
	struct clock_sync sync;

	ktrxer_clock_pair_read(&c->clock);
	clock_sync_read(&sync);
	error.synchronised = sync.synchronised;
	error.bound_ns = sync.bound_ns;
	c->error = stamp_error_write(&error);
	c->start_ns = c->clock.mono_ns + SOON_NS;
	if (c->o->start_ns > c->start_ns)
		c->start_ns = c->o->start_ns;
}

static int run(struct client *c, struct ktrxer_error *err)
{
	int rc = owamp_link_open(&c->link, &c->o->to, &c->o->from, c->o->port, c->o->stop_fd, err);

	if (rc == 0)
		rc = greet(c, err);
	clock_read(c);
	for (int way = 0; way < OWAMP_WAYS && rc == 0; way++)
		if (c->o->ways[way])
			rc = request(c, way, err);
	if (rc == 0)
		rc = test(c, err);
	if (rc == 0)
		rc = stop_write(c, err);
	if (rc == 0)
		rc = stop_read(c, err);
	if (rc == 0 && c->sender)
		rc = fetch(c, err);
	if (rc == 0 && (rc = collect(c)) < 0)
		ktrxer_fail(err, rc, "no memory for the times of %u packets", c->o->packets);
	for (int way = 0; way < OWAMP_WAYS; way++)
		c->result->ways[way].measured = rc == 0 && c->o->ways[way];
	return rc;
}

int owamp_client_run(struct owamp_client_result *result, const struct owamp_client_options *options,
		     struct ktrxer_error *err)
{
	struct client c = { .o = options,
			    .result = result,
			    .link = { .fd = -1 },
			    .fds = { -1, -1 },
			    .end = { .at_ns = KTRXER_NEVER, .due = end_due } };
	const uint64_t began_ns = ktrxer_now_ns();
	int rc = loop_new(&c.loop);

	*result = (struct owamp_client_result){ 0 };
	if (rc < 0)
		return ktrxer_fail(err, rc, "no event loop");
	loop_timer_add(c.loop, &c.end);
	rc = run(&c, err);
	result->lasted_ns = ktrxer_now_ns() - began_ns;
	if (c.sender)
		owamp_sender_end(c.sender);
	free(c.sender);
	owamp_receiver_end(&c.receiver);
	for (int way = 0; way < OWAMP_WAYS; way++)
		if (c.fds[way] >= 0)
			close(c.fds[way]);
	owamp_link_close(&c.link);
	loop_timer_remove(c.loop, &c.end);
	loop_free(c.loop);
	return rc;
}

void owamp_client_free(struct owamp_client_result *result)
{
	for (int way = 0; way < OWAMP_WAYS; way++) {
		free(result->ways[way].records);
		free(result->ways[way].sched_real_ns);
		ktrxer_hist_free(result->ways[way].lateness);
	}
	*result = (struct owamp_client_result){ 0 };
}
