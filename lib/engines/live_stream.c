/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_stream.h"

#include "live_bpf.h"
#include "live_thread.h"
#include "template_plan.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/*
 * Runs of a call at most, some 15 s: then its thread continues by itself, also when the thread that would end the call
 * has no processor. Between two calls lie tens of milliseconds. At least: a few milliseconds.
 */
#define REPEAT_MAX (1U << 28)
#define REPEAT_MIN (1U << 16)
#define LOOK_NS (1000ULL * 1000)
/* A batch lasts microseconds, and reading the counters of a worker less. */
#define LOOK_TRIES 8

extern const unsigned char ktrxer_stream_object[];
extern const size_t ktrxer_stream_object_size;

static uint64_t read_u64(const __u64 *at)
{
	return *(const volatile __u64 *)at;
}

/* Numbers that this worker has taken and not completed. Exact only while its call is not running. */
static bool worker_has_work(const struct live_stream_worker *worker)
{
	const volatile struct stream_worker *state = worker->state;

	return state->next != state->chunk_end || state->again_in != state->again_out;
}

static bool no_more_numbers(const struct live_stream *stream)
{
	return *(const volatile uint32_t *)&stream->share->stop || read_u64(&stream->share->taken) >= stream->count;
}

/* This worker's part of the rest, if all are equally fast: its last call then ends by itself. */
static uint32_t repeat_of(const struct live_stream *stream)
{
	const uint64_t taken = read_u64(&stream->share->taken),
		       left = taken < stream->count ? stream->count - taken : 0;
	const uint64_t runs = left / stream->workers_count + 1;

	return runs > REPEAT_MAX ? REPEAT_MAX : runs < REPEAT_MIN ? REPEAT_MIN : (uint32_t)runs;
}

/* If the workers take all processors, no other thread would run, not even the one that ends the calls. */
static void leave_room(const struct live_stream *stream)
{
	const struct sched_param none = { 0 };
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) == 0 && stream->workers_count >= (uint32_t)CPU_COUNT(&set))
		(void)!sched_setscheduler(0, SCHED_OTHER, &none);
}

static void *worker_main(void *context)
{
	struct live_stream_worker *worker = context;
	const struct live_stream *stream = worker->stream;
	int rc;

	leave_room(stream);
	/*
	 * Stay where the scheduler has put the thread. A receiver on this machine (veth) polls on the processor that
	 * sent: after a move its pending work waits for a turn, and all that is sent meanwhile is refused.
	 */
	ktrxer_live_thread_prepare(stream->signal, worker->cpu < 0 ? sched_getcpu() : worker->cpu);
	for (;;) {
		worker->state->left = 0; /* a call begins with a batch */
		rc = ktrxer_live_bpf_run(worker->program, stream->frame, stream->length, repeat_of(stream),
					 STREAM_BATCH);
		if (rc < 0 && rc != -EINTR && rc != -EAGAIN) {
			atomic_store(&worker->result, rc);
			break;
		}
		if (atomic_load(&stream->lost) || (no_more_numbers(stream) && !worker_has_work(worker)))
			break;
	}
	atomic_store(&worker->done, true);
	return NULL;
}

static int worker_shape(struct live_stream_worker *worker, const struct stream_config *config,
			const struct ktx_template *made)
{
	const struct live_stream_worker *first = &worker->stream->workers[0];
	struct bpf_map *words = ktrxer_live_bpf_map(worker->object, "words"),
		       *share = ktrxer_live_bpf_map(worker->object, "share");
	int rc = ktrxer_live_bpf_constants(worker->object, config, sizeof *config);

	if (rc == 0)
		rc = bpf_map__set_max_entries(words, made->word_count ? made->word_count : 1);
	if (rc == 0 && worker != first) {
		rc = bpf_map__reuse_fd(words, ktrxer_live_bpf_map_fd(first->object, "words"));
		if (rc == 0)
			rc = bpf_map__reuse_fd(share, ktrxer_live_bpf_map_fd(first->object, "share"));
	}
	return rc;
}

static int worker_load(struct live_stream_worker *worker, const struct stream_config *config,
		       const struct ktrxer_device *device, const struct ktx_template *made, struct ktrxer_error *err)
{
	int rc = ktrxer_live_bpf_open(&worker->object, ktrxer_stream_object, ktrxer_stream_object_size, "ktrxer_stream",
				      err);

	if (rc == 0 && (rc = worker_shape(worker, config, made)) < 0)
		rc = ktrxer_fail(err, rc, "the stream program is not the one that this library was built with");
	if (rc < 0 || (rc = ktrxer_live_bpf_load(worker->object, err)) < 0 ||
	    (rc = ktrxer_live_bpf_aim(worker->object, device, err)) < 0)
		return rc;
	worker->program = bpf_program__fd(bpf_object__find_program_by_name(worker->object, "stream_next"));
	worker->state_size = sizeof *worker->state;
	worker->state = ktrxer_live_bpf_mmap(worker->object, "worker", &worker->state_size);
	if ((void *)worker->state == MAP_FAILED)
		return ktrxer_fail(err, -ENOMEM, "the live engine's counters cannot be mapped");
	return 0;
}

static void worker_unload(struct live_stream_worker *worker)
{
	if (worker->state && (void *)worker->state != MAP_FAILED)
		munmap(worker->state, worker->state_size);
	bpf_link__destroy(worker->links[1]);
	bpf_link__destroy(worker->links[0]);
	bpf_object__close(worker->object);
	worker->state = NULL;
	worker->links[0] = worker->links[1] = NULL;
	worker->object = NULL;
}

static int words_write(struct live_stream *stream, const struct ktx_template *made, struct ktrxer_error *err)
{
	size_t size = made->word_count * sizeof *made->words;
	uint64_t *words;

	if (!size)
		return 0;
	words = ktrxer_live_bpf_mmap(stream->workers[0].object, "words", &size);
	if (words == MAP_FAILED)
		return ktrxer_fail(err, -ENOMEM, "the template's tables (%zu KiB) cannot be mapped", size / 1024);
	memcpy(words, made->words, made->word_count * sizeof *words);
	munmap(words, size);
	return 0;
}

/* False: it is loaded, and tracepoints there are none. */
static bool workers_trace(struct live_stream *stream)
{
	for (uint32_t i = 0; i < stream->workers_count; i++)
		if (!ktrxer_live_bpf_trace(stream->workers[i].object, "stream_taken", "stream_turned_back",
					   stream->workers[i].links))
			return false;
	return true;
}

static void workers_unload(struct live_stream *stream)
{
	if (stream->share && (void *)stream->share != MAP_FAILED)
		munmap(stream->share, stream->share_size);
	stream->share = NULL;
	for (uint32_t i = stream->workers_count; i-- > 0;)
		worker_unload(&stream->workers[i]);
}

static int workers_load(struct live_stream *stream, struct stream_config *config, const struct ktrxer_device *device,
			const struct ktx_template *made, struct ktrxer_error *err)
{
	int rc = 0;

	config->traced = stream->traced;
	for (uint32_t i = 0; rc == 0 && i < stream->workers_count; i++)
		rc = worker_load(&stream->workers[i], config, device, made, err);
	if (rc < 0 || (rc = words_write(stream, made, err)) < 0)
		return rc;
	stream->share_size = sizeof *stream->share;
	stream->share = ktrxer_live_bpf_mmap(stream->workers[0].object, "share", &stream->share_size);
	if ((void *)stream->share == MAP_FAILED)
		return ktrxer_fail(err, -ENOMEM, "the live engine's counters cannot be mapped");
	stream->share->count = stream->count;
	return 0;
}

static void stream_clear(struct live_stream *stream)
{
	for (uint32_t i = 0; i < stream->workers_count; i++)
		if (stream->workers[i].has_thread)
			pthread_join(stream->workers[i].thread, NULL);
	workers_unload(stream);
	free(stream->workers);
	stream->workers = NULL;
	stream->workers_count = 0;
}

static int processors_check(uint32_t threads, cpu_set_t *set, struct ktrxer_error *err)
{
	CPU_ZERO(set);
	if (sched_getaffinity(0, sizeof *set, set) != 0 || (uint32_t)CPU_COUNT(set) >= threads)
		return 0;
	return ktrxer_fail(err, -EINVAL, "%u threads that poll want as many processors, and this process may use %d",
			   threads, CPU_COUNT(set));
}

static int cpu_number(const cpu_set_t *set, uint32_t n)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && n-- == 0)
			return cpu;
	return -1;
}

static int workers_make(struct live_stream *stream, const struct ktx_options *options, uint32_t threads,
			struct ktrxer_error *err)
{
	cpu_set_t set;
	int rc = processors_check(threads, &set, err);

	if (rc < 0)
		return rc;
	stream->workers = calloc(threads, sizeof *stream->workers);
	if (!stream->workers)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u threads", threads);
	stream->workers_count = threads;
	for (uint32_t i = 0; i < threads; i++) {
		stream->workers[i].stream = stream;
		/* Several must not share a processor while another one is free. */
		stream->workers[i].cpu = threads > 1 ? cpu_number(&set, i) : options->cpu;
	}
	return 0;
}

static int threads_make(struct live_stream *stream, struct ktrxer_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < stream->workers_count; i++) {
		rc = ktrxer_live_thread_make(&stream->workers[i].thread, worker_main, &stream->workers[i], err);
		stream->workers[i].has_thread = rc == 0;
	}
	return rc;
}

static int stream_load(struct live_stream *stream, const struct ktrxer_device *device,
		       const struct ktx_options *options, const struct ktx_stream *what, struct ktrxer_error *err)
{
	const struct ktx_template *made = what->made;
	struct stream_config *config = calloc(1, sizeof *config);
	int rc;

	if (!config)
		return ktrxer_fail(err, -ENOMEM, "no memory for a template");
	config->first = what->first;
	config->retry_ns = options->retry_ns;
	config->plan = made->plan;
	memcpy(config->frame, made->frame, made->plan.length);
	stream->traced = true;
	rc = workers_load(stream, config, device, made, err);
	if (rc == 0 && !workers_trace(stream)) {
		/* Load a program that does not wait for reports of the driver, because there are none. */
		workers_unload(stream);
		stream->traced = false;
		rc = workers_load(stream, config, device, made, err);
	}
	free(config);
	return rc;
}

int ktrxer_live_stream_start(struct live_stream *stream, const struct ktrxer_device *device,
			     const struct ktx_options *options, const struct ktx_stream *what, struct ktrxer_error *err)
{
	int rc;

	stream_clear(stream); /* of the one before */
	atomic_store(&stream->phase, STREAM_NONE);
	atomic_store(&stream->lost, 0);
	if (what->made->plan.length < 14 || what->made->plan.length > LIVE_FRAME_MAX)
		return ktrxer_fail(err, -EMSGSIZE, "a template of %u bytes: the live engine sends 14 to %d",
				   what->made->plan.length, LIVE_FRAME_MAX);
	rc = stream->signal = ktrxer_live_signal_choose(err);
	if (rc < 0)
		return rc;
	stream->length = what->made->plan.length;
	stream->count = what->count;
	stream->began_ns = ktrxer_now_ns();
	ktx_template_fill(what->made, stream->frame, what->first);
	if ((rc = workers_make(stream, options, what->threads, err)) < 0 ||
	    (rc = stream_load(stream, device, options, what, err)) < 0)
		goto clear;
	rc = threads_make(stream, err);
	if (rc < 0) {
		ktrxer_live_stream_close(stream);
		return rc;
	}
	atomic_store(&stream->phase, STREAM_RUNS);
	return 0;

clear:
	stream_clear(stream);
	return rc;
}

void ktrxer_live_stream_stop(struct live_stream *stream)
{
	if (atomic_load(&stream->phase) == STREAM_RUNS)
		__atomic_store_n(&stream->share->stop, 1, __ATOMIC_RELEASE);
}

void ktrxer_live_stream_lose(struct live_stream *stream, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&stream->lost, &none, error);
}

void ktrxer_live_stream_update(struct live_stream *stream, uint64_t now_ns, uint64_t *next_ns)
{
	uint32_t running = 0;

	if (atomic_load(&stream->phase) != STREAM_RUNS)
		return;
	for (uint32_t i = 0; i < stream->workers_count; i++) {
		struct live_stream_worker *worker = &stream->workers[i];
		const int error = *(const volatile int *)&worker->state->error, result = atomic_load(&worker->result);

		if (error == ENODEV || error == ENETDOWN)
			ktrxer_live_stream_lose(stream, -error);
		if (result < 0)
			ktrxer_live_stream_lose(stream, result);
	}
	for (uint32_t i = 0; i < stream->workers_count; i++) {
		struct live_stream_worker *worker = &stream->workers[i];

		if (atomic_load(&worker->done))
			continue;
		running++;
		/*
		 * The signal may come just before the call begins, or while there is work left: then the thread makes
		 * another call.
		 */
		if (atomic_load(&stream->lost) || (no_more_numbers(stream) && !worker_has_work(worker)))
			pthread_kill(worker->thread, stream->signal);
	}
	if (!running) {
		atomic_store(&stream->phase, STREAM_ENDED);
		return;
	}
	if (now_ns + LOOK_NS < *next_ns)
		*next_ns = now_ns + LOOK_NS;
}

void ktrxer_live_stream_close(struct live_stream *stream)
{
	const struct timespec nap = { .tv_nsec = (long)LOOK_NS };

	ktrxer_live_stream_lose(stream, -ECANCELED);
	for (uint32_t i = 0; i < stream->workers_count; i++)
		while (stream->workers[i].has_thread && !atomic_load(&stream->workers[i].done)) {
			pthread_kill(stream->workers[i].thread, stream->signal);
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		}
	stream_clear(stream);
}

/*
 * Frames that are submitted, and not in `sent` yet. The program goes on counting, in this order: so the completed
 * frames are read before the submitted ones, until they are the same twice. More than one batch is a pair of different
 * times all the same.
 */
static uint32_t worker_pending(const struct stream_worker *worker, uint64_t *sent)
{
	uint32_t completed, submitted;
	int tries = 0;

	do {
		completed = __atomic_load_n(&worker->completed, __ATOMIC_ACQUIRE);
		*sent = read_u64(&worker->sent);
		submitted = __atomic_load_n(&worker->submitted, __ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&worker->completed, __ATOMIC_ACQUIRE) != completed && ++tries < LOOK_TRIES);
	return submitted - completed <= STREAM_PENDING ? submitted - completed : 0;
}

void ktrxer_live_stream_look(const struct live_stream *stream, struct ktx_stream_look *look)
{
	const bool ended = atomic_load(&stream->phase) == STREAM_ENDED;

	*look = (struct ktx_stream_look){ .ended = ended, .lost = atomic_load(&stream->lost) };
	for (uint32_t i = 0; i < stream->workers_count; i++) {
		const struct stream_worker *worker = stream->workers[i].state;
		/* No tracepoint has reported these yet; in the end there is nothing to wait for. */
		uint64_t sent;
		const uint32_t out = worker_pending(worker, &sent), pending = ended || !stream->traced ? out : 0;
		const uint64_t first = read_u64(&worker->first_ns), last = read_u64(&worker->last_ns);

		look->sent += sent + pending;
		look->queued += read_u64(&worker->unstamped) + pending;
		look->failed += read_u64(&worker->failed);
		look->tries += read_u64(&worker->refusals);
		if (first && (!look->first_ns || first < look->first_ns))
			look->first_ns = first;
		if (last > look->last_ns)
			look->last_ns = last;
		if (worker->error)
			look->error = -worker->error;
	}
	look->tries += look->sent;
	look->taken = stream->share ? read_u64(&stream->share->taken) : 0;
	if (look->taken > stream->count)
		look->taken = stream->count;
	if (!stream->traced && look->sent) { /* there are no stamps */
		look->first_ns = stream->began_ns;
		look->last_ns = ktrxer_now_ns();
	}
}
