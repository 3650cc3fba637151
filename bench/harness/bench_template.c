/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A turn of a template: one frame whose number, source port and checksum differ from probe to probe, as fast as it
 * goes. Where the engine makes the frames itself it shares them among its threads, else each thread here has a
 * transmitter, and takes numbers in chunks.
 */
#include "bench.h"

#include "error.h"
#include "template.h"
#include "thread.h"

#include <errno.h>
#include <poll.h>

enum { THREADS_MAX = 64, CHUNK = 1024, FROM_PORT = 41000, SLOTS = 2048 };

struct team {
	struct bench_run *run;
	uint64_t end_ns;
	pthread_mutex_t lock;
	uint64_t next; /* the first number that no thread has */
};

struct member {
	struct team *team;
	struct ktx *tx;
	struct ktx_template *made;
	pthread_t thread;
	struct ktrxer_error err;
};

static int member_template(struct member *m, uint16_t port, const struct bench_job *job, uint32_t number,
			   struct ktrxer_error *err)
{
	const struct ktx_vary fields[] = {
		{ .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .width = 8 },
		{ .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_COUNTER, .from = 1024 },
	};
	struct ktx_template_options o = KTX_TEMPLATE_OPTIONS_INIT;
	struct template probe;
	struct ktx_info info;
	int rc = bench_frame(m->team->run, m->tx, &probe, port, (uint16_t)(FROM_PORT + number), job->payload, err);

	if (rc < 0)
		return rc;
	ktx_info(m->tx, &info);
	o.frame = probe.frame;
	o.length = probe.length;
	o.link = info.link;
	o.fields = fields;
	o.field_count = info.features & KTX_CAN_UNPRIVILEGED ? 1 : 2; /* the host's own sockets have one port each */
	rc = ktx_template_new(&m->made, &o, err);
	template_free(&probe);
	return rc;
}

static int member_open(struct member *m, const struct bench_who *who, const struct bench_job *job, uint16_t port,
		       uint32_t number, struct ktrxer_error *err)
{
	struct ktx_options t = KTX_OPTIONS_INIT;
	int rc;

	t.device = m->team->run->net.near_device;
	t.engine = who->engine_name;
	t.purpose = KTX_FOR_RATE;
	t.flags = KTX_NO_STAMPS;
	t.queue = number;
	t.slots = SLOTS;
	t.frame_size = 14 + 40 + 8 + job->payload;
	t.reports = KTX_REPORT_NONE;
	rc = ktx_open(&m->tx, &t, err);
	return rc < 0 ? rc : member_template(m, port, job, number, err);
}

static bool is_over(const struct team *team)
{
	return cli_stopped(team->run->cli) || ktrxer_now_ns() >= team->end_ns;
}

static void rest(const struct member *m)
{
	struct pollfd fds[2] = { { .fd = m->team->run->cli->stop_fd, .events = POLLIN },
				 { .fd = ktx_fd(m->tx), .events = POLLIN } };

	poll(fds, 2, 100);
}

static void *member_main(void *context)
{
	struct member *m = context;
	struct team *team = m->team;

	while (!is_over(team)) {
		struct ktx_range range = KTX_RANGE_INIT;

		pthread_mutex_lock(&team->lock);
		range.next = team->next;
		team->next += range.left = CHUNK;
		pthread_mutex_unlock(&team->lock);
		while (range.left && !cli_stopped(team->run->cli)) {
			int rc = ktx_template_send(m->tx, m->made, &range, &m->err);

			if (rc == -EAGAIN)
				rest(m);
			else if (rc < 0)
				return NULL;
		}
	}
	return NULL;
}

static int by_engine(struct member *m, uint32_t threads, struct ktrxer_error *err)
{
	struct ktx_range range = KTX_RANGE_INIT;
	int rc;

	range.threads = threads;
	rc = ktx_template_send(m->tx, m->made, &range, err);
	while (rc == 0 && !is_over(m->team))
		ktx_drain(m->tx, ktrxer_now_ns() + 10 * KTRXER_NS_PER_MS);
	ktx_cancel(m->tx);
	return rc;
}

static int by_members(struct member *members, uint32_t count, struct ktrxer_error *err)
{
	uint32_t started = 1;
	int rc = 0;

	for (; rc == 0 && started < count; started++)
		rc = cli_thread_start(&members[started].thread, "bench", member_main, &members[started]);
	if (rc < 0) {
		members[0].team->end_ns = 0;
		started--;
		ktrxer_fail(err, rc, "no thread for the bench");
	}
	member_main(&members[0]);
	for (uint32_t i = 1; i < started; i++)
		pthread_join(members[i].thread, NULL);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		if ((rc = members[i].err.code) < 0)
			*err = members[i].err;
	return rc;
}

static int members_end(struct member *members, uint32_t count, struct bench_turn *turn, struct ktrxer_error *err)
{
	int rc = 0;

	turn->sent = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct ktx_accounts a;

		if (members[i].tx) {
			ktx_drain(members[i].tx, ktrxer_now_ns() + 2 * KTRXER_NS_PER_S);
			ktx_accounts(members[i].tx, &a);
			turn->sent += a.sent;
			if (a.pending)
				rc = ktrxer_fail(err, -ETIMEDOUT, "%llu probes were still open 2 s after the end",
						 (unsigned long long)a.pending);
		}
		ktx_close(members[i].tx);
		ktx_template_free(members[i].made);
	}
	return rc;
}

int bench_send_template(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, uint16_t port,
			struct bench_turn *turn, struct ktrxer_error *err)
{
	const uint32_t threads = job->threads < THREADS_MAX ? job->threads : THREADS_MAX;
	struct team team = { .run = run, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct member members[THREADS_MAX] = { 0 };
	struct ktrxer_error ignored;
	struct ktx_info info;
	uint32_t count = 1;
	int rc, end;

	members[0].team = &team;
	rc = member_open(&members[0], who, job, port, 0, err);
	if (rc == 0) {
		ktx_info(members[0].tx, &info);
		while (rc == 0 && !(info.features & KTX_CAN_TEMPLATE) && count < threads) {
			members[count].team = &team;
			rc = member_open(&members[count], who, job, port, count, err);
			count++;
		}
		team.end_ns = ktrxer_now_ns() + job->for_ns;
		if (rc == 0)
			rc = info.features & KTX_CAN_TEMPLATE ? by_engine(&members[0], threads, err)
							      : by_members(members, count, err);
	}
	end = members_end(members, count, turn, rc < 0 ? &ignored : err);
	return rc < 0 ? rc : end;
}
