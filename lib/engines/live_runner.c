/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_runner.h"

#include "live_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>

/* A call that begins now is there that much later, at the worst that was seen on an idle machine 80 ms. */
#define START_AHEAD_NS (250ULL * 1000 * 1000)
#define IDLE_NS (500ULL * 1000 * 1000)
/* How often to look while one call takes over from another, or must end. */
#define TURN_NS (1000ULL * 1000)
/* The time between two looks at the count of runs, which is all that changes then. */
#define WATCH_NS (100ULL * 1000 * 1000)
/* Below the pump, which needs some microseconds now and then, preferably on another processor. */
#define WORKER_PRIORITY 1
/*
 * While the next probe is that far away, a call polls without real-time priority, so that other tasks get the processor
 * ...
 */
#define REST_MIN_NS (600ULL * 1000)
/* ... and has it back this long before. The pump wakes up within microseconds, being real-time itself. */
#define REST_ENDS_NS (300ULL * 1000)
/*
 * Where probes are closer, some of the gaps are used: so many that other tasks have one part in REST_SHARE of the time
 * (the kernel requires one in 20).
 */
#define NAP_MIN_NS (60ULL * 1000)
#define NAP_ENDS_NS (25ULL * 1000)
#define REST_SHARE 12
#define REST_OVERHEAD_NS 6000
/*
 * Where gaps are too short even for that, it rests across probes, nice -20, once it has run for long without: for one
 * part in BREAK_SHARE of the time.
 */
#define BREAK_AFTER_NS (300ULL * 1000 * 1000)
#define BREAK_NS (10ULL * 1000 * 1000)
#define BREAK_SHARE 17

uint32_t ktrxer_live_runner_repeat = 1U << 31;

static void *worker_main(void *context)
{
	struct live_worker_thread *worker = context;
	struct live_runner *runner = worker->runner;
	int rc;

	ktrxer_live_thread_prepare(runner->signal, runner->cpu);
	pthread_mutex_lock(&runner->lock);
	while (worker->phase != WORKER_QUITS) {
		if (worker->phase == WORKER_RESTS) {
			pthread_cond_wait(&runner->turn, &runner->lock);
			continue;
		}
		pthread_mutex_unlock(&runner->lock);
		rc = ktrxer_live_program_run(runner->program, worker->number, runner->repeat,
					     runner->program->control->batch[worker->number], worker->frame_size);
		pthread_mutex_lock(&runner->lock);
		worker->result = rc;
		if (worker->phase == WORKER_RUNS)
			worker->phase = WORKER_RESTS;
	}
	pthread_mutex_unlock(&runner->lock);
	return NULL;
}

static int worker_make(struct live_runner *runner, int number, struct ktrxer_error *err)
{
	struct live_worker_thread *worker = &runner->workers[number];
	int rc;

	*worker = (struct live_worker_thread){ .runner = runner, .number = number, .resting = true };
	rc = ktrxer_live_thread_make(&worker->thread, worker_main, worker, err);
	if (rc < 0)
		return rc;
	worker->has_thread = true;
	return 0;
}

/* The signal may come just before the call begins: it is sent again until the call is seen to have ended. */
static void worker_interrupt(const struct live_worker_thread *worker)
{
	pthread_kill(worker->thread, worker->runner->signal);
}

static bool worker_ended(struct live_worker_thread *worker, int *result)
{
	bool ended;

	pthread_mutex_lock(&worker->runner->lock);
	ended = worker->phase == WORKER_RESTS;
	*result = worker->result;
	pthread_mutex_unlock(&worker->runner->lock);
	return ended;
}

static void worker_start(struct live_worker_thread *worker, uint32_t batch, uint32_t frame_size)
{
	struct live_control *control = worker->runner->program->control;
	struct live_worker *seen = &control->workers[worker->number];

	seen->left = seen->mine = 0;
	__atomic_store_n(&seen->runs, 0, __ATOMIC_RELAXED);
	control->batch[worker->number] = batch;
	worker->frame_size = frame_size;
	worker->ending = false;
	worker->out = true;
	worker->runner->calls++;
	pthread_mutex_lock(&worker->runner->lock);
	worker->phase = WORKER_RUNS;
	pthread_cond_broadcast(&worker->runner->turn);
	pthread_mutex_unlock(&worker->runner->lock);
}

/*
 * Before 6.12 the kernel stops a real-time thread that never sleeps for 50 ms of each second, in any case. Since then
 * it does so only for tasks that find no other processor, and for as long as they need it.
 */
static bool realtime_may_poll(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 12));
}

int ktrxer_live_runner_open(struct live_runner *runner, const struct live_program *program,
			    const struct ktx_options *options, struct ktrxer_error *err)
{
	const bool times = options->purpose == KTX_FOR_TIMING;
	int rc;

	*runner = (struct live_runner){
		.program = program, .current = -1, .repeat = ktrxer_live_runner_repeat, .cpu = options->cpu
	};
	runner->realtime = times && !(options->flags & KTX_NO_REALTIME) && realtime_may_poll();
	runner->batch = times ? 1 : LIVE_BATCH_MAX;
	pthread_mutex_init(&runner->lock, NULL);
	pthread_cond_init(&runner->turn, NULL);
	rc = runner->signal = ktrxer_live_signal_choose(err);
	if (rc < 0)
		goto close;
	for (int i = 0; i < LIVE_WORKERS; i++)
		if ((rc = worker_make(runner, i, err)) < 0)
			goto close;
	return 0;

close:
	ktrxer_live_runner_close(runner);
	return rc;
}

void ktrxer_live_runner_close(struct live_runner *runner)
{
	const struct timespec nap = { .tv_nsec = (long)TURN_NS };
	int result;

	for (int i = 0; i < LIVE_WORKERS; i++) {
		struct live_worker_thread *worker = &runner->workers[i];

		if (!worker->has_thread)
			continue;
		while (!worker_ended(worker, &result)) {
			worker_interrupt(worker);
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		}
		pthread_mutex_lock(&runner->lock);
		worker->phase = WORKER_QUITS;
		pthread_cond_broadcast(&runner->turn);
		pthread_mutex_unlock(&runner->lock);
		pthread_join(worker->thread, NULL);
	}
	pthread_cond_destroy(&runner->turn);
	pthread_mutex_destroy(&runner->lock);
}

bool ktrxer_live_runner_rests(const struct live_runner *runner)
{
	for (int i = 0; i < LIVE_WORKERS; i++)
		if (runner->workers[i].out)
			return false;
	return true;
}

static uint32_t owner_of(const struct live_runner *runner)
{
	return __atomic_load_n(&runner->program->control->owner, __ATOMIC_ACQUIRE);
}

static uint32_t runs_of(const struct live_runner *runner, int worker)
{
	return __atomic_load_n(&runner->program->control->workers[worker].runs, __ATOMIC_RELAXED);
}

/* The owner must not be in its call. */
static void give_to(struct live_runner *runner, int worker)
{
	struct live_control *control = runner->program->control;

	__atomic_store_n(&control->taker, (uint32_t)worker, __ATOMIC_RELAXED);
	__atomic_store_n(&control->owner, (uint32_t)worker, __ATOMIC_RELEASE);
	runner->current = worker;
}

static void see_ends(struct live_runner *runner)
{
	for (int i = 0; i < LIVE_WORKERS; i++) {
		struct live_worker_thread *worker = &runner->workers[i], *other = &runner->workers[!i];
		int result;

		if (!worker->out || !worker_ended(worker, &result))
			continue;
		worker->out = worker->ending = false;
		if (result < 0 && result != -EINTR && result != -EAGAIN)
			runner->broken = result;
		if (runner->current != i)
			continue;
		if (other->out)
			give_to(runner, !i);
		else
			runner->current = -1;
	}
}

/* The second worker owns the ring: the first one may end. */
static void see_takeover(struct live_runner *runner)
{
	const int other = !runner->current;

	if (runner->current < 0 || !runner->workers[other].out || runner->workers[other].ending ||
	    owner_of(runner) != (uint32_t)other)
		return;
	runner->workers[runner->current].ending = true;
	runner->current = other;
	runner->handovers++;
}

static void worker_rest(struct live_worker_thread *worker, bool rest)
{
	const struct sched_param param = { .sched_priority = rest ? 0 : WORKER_PRIORITY };

	if (worker->resting == rest)
		return;
	if (pthread_setschedparam(worker->thread, rest ? SCHED_OTHER : SCHED_FIFO, &param) == 0)
		worker->resting = rest;
	else
		worker->runner->realtime = false;
}

static void rest_account(struct live_runner *runner, uint64_t now)
{
	if (runner->rest_began_ns && now > runner->rest_began_ns + REST_OVERHEAD_NS)
		runner->rested_ns += now - runner->rest_began_ns - REST_OVERHEAD_NS;
	runner->rest_began_ns = 0;
	if (now - runner->since_ns < KTRXER_NS_PER_S)
		return;
	runner->since_ns =
		now - (now - runner->since_ns > 2 * (uint64_t)KTRXER_NS_PER_S ? KTRXER_NS_PER_S
									      : (now - runner->since_ns) / 2);
	runner->rested_ns /= 2;
}

/* 0: the next probe is too near, or other tasks have had their share. */
static uint64_t rest_end(struct live_runner *runner, const struct live_need *need)
{
	runner->on_break = false;
	if (need->due_ns == KTRXER_NEVER)
		return KTRXER_NEVER;
	if (need->due_ns > need->now_ns + REST_MIN_NS)
		return need->due_ns - REST_ENDS_NS;
	if (need->due_ns > need->now_ns + NAP_MIN_NS &&
	    runner->rested_ns < (need->now_ns - runner->since_ns) / REST_SHARE)
		return need->due_ns - NAP_ENDS_NS;
	if (need->now_ns - runner->since_ns > BREAK_AFTER_NS &&
	    runner->rested_ns < (need->now_ns - runner->since_ns) / BREAK_SHARE)
		runner->on_break = true;
	return runner->on_break ? need->now_ns + BREAK_NS : 0;
}

/*
 * A real-time thread that never sleeps would be stopped by the kernel, 50 ms at a time, for the tasks that find no
 * other processor. So they get what lies between two probes: all of it where that is long, and a share of it where it
 * is short. Where nothing lies between, the thread goes on without its priority for a share of the time, which costs
 * only what others really take.
 */
static void rest_between(struct live_runner *runner, const struct live_need *need, uint64_t *next_ns)
{
	if (!runner->realtime)
		return;
	if (runner->rest_ends_ns <= need->now_ns) {
		rest_account(runner, need->now_ns);
		runner->rest_ends_ns = rest_end(runner, need);
		if (runner->rest_ends_ns)
			runner->rest_began_ns = need->now_ns;
	} else if (need->due_ns != KTRXER_NEVER && runner->rest_ends_ns > need->due_ns && !runner->on_break) {
		runner->rest_ends_ns = rest_end(runner, need); /* something was committed meanwhile */
	}
	for (int i = 0; i < LIVE_WORKERS; i++)
		worker_rest(&runner->workers[i],
			    runner->rest_ends_ns || !runner->workers[i].out || runner->workers[i].ending);
	if (runner->rest_ends_ns && runner->rest_ends_ns < *next_ns)
		*next_ns = runner->rest_ends_ns;
}

static void start_or_take_over(struct live_runner *runner, const struct live_need *need)
{
	const uint32_t batch = need->trains && runner->batch < LIVE_BULK ? LIVE_BULK : runner->batch;
	struct live_worker_thread *worker;

	if (runner->current < 0) {
		worker = &runner->workers[runner->workers[0].out];
		if (worker->out)
			return;
		give_to(runner, worker->number);
		worker_start(worker, batch, need->frame_size);
		return;
	}
	worker = &runner->workers[!runner->current];
	if (worker->out)
		return;
	if (runner->workers[runner->current].ending || runs_of(runner, runner->current) > runner->repeat / 2 ||
	    runner->program->control->batch[runner->current] != batch)
		worker_start(worker, batch, need->frame_size);
}

void ktrxer_live_runner_stop(struct live_runner *runner, uint64_t now_ns, uint64_t *next_ns)
{
	see_ends(runner);
	*next_ns = KTRXER_NEVER;
	for (int i = 0; i < LIVE_WORKERS; i++) {
		if (!runner->workers[i].out)
			continue;
		runner->workers[i].ending = true;
		worker_interrupt(&runner->workers[i]);
		*next_ns = now_ns + TURN_NS;
	}
}

int ktrxer_live_runner_update(struct live_runner *runner, const struct live_need *need, uint64_t *next_ns)
{
	const bool near = need->due_ns != KTRXER_NEVER && need->due_ns < need->now_ns + START_AHEAD_NS;
	const bool far = need->due_ns == KTRXER_NEVER || need->due_ns > need->now_ns + IDLE_NS;

	see_ends(runner);
	see_takeover(runner);
	if (runner->broken)
		return runner->broken;
	if (!far)
		runner->idle_since_ns = 0;
	else if (!runner->idle_since_ns)
		runner->idle_since_ns = need->now_ns;
	if (near)
		start_or_take_over(runner, need);
	else if (far && need->now_ns - runner->idle_since_ns >= IDLE_NS)
		for (int i = 0; i < LIVE_WORKERS; i++)
			runner->workers[i].ending |= runner->workers[i].out;

	*next_ns = runner->current >= 0 ? need->now_ns + WATCH_NS : KTRXER_NEVER;
	if (need->due_ns != KTRXER_NEVER && !near)
		*next_ns = need->due_ns - START_AHEAD_NS;
	for (int i = 0; i < LIVE_WORKERS; i++) {
		if (runner->workers[i].ending)
			worker_interrupt(&runner->workers[i]);
		if (runner->workers[i].ending || (runner->workers[i].out && runner->current != i) ||
		    (near && runner->current < 0))
			*next_ns = need->now_ns + TURN_NS;
	}
	rest_between(runner, need, next_ns);
	return 0;
}
