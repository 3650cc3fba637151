/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sending itself. Each worker has a transmitter of its own. With a schedule a worker of N sends every N-th train of it, each knowing
 * the whole schedule; without one they take numbers in chunks, from one counter.
 */
#include "send.h"

#include "network_error.h"
#include "thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Commit no further ahead than this: what is stopped early should not have promised hours of probes. */
#define AHEAD_NS (500 * KTRXER_NS_PER_MS)

enum { CHUNK = 1024, COMMIT_NICE = -19 };

static void read_reports(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct ktx_network_error errors[8];
	struct ktx_report reports[64];

	for (int n; (n = ktx_reports(worker->tx, reports, 64)) > 0;) {
		pthread_mutex_lock(&run->lock);
		for (int i = 0; i < n; i++)
			send_report(run, &reports[i]);
		pthread_mutex_unlock(&run->lock);
	}
	for (int n; (n = ktx_network_errors(worker->tx, errors, 8)) > 0;)
		for (int i = 0; i < n; i++)
			network_error_say(run->cli, &errors[i], false, &worker->network_errors);
}

/* Until the transmitter, or a wish to stop, or `until_ns`. */
static void rest(struct send_worker *worker, uint64_t until_ns)
{
	struct pollfd fds[2] = { { .fd = worker->run->cli->stop_fd, .events = POLLIN }, { .fd = ktx_fd(worker->tx), .events = POLLIN } };
	uint64_t now = ktrxer_now_ns(), span;
	struct timespec t;

	if (until_ns <= now)
		return;
	span = until_ns - now > (uint64_t)KTRXER_NS_PER_S ? (uint64_t)KTRXER_NS_PER_S : until_ns - now;
	t = (struct timespec){ .tv_sec = (time_t)(span / KTRXER_NS_PER_S), .tv_nsec = (long)(span % KTRXER_NS_PER_S) };
	ppoll(fds, 2, &t, NULL);
}

static void fail(struct send_worker *worker, const struct ktrxer_error *err)
{
	worker->failure = err->code;
	memcpy(worker->failure_text, err->text, sizeof worker->failure_text);
}

/* ------------------------------------------------------------------------------------------------------ with a schedule */

/* What goes out next, and when. */
struct item {
	struct ktrxer_deadline due;
	bool timed;
};

/* 0, or -ENODATA when there is no more, or what ended it (and was noted). */
static int item_next(struct send_worker *worker, struct item *item)
{
	struct send_run *run = worker->run;
	struct ktrxer_error err = { 0 };
	uint64_t offset;
	int rc;

	*item = (struct item){ .timed = true, .due.index = worker->next };
	if (run->o->pcap) {
		rc = send_replay_next(run, &offset, &err);
		if (rc < 0 && rc != -ENODATA && !cli_stopped(run->cli)) /* a pipe that we stopped listening to is no damaged file */
			fail(worker, &err);
		if (rc < 0)
			return rc;
		if (!worker->schedule)
			item->due.at_ns = offset > UINT64_MAX - run->start_ns ? UINT64_MAX - 1 : run->start_ns + offset;
	}
	while (worker->schedule) {
		rc = ktrxer_schedule_next(worker->schedule, &item->due);
		/* The others know the same schedule, and send the other trains. */
		if (rc < 0 || item->due.index / run->o->train % run->workers_count == worker->number)
			return rc;
	}
	return 0;
}

/* 0: committed. -EAGAIN: no room. Else: what ended it. */
static int commit_next(struct send_worker *worker, const struct item *item)
{
	struct send_run *run = worker->run;
	struct ktx_probe probe = { .id = item->due.index, .length = worker->probe.length, .at_ns = item->due.at_ns };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int rc = ktx_reserve(worker->tx, &slot);

	if (rc < 0)
		return rc;
	probe.flags = item->due.train_goes_on && item->due.index + 1 < run->wanted ? KTX_TRAIN_GOES_ON : 0;
	if (run->o->pcap) {
		probe.length = run->replay.packet.length;
		memcpy(slot.frame, run->replay.packet.data, probe.length);
	} else {
		ktx_template_fill(worker->made, slot.frame, item->due.index);
	}
	rc = ktx_commit(worker->tx, &probe, &err);
	if (rc < 0) {
		fail(worker, &err);
		return rc;
	}
	worker->next = item->due.index + 1;
	worker->committed++;
	return 0;
}

static void send_timed(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct item item;
	bool have = false;

	while (worker->next < run->wanted && !cli_stopped(run->cli)) {
		int rc;

		if (!have && item_next(worker, &item) < 0)
			break;
		have = true;
		if (item.due.at_ns >= run->end_ns || item.due.index >= run->wanted)
			break;
		if (item.due.at_ns > ktrxer_now_ns() + AHEAD_NS) {
			read_reports(worker);
			rest(worker, item.due.at_ns - AHEAD_NS / 2);
			if (item.due.at_ns > ktrxer_now_ns() + AHEAD_NS)
				continue;
		}
		rc = commit_next(worker, &item);
		if (rc == -EAGAIN) {
			read_reports(worker);
			rest(worker, KTRXER_NEVER);
			continue;
		}
		if (rc < 0)
			break;
		have = false;
	}
}

/* ------------------------------------------------------------------------------------------------------ as fast as it goes */

/* The next chunk that no worker has taken; a chunk once taken is sent, even when the time is over meanwhile, so that no number is left out. */
static bool chunk_take(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	const uint64_t most = run->workers_count > 1 ? CHUNK : run->wanted;

	pthread_mutex_lock(&run->lock);
	worker->next = run->next_chunk;
	worker->chunk_left = run->wanted - run->next_chunk < most ? run->wanted - run->next_chunk : most;
	run->next_chunk += worker->chunk_left;
	pthread_mutex_unlock(&run->lock);
	return worker->chunk_left > 0;
}

static bool time_is_over(const struct send_worker *worker)
{
	return cli_stopped(worker->run->cli) || ktrxer_now_ns() >= worker->run->end_ns;
}

static void send_fast(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct ktx_range range = KTX_RANGE_INIT;
	struct ktrxer_error err;
	int rc = 0;

	range.threads = (uint32_t)run->o->threads;
	while (worker->chunk_left || (!time_is_over(worker) && chunk_take(worker))) {
		const uint64_t before = range.next = worker->next;

		range.left = worker->chunk_left;
		rc = ktx_template_send(worker->tx, worker->made, &range, &err);
		worker->committed += range.next - before;
		worker->next = range.next;
		worker->chunk_left = range.left;
		if (rc == -EAGAIN) {
			read_reports(worker);
			rest(worker, KTRXER_NEVER);
		} else if (rc < 0) {
			fail(worker, &err);
			return;
		}
		/* One worker's chunk is all there is. */
		if (cli_stopped(run->cli) || (run->workers_count == 1 && time_is_over(worker)))
			return;
	}
}

/* The engine sends it by itself. */
static void send_stream(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct ktx_range range = KTX_RANGE_INIT;
	struct ktrxer_error err;

	range.left = run->wanted; /* UINT64_MAX is KTRXER_NEVER */
	range.threads = (uint32_t)run->o->threads;
	if (ktx_template_send(worker->tx, worker->made, &range, &err) < 0) {
		fail(worker, &err);
		return;
	}
	worker->committed = run->wanted;
	/* Programs are loaded and called first: how long it is to be sent counts from when it is. */
	while (run->o->for_ns && !cli_stopped(run->cli) && ktx_drain(worker->tx, ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS) != 0) {
		struct ktx_accounts a;

		ktx_accounts(worker->tx, &a);
		run->end_ns = (a.first_ns ? a.first_ns : ktrxer_now_ns()) + run->o->for_ns;
		if (a.first_ns || a.failed)
			break;
	}
	while (!time_is_over(worker)) {
		const uint64_t step = ktrxer_now_ns() + 20 * KTRXER_NS_PER_MS;

		if (ktx_drain(worker->tx, step < run->end_ns ? step : run->end_ns) == 0)
			break;
	}
	/* It says so where the device went away. */
	if (ktx_check(worker->tx, worker->probe.frame, worker->probe.length, &err) < 0)
		fail(worker, &err);
}

/* ---------------------------------------------------------------------------------------------------------- one worker */

/* Waits for what was committed, with an open ear for a wish to stop and for a device that went away. */
static void drain(struct send_worker *worker)
{
	struct send_run *run = worker->run;

	/* A stream whose time is over has no end of its own. */
	while (!cli_stopped(run->cli) && !(run->streams && time_is_over(worker))) {
		struct ktx_accounts a;

		read_reports(worker);
		if (ktx_drain(worker->tx, ktrxer_now_ns() + 50 * KTRXER_NS_PER_MS) == 0)
			break;
		ktx_accounts(worker->tx, &a);
		if (!a.pending)
			break;
	}
	ktx_cancel(worker->tx);
	/* What was handed over waits for its stamp 100 ms at most. */
	ktx_drain(worker->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	read_reports(worker);
}

/*
 * Where the kernel keeps the times at a rate, the slots must stay full: the thread that fills them gets a higher priority than
 * background tasks. It sleeps most of the time.
 */
static void keep_up(const struct send_run *run)
{
	const struct sched_param least = { .sched_priority = 1 };

	if (run->polled_rate && !run->o->no_realtime && pthread_setschedparam(pthread_self(), SCHED_FIFO, &least) != 0)
		(void)!setpriority(PRIO_PROCESS, 0, COMMIT_NICE);
}

static void *worker_main(void *context)
{
	struct send_worker *worker = context;

	keep_up(worker->run);
	if (worker->run->timed)
		send_timed(worker);
	else if (worker->run->streams)
		send_stream(worker);
	else
		send_fast(worker);
	drain(worker);
	return NULL;
}

void send_work(struct send_run *run)
{
	uint32_t started = 1;

	for (; started < run->workers_count; started++) {
		struct send_worker *worker = &run->workers[started];
		struct ktrxer_error err = { 0 };
		int rc = cli_thread_start(&worker->thread, "send", worker_main, worker);

		if (rc < 0) {
			/* Those that run send their own share, and what this one should have sent is not. */
			snprintf(err.text, sizeof err.text, "no thread for worker %u", started);
			err.code = rc;
			fail(worker, &err);
			break;
		}
	}
	worker_main(&run->workers[0]);
	for (uint32_t i = 1; i < started; i++)
		pthread_join(run->workers[i].thread, NULL);
}
