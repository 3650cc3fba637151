/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_client_state.h"

#include "clock_sync.h"
#include "error.h"
#include "message.h"
#include "name.h"
#include "path_find.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define RECORD_NS (4 * (uint64_t)KTRXER_NS_PER_MS) /* for the 25 bytes of each packet's record: 50 kbit/s */
/* The exchange with the server before the first packet: three round trips, and time to compute. */
enum { ROUND_TRIPS = 4 };
#define SOON_NS (500 * (uint64_t)KTRXER_NS_PER_MS)
/* A last packet that leaves late has its time-out, too. */
#define LATE_NS (100 * (uint64_t)KTRXER_NS_PER_MS)

/* ------------------------------------------------------------------------------------------------------- connection */

static int greet(struct owamp_client *c, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_SETUP_BYTES];
	struct owamp_greeting greeting;
	struct owamp_start start;
	uint64_t begin_ns;
	int rc = owamp_link_read(&c->link, data, OWAMP_GREETING_BYTES, err);

	if (rc < 0)
		return rc;
	if (owamp_greeting_read(&greeting, data) < 0)
		return owamp_link_bad("the greeting", err);
	if (!(greeting.modes & OWAMP_OPEN))
		return ktrxer_fail(err, -EACCES, "%s",
				   greeting.modes
					   ? "the server requires an authenticated mode of OWAMP, which this client "
					     "does not have"
					   : "the server does not serve this client");
	owamp_setup_write(data, OWAMP_OPEN);
	begin_ns = ktrxer_now_ns();
	if ((rc = owamp_link_write(&c->link, data, OWAMP_SETUP_BYTES, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_START_BYTES, err)) < 0)
		return rc;
	c->round_trip_ns = ktrxer_now_ns() - begin_ns;
	/* TCP repeats a lost segment after three round trips, at first, then after six. */
	c->link.patience_ns += c->round_trip_ns < OWAMP_PATIENCE_NS / 3 ? 9 * c->round_trip_ns : 3 * OWAMP_PATIENCE_NS;
	(void)owamp_start_read(&start, data);
	return owamp_link_accepted(start.accept, "the connection", err);
}

/* --------------------------------------------------------------------------------------------------------- requests */

static void on_sent(void *context);

static int sender_open(struct owamp_client *c, uint16_t *port, struct ktrxer_error *err)
{
	const struct owamp_sender_options o = { .loop = c->loop,
						.from = c->link.local,
						.to = c->o->to,
						.dscp = c->o->dscp,
						.padding = c->o->padding,
						.late_ns = c->o->late_ns,
						.timeout_ns = c->o->timeout_ns,
						.zeros = c->o->zeros,
						.client = true,
						.ended = on_sent,
						.context = c };
	int rc;

	c->sender = calloc(1, sizeof *c->sender);
	rc = c->sender ? owamp_sender_open(c->sender, &o, err) : ktrxer_fail(err, -ENOMEM, "no memory for a session");
	if (rc == 0)
		*port = c->sender->port;
	return rc;
}

static int socket_open(struct owamp_client *c, uint16_t *port, struct ktrxer_error *err)
{
	union ktrxer_name name;
	socklen_t length = ktrxer_name_make(&name, &c->link.local, 0);
	struct ktrxer_addr none;

	c->fd = socket(c->link.local.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	owamp_socket_prepare(c->fd, c->link.local.family);
	ktrxer_message_enable_device(c->fd, c->link.local.family);
	if (bind(c->fd, &name.sa, length) != 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	length = sizeof name;
	if (getsockname(c->fd, &name.sa, &length) != 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	*port = ktrxer_name_read(&name, &none);
	return 0;
}

static int request(struct owamp_client *c, int way, struct ktrxer_error *err)
{
	const struct owamp_client_options *o = c->o;
	struct owamp_request *r = &c->requests[way];
	uint8_t data[OWAMP_REQUEST_BYTES + OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES] = { 0 };
	const bool up = way == OWAMP_UP;
	struct owamp_accepted answer;
	union ktrxer_name name;
	socklen_t length;
	int rc;

	*r = (struct owamp_request){ .version = o->to.family == AF_INET6 ? 6 : 4,
				     .conf_sender = !up,
				     .conf_receiver = up,
				     .slots = 1,
				     .packets = o->packets,
				     .padding = o->padding,
				     .start = stamp_time_of_ns(owamp_client_start_real_ns(c), false),
				     .timeout = owamp_time_of_ns(o->timeout_ns),
				     .type_p = (uint32_t)o->dscp << 24 };
	memcpy(r->sender, (up ? &c->link.local : &o->to)->bytes, 16);
	memcpy(r->receiver, (up ? &o->to : &c->link.local)->bytes, 16);
	rc = up ? sender_open(c, &r->sender_port, err) : socket_open(c, &r->receiver_port, err);
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
	(void)owamp_accepted_read(&answer, data);
	rc = owamp_link_accepted(answer.accept, up ? "the session up" : "the session down", err);
	if (rc < 0)
		return rc;
	if (!answer.port)
		return owamp_link_bad("the port of a session", err);
	if (up) {
		memcpy(r->sid, answer.sid, OWAMP_SID);
		r->receiver_port = answer.port;
		return 0;
	}
	length = ktrxer_name_make(&name, &o->to, answer.port);
	return connect(c->fd, &name.sa, length) == 0
		       ? 0
		       : ktrxer_fail(err, -errno, "the test port of the server cannot be reached: %m");
}

/* ------------------------------------------------------------------------------------------------------------- test */

static void finish(struct owamp_client *c)
{
	c->over = true;
	loop_stop(c->loop);
}

static void on_sent(void *context)
{
	struct owamp_client *c = context;

	c->sent_all = true;
	c->up_end_ns = ktrxer_now_ns() + c->o->timeout_ns + LATE_NS;
	c->end.at_ns = c->up_end_ns > c->down_end_ns || c->got_all ? c->up_end_ns : c->down_end_ns;
}

static void on_complete(void *context)
{
	struct owamp_client *c = context;

	c->got_all = true;
	if (!c->sender)
		finish(c);
	else if (c->sent_all)
		c->end.at_ns = c->up_end_ns;
}

static void end_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct owamp_client *c = (struct owamp_client *)((char *)timer - offsetof(struct owamp_client, end));

	(void)now_ns;
	timer->at_ns = KTRXER_NEVER;
	if (!c->sender || c->sent_all)
		finish(c);
}

/* The server stops the sessions, or the connection has ended: the next read shows which. */
static void control_ready(struct loop_source *source, uint32_t events)
{
	struct owamp_client *c = (struct owamp_client *)source;

	(void)events;
	c->result->stopped_by_peer = true;
	finish(c);
}

/* When the last packet down is due, and its time-out has passed. */
static int plan_down(struct owamp_client *c, struct ktrxer_error *err)
{
	struct owamp_schedule schedule;
	uint64_t at = 0;
	int rc = owamp_schedule_begin(&schedule, c->requests[OWAMP_DOWN].sid, &c->o->slot, 1);

	for (uint32_t i = 0; i < c->o->packets && rc == 0; i++)
		rc = owamp_schedule_next(&schedule, &at);
	owamp_schedule_end(&schedule);
	c->down_end_ns = c->start_ns + owamp_time_to_ns(at) + c->o->timeout_ns + LATE_NS;
	c->end.at_ns = c->down_end_ns;
	return rc < 0 ? ktrxer_fail(err, rc, "the schedule of %u packets is not possible", c->o->packets) : 0;
}

static int begin_up(struct owamp_client *c, struct ktrxer_error *err)
{
	struct owamp_sender_plan plan = { .to_port = c->requests[OWAMP_UP].receiver_port,
					  .slots = &c->o->slot,
					  .slot_count = 1,
					  .packets = c->o->packets,
					  .start_real_ns = owamp_client_start_real_ns(c),
					  .error = c->error };

	memcpy(plan.sid, c->requests[OWAMP_UP].sid, OWAMP_SID);
	return owamp_sender_begin(c->sender, &plan, err);
}

static int test(struct owamp_client *c, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_COMMAND_BYTES];
	int rc = 0;

	if (c->o->ways[OWAMP_DOWN]) {
		rc = owamp_receiver_begin(&c->receiver, c->loop, c->fd, c->o->packets, c->error);
		c->receiver.complete = on_complete;
		c->receiver.witness = &c->result->path;
		c->receiver.context = c;
		rc = rc < 0 ? ktrxer_fail(err, rc, "no memory for a session") : plan_down(c, err);
	}
	owamp_command_write(data, OWAMP_START_SESSIONS);
	if (rc < 0 || (rc = owamp_link_write(&c->link, data, sizeof data, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, sizeof data, err)) < 0 ||
	    (rc = owamp_link_accepted(data[0], "the start of the sessions", err)) < 0)
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

/* ---------------------------------------------------------------------------------------------------------- the run */

static void clock_read(struct owamp_client *c)
{
	struct stamp_error error = { 0 };
	struct clock_sync sync;

	ktrxer_clock_pair_read(&c->clock);
	clock_sync_read(&sync);
	error.synchronised = sync.synchronised;
	error.bound_ns = sync.bound_ns;
	c->error = stamp_error_write(&error);
	c->start_ns = c->clock.mono_ns + SOON_NS + ROUND_TRIPS * c->round_trip_ns;
	if (c->o->start_ns > c->start_ns)
		c->start_ns = c->o->start_ns;
}

static int run(struct owamp_client *c, struct ktrxer_error *err)
{
	int rc = owamp_link_open(&c->link, &c->o->to, &c->o->from, c->o->port, c->o->stop_fd, err);

	if (rc == 0)
		rc = greet(c, err);
	clock_read(c);
	if (rc == 0)
		rc = path_find(&c->result->route, NULL, &c->link.local, &c->o->to, false, err);
	for (int way = 0; way < OWAMP_WAYS && rc == 0; way++)
		if (c->o->ways[way])
			rc = request(c, way, err);
	if (rc == 0)
		rc = test(c, err);
	if (rc == 0)
		rc = owamp_records_stop(c, err);
	if (rc == 0 && c->o->ways[OWAMP_DOWN])
		rc = owamp_records_judge(c, err);
	if (rc == 0)
		rc = owamp_records_stopped(c, err);
	if (rc == 0 && c->sender)
		rc = owamp_records_fetch(c, err);
	if (rc == 0)
		owamp_records_collect(c);
	for (int way = 0; way < OWAMP_WAYS; way++)
		c->result->ways[way].measured = rc == 0 && c->o->ways[way];
	return rc;
}

int owamp_client_run(struct owamp_client_result *result, const struct owamp_client_options *options,
		     struct ktrxer_error *err)
{
	struct owamp_client c = { .o = options,
				  .result = result,
				  .link = { .fd = -1 },
				  .fd = -1,
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
	owamp_judge_end(&c.judge);
	owamp_receiver_end(&c.receiver);
	if (c.fd >= 0)
		close(c.fd);
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
