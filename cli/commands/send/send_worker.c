/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sending itself. Each worker has a transmitter of its own. With a schedule a worker of N sends every N-th train of
 * it, each knowing the whole schedule; without one they take numbers in chunks, from one counter.
 */
#include "send.h"

#include "error.h"
#include "network_error.h"
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

/* Commit no further ahead than this: a run that is stopped early cancels few probes. */
#define AHEAD_NS (500 * KTRXER_NS_PER_MS)
/* Accounts are read this often without an event: while a stream starts, while it runs, while requests are pending. */
#define STREAM_START_NS (5 * (uint64_t)KTRXER_NS_PER_MS)
#define STREAM_LOOK_NS (20 * (uint64_t)KTRXER_NS_PER_MS)
#define DRAIN_LOOK_NS (50 * (uint64_t)KTRXER_NS_PER_MS)

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
		for (int i = 0; i < n; i++) {
			network_error_say(run->cli, &errors[i], false, &worker->network_errors);
			worker->unreachable += errors[i].error == EHOSTUNREACH &&
					       (!errors[i].reporter.family ||
						ktrxer_addr_equal(&errors[i].reporter, &run->path.source));
		}
}

static void fail(struct send_worker *worker, const struct ktrxer_error *err)
{
	worker->failure = err->code;
	memcpy(worker->failure_text, err->text, sizeof worker->failure_text);
}

/* 0, or -ENODATA when there is no more, or what ended it (and was noted). */
static int due_next(struct send_worker *worker, struct ktrxer_deadline *due)
{
	struct send_run *run = worker->run;
	struct ktrxer_error err = { 0 };
	uint64_t offset;
	int rc;

	*due = (struct ktrxer_deadline){ .index = worker->next };
	if (run->o->pcap) {
		rc = send_replay_next(run, &offset, &err);
		if (rc < 0 && rc != -ENODATA &&
		    !cli_stopped(run->cli)) /* a pipe that we stopped listening to is no damaged file */
			fail(worker, &err);
		if (rc < 0)
			return rc;
		if (!worker->schedule)
			due->at_ns = offset > UINT64_MAX - run->start_ns ? UINT64_MAX - 1 : run->start_ns + offset;
	}
	while (worker->schedule) {
		rc = ktrxer_schedule_next(worker->schedule, due);
		/* The others know the same schedule, and send the other trains. */
		if (rc < 0 || due->index / run->o->train % run->workers_count == worker->number)
			return rc;
	}
	return 0;
}

/* 0: committed. -EAGAIN: no room. Else: what ended it. */
static int commit_next(struct send_worker *worker, const struct ktrxer_deadline *due)
{
	struct send_run *run = worker->run;
	struct ktx_probe probe = { .id = due->index, .length = worker->probe.length, .at_ns = due->at_ns };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int rc = ktx_reserve(worker->tx, &slot);

	if (rc < 0)
		return rc;
	probe.flags = due->train_goes_on && due->index + 1 < run->wanted ? KTX_TRAIN_GOES_ON : 0;
	if (run->o->pcap) {
		probe.length = run->replay.packet.length;
		memcpy(slot.frame, run->replay.packet.data, probe.length);
	} else {
		ktx_template_fill(worker->made, slot.frame, due->index);
	}
	rc = ktx_commit(worker->tx, &probe, &err);
	if (rc < 0) {
		fail(worker, &err);
		return rc;
	}
	worker->next = due->index + 1;
	worker->committed++;
	return 0;
}

static uint64_t send_timed(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct ktrxer_deadline *due = &worker->due;

	while (worker->next < run->wanted && !cli_stopped(run->cli)) {
		int rc;

		if (!worker->has_due && due_next(worker, due) < 0)
			break;
		worker->has_due = true;
		if (due->at_ns >= run->end_ns || due->index >= run->wanted)
			break;
		if (due->at_ns > ktrxer_now_ns() + AHEAD_NS) {
			read_reports(worker);
			return due->at_ns - AHEAD_NS / 2;
		}
		rc = commit_next(worker, due);
		if (rc == -EAGAIN) {
			read_reports(worker);
			return KTRXER_NEVER;
		}
		if (rc < 0)
			break;
		worker->has_due = false;
	}
	return 0;
}

/*
 * Takes the next free chunk. A chunk once taken is sent, also when the time has ended, so that no number is left out.
 */
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

static uint64_t send_fast(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct ktx_range range = KTX_RANGE_INIT;
	struct ktrxer_error err;

	range.threads = (uint32_t)run->o->threads;
	while (worker->chunk_left || (!time_is_over(worker) && chunk_take(worker))) {
		const uint64_t before = range.next = worker->next;
		int rc;

		/* One worker's chunk is all there is. */
		if (cli_stopped(run->cli) || (run->workers_count == 1 && time_is_over(worker)))
			return 0;
		range.left = worker->chunk_left;
		rc = ktx_template_send(worker->tx, worker->made, &range, &err);
		worker->committed += range.next - before;
		worker->next = range.next;
		worker->chunk_left = range.left;
		if (rc == -EAGAIN) {
			read_reports(worker);
			return KTRXER_NEVER;
		}
		if (rc < 0) {
			fail(worker, &err);
			return 0;
		}
	}
	return 0;
}

/* Until the stream has ended, or its time is over: a stream without a number of probes has no end of its own. */
static uint64_t stream_wait(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	const uint64_t look = ktrxer_now_ns() + STREAM_LOOK_NS;

	if (time_is_over(worker) || ktx_drain(worker->tx, 0) == 0)
		return 0;
	return look < run->end_ns ? look : run->end_ns;
}

/* Programs are loaded and called first: the time of --for counts from the first probe. */
static uint64_t stream_start(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	const uint64_t now = ktrxer_now_ns();
	struct ktx_accounts a;

	if (ktx_drain(worker->tx, 0) == 0)
		return 0;
	ktx_accounts(worker->tx, &a);
	run->end_ns = (a.first_ns ? a.first_ns : now) + run->o->for_ns;
	if (!a.first_ns && !a.failed)
		return now + STREAM_START_NS;
	worker->step = stream_wait;
	return stream_wait(worker);
}

static uint64_t send_stream(struct send_worker *worker)
{
	struct send_run *run = worker->run;
	struct ktx_range range = KTX_RANGE_INIT;
	struct ktrxer_error err;

	range.left = run->wanted; /* UINT64_MAX is KTRXER_NEVER */
	range.threads = (uint32_t)run->o->threads;
	if (ktx_template_send(worker->tx, worker->made, &range, &err) < 0) {
		fail(worker, &err);
		return 0;
	}
	worker->committed = run->wanted;
	worker->step = run->o->for_ns ? stream_start : stream_wait;
	return worker->step(worker);
}

/* Waits until all committed probes have ended, and their stamps have arrived or are missing. */
static uint64_t drain(struct send_worker *worker)
{
	struct ktx_accounts a;

	read_reports(worker);
	if (ktx_drain(worker->tx, 0) == 0)
		return 0;
	/* A device that went away may have left nothing. */
	ktx_accounts(worker->tx, &a);
	return a.pending ? ktrxer_now_ns() + DRAIN_LOOK_NS : 0;
}

static void step_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct send_worker *worker = (struct send_worker *)((char *)timer - offsetof(struct send_worker, timer));
	const uint64_t latest = now_ns + (uint64_t)KTRXER_NS_PER_S; /* ends a wait that a defect made endless */
	const uint64_t next = worker->step(worker);

	if (!next)
		loop_stop(worker->loop);
	timer->at_ns = next < latest ? next : latest;
}

static void events_ready(struct loop_source *source, uint32_t events)
{
	struct send_worker *worker = (struct send_worker *)((char *)source - offsetof(struct send_worker, events));

	(void)events;
	worker->timer.at_ns = 0;
}

static int step_until_end(struct send_worker *worker, uint64_t (*step)(struct send_worker *worker))
{
	worker->step = step;
	worker->timer.at_ns = 0;
	return loop_run(worker->loop, worker->run->cli->stop_fd);
}

static int run_steps(struct send_worker *worker)
{
	const struct send_run *run = worker->run;
	struct ktrxer_error err;
	int rc = loop_new(&worker->loop);

	worker->timer.due = step_due;
	worker->events = (struct loop_source){ .fd = ktx_fd(worker->tx), .ready = events_ready };
	if (rc == 0)
		rc = loop_watch(worker->loop, &worker->events, EPOLLIN);
	if (rc < 0)
		return rc;
	loop_timer_add(worker->loop, &worker->timer);
	rc = step_until_end(worker, run->timed ? send_timed : run->streams ? send_stream : send_fast);
	/* A stream does not report that its device went away. */
	if (run->streams && ktx_check(worker->tx, worker->probe.frame, worker->probe.length, &err) < 0 &&
	    !worker->failure)
		fail(worker, &err);
	return rc < 0 || run->streams ? rc : step_until_end(worker, drain);
}

/*
 * Where the kernel keeps the times at a rate, the slots must stay full: the thread that fills them gets a higher
 * priority than background tasks. It sleeps most of the time.
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
	struct ktrxer_error err = { 0 };
	int rc;

	keep_up(worker->run);
	rc = run_steps(worker);
	if (rc < 0 && !worker->failure) {
		ktrxer_fail(&err, rc, "the event loop of worker %u: %m", worker->number);
		fail(worker, &err);
	}
	loop_free(worker->loop);
	ktx_cancel(worker->tx);
	/* A submitted probe waits for its stamp 100 ms at most. */
	ktx_drain(worker->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	read_reports(worker);
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
