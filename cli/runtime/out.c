/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A ring passes pointers from the threads that have results to one writer thread; another ring returns used objects. A
 * mutex excludes producers from each other, never from the writer: no probing thread waits for a slow reader or writer.
 * An eventfd wakes the writer, only when it sleeps.
 */
#include "out.h"

#include "fields_common.h"
#include "error.h"
#include "record.h"
#include "stop.h"
#include "thread.h"
#include "units.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
	KTRXER_OUT_ITEMS = 4096,    /* objects that wait for a slow reader; power of two */
	KTRXER_OUT_BYTES = 1 << 20, /* and their bytes: resident memory stays below 2 MB */
	KTRXER_OUT_SPARE = 64,      /* of which this many are there from the start, so that probing allocates nothing */
	KTRXER_OUT_END_MS = 30000,  /* and so is one that takes them, but this slowly */
};

enum {
	RING = KTRXER_OUT_ITEMS,
	ROOM_FOR_THE_END = 64, /* of the ring: `end` and what is said about it fit always */
	CHUNK = 4096,          /* PIPE_BUF: what a pipe that polls as writable takes at once, without blocking */
	LINE_MAX_TEXT = 1024,
	POOL_MS = 200,    /* under --jsonl: a line waits so long for others, */
	POOL_ITEMS = 256, /* unless so many have come */
};

struct ring {
	struct json *items[RING];
	_Atomic uint32_t head, tail; /* put at head, taken at tail; free running */
};

struct out {
	int fd, wake_fd;
	bool objects; /* --jsonl: start, samples, events */
	bool text;    /* for people */
	bool started, finished;
	struct json *end;
	pthread_mutex_t producers;
	struct ring queue, used; /* `used` flows back */
	uint32_t owned;          /* objects that exist, but for `end`; under `producers` */
	/* No wider than a pointer: 64-bit atomics are library calls on small machines. */
	atomic_size_t bytes; /* in the queue */
	atomic_size_t dropped;
	atomic_size_t progress; /* bytes that the reader took; wraps */
	atomic_bool sleeping, pooling, closing, abandoned, done;
	atomic_int error; /* positive errno of the write that ended it all */
	pthread_t writer;
};

static bool ring_put(struct ring *ring, struct json *item, uint32_t limit)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) >= limit)
		return false;
	ring->items[head % RING] = item;
	atomic_store(&ring->head, head + 1); /* not just released: wake_if_asleep() */
	return true;
}

static struct json *ring_take(struct ring *ring)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	struct json *item;

	if (tail == atomic_load_explicit(&ring->head, memory_order_acquire))
		return NULL;
	item = ring->items[tail % RING];
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	return item;
}

static void wake(struct out *out)
{
	static const uint64_t one = 1;

	if (write(out->wake_fd, &one, sizeof one) < 0) {
		/* Full: then it is awake. */
	}
}

/* Head and flag are both sequentially consistent: either we see that it sleeps, or it sees what we put. */
static void wake_if_asleep(struct out *out)
{
	if (atomic_load(&out->sleeping))
		wake(out);
}

static uint32_t queued(struct out *out)
{
	return atomic_load(&out->queue.head) - atomic_load(&out->queue.tail);
}

/* Once, when it becomes too many: the writer takes all that there are. */
static void wake_if_pooling(struct out *out)
{
	if (atomic_load(&out->pooling) && queued(out) >= POOL_ITEMS && atomic_exchange(&out->pooling, false))
		wake(out);
}

static void wait_to_be_woken(struct out *out, int timeout_ms)
{
	struct pollfd ready = { .fd = out->wake_fd, .events = POLLIN };
	uint64_t count;

	if (poll(&ready, 1, timeout_ms) > 0 && read(out->wake_fd, &count, sizeof count) < 0) {
		/* Another thread read it: then there is work anyway. */
	}
}

/* Objects are written in batches: waking a thread for each object would cost as much as the probe. */
static void pool(struct out *out)
{
	atomic_store(&out->pooling, true);
	if (queued(out) < POOL_ITEMS && !atomic_load(&out->closing) && !atomic_load(&out->abandoned))
		wait_to_be_woken(out, POOL_MS);
	atomic_store(&out->pooling, false);
}

/* False: the reader is gone, the device is full, or the process must end. */
static bool write_all(struct out *out, const char *bytes, size_t length)
{
	while (length) {
		struct pollfd ready = { .fd = out->fd, .events = POLLOUT };
		ssize_t n;

		if (atomic_load(&out->abandoned))
			return false;
		/*
		 * Asked first, since a write() to a full pipe cannot be left again; the end of the wait is to look at
		 * `abandoned`.
		 */
		if (poll(&ready, 1, 100) < 0 && errno != EINTR)
			goto failed;
		if (!ready.revents)
			continue;
		n = write(out->fd, bytes, length < CHUNK ? length : CHUNK);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			goto failed;
		bytes += n;
		length -= (size_t)n;
		atomic_fetch_add(&out->progress, (size_t)n);
	}
	return true;
failed:
	atomic_store(&out->error, errno);
	stop_request(SIGPIPE);
	return false;
}

/* Collects small objects, so that many of them cost one write. */
static void *writer(void *argument)
{
	struct out *out = argument;
	char batch[CHUNK];
	size_t filled = 0;
	bool alive = true;

	for (;;) {
		struct json *item = ring_take(&out->queue);
		const char *text;
		size_t length;

		if (!item) {
			if (filled && alive)
				alive = write_all(out, batch, filled);
			filled = 0;
			if (atomic_load(&out->abandoned))
				break;
			/*
			 * Announce sleep, then look once more: a producer that put something in between either sees the
			 * flag or is seen.
			 */
			atomic_store(&out->sleeping, true);
			if (!queued(out)) {
				if (atomic_load(&out->closing))
					break;
				wait_to_be_woken(out, -1);
			}
			atomic_store(&out->sleeping, false);
			if (out->objects)
				pool(out);
			continue;
		}
		text = json_text(item, &length);
		if (alive && text && filled + length > sizeof batch) {
			alive = write_all(out, batch, filled);
			filled = 0;
		}
		if (alive && text && length > sizeof batch) {
			alive = write_all(out, text, length);
		} else if (alive && text) {
			memcpy(batch + filled, text, length);
			filled += length;
		}
		atomic_fetch_sub(&out->bytes, length);
		/* Its twin ring is as long as the queue: there is room, always. `end` is not ours to reuse. */
		if (item != out->end)
			ring_put(&out->used, item, RING);
	}
	atomic_store(&out->done, true);
	return NULL;
}

/* An empty object, or NULL (and counted) when the queue has no room. Called with `producers` held. */
static struct json *item_new(struct out *out)
{
	struct json *item = NULL;

	if (atomic_load(&out->bytes) < KTRXER_OUT_BYTES) {
		item = ring_take(&out->used);
		if (!item && out->owned < RING - ROOM_FOR_THE_END) {
			item = json_new(false);
			out->owned += item != NULL;
		}
	}
	if (!item) {
		atomic_fetch_add(&out->dropped, 1);
		return NULL;
	}
	json_reset(item);
	return item;
}

static struct json *item_get(struct out *out)
{
	struct json *item;

	pthread_mutex_lock(&out->producers);
	item = item_new(out);
	pthread_mutex_unlock(&out->producers);
	return item;
}

static void item_put(struct out *out, struct json *item)
{
	size_t length = 0;

	if (!json_text(item, &length))
		atomic_fetch_add(&out->dropped, 1); /* no memory, or badly made: it goes the round empty */
	pthread_mutex_lock(&out->producers);
	atomic_fetch_add(&out->bytes, length);
	ring_put(&out->queue, item, RING); /* fewer objects exist than it has places */
	pthread_mutex_unlock(&out->producers);
	wake_if_asleep(out);
	wake_if_pooling(out);
}

bool out_wants_samples(const struct cli *cli)
{
	return cli->out && cli->out->objects && !cli->out->finished;
}

uint32_t out_room(const struct cli *cli)
{
	struct out *out = cli->out;
	size_t bytes;
	uint32_t items;

	if (!out_wants_samples(cli))
		return 0;
	bytes = atomic_load(&out->bytes);
	items = atomic_load(&out->queue.head) - atomic_load(&out->queue.tail) + ROOM_FOR_THE_END;
	if (bytes >= KTRXER_OUT_BYTES || items >= RING)
		return 0;
	bytes = (KTRXER_OUT_BYTES - bytes) / 512;
	return RING - items < bytes ? RING - items : (uint32_t)bytes;
}

static struct json *object_new(struct cli *cli, const char *type)
{
	struct json *object;

	if (!out_wants_samples(cli))
		return NULL;
	out_start(cli);
	object = item_get(cli->out);
	if (!object)
		return NULL;
	json_object(object, NULL);
	line_type(object, type);
#ifndef KTRXER_SMALL
	if (cli->part)
		line_of(object, cli->part);
#endif
	return object;
}

struct json *out_sample(struct cli *cli, const char *kind)
{
	struct json *object = object_new(cli, "sample");

	if (object)
		sample_kind(object, kind);
	return object;
}

struct json *out_event(struct cli *cli, const char *name)
{
	struct json *object = object_new(cli, "event");

	if (object) {
		event_name(object, name);
		event_time_ns(object, ktrxer_now_ns());
	}
	return object;
}

void out_put(struct cli *cli, struct json *object)
{
	if (!object)
		return;
	json_object_end(object);
	json_line_end(object);
	item_put(cli->out, object);
}

void out_text(struct cli *cli, const char *format, ...)
{
	char line[LINE_MAX_TEXT];
	struct json *item;
	va_list args;
	int length, name = 0;

	if (!cli->out || !cli->out->text)
		return;
	va_start(args, format);
#ifndef KTRXER_SMALL
	if (cli->part)
		name = snprintf(line, sizeof line / 2, "%s: ", cli->part);
#endif
	length = vsnprintf(line + name, sizeof line - 1 - (size_t)name, format, args);
	va_end(args);
	if (length < 0)
		return;
	length += name;
	if ((size_t)length > sizeof line - 2)
		length = sizeof line - 2;
	ktrxer_text_clean(line, true);
	line[length] = '\n';
	item = item_get(cli->out);
	if (!item)
		return;
	json_verbatim(item, line, (size_t)length + 1);
	item_put(cli->out, item);
}

const char *out_rate(char *text, double bit_s)
{
	return bit_s < 1e18 ? ktrxer_format_bitrate(text, bit_s > 0 ? (uint64_t)(bit_s + 0.5) : 0) : "no limit";
}

uint64_t out_dropped(const struct cli *cli)
{
	return cli->out ? atomic_load(&cli->out->dropped) : 0;
}

int out_open(struct cli *cli, int fd)
{
	struct out *out = calloc(1, sizeof *out);
	int ret;

	if (!out)
		return -ENOMEM;
	out->fd = fd;
	out->objects = cli->common.jsonl;
	out->text = !cli->common.json && !cli->common.jsonl && !cli->common.quiet;
	pthread_mutex_init(&out->producers, NULL);
	out->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (out->wake_fd < 0) {
		ret = -errno;
		goto no_wake;
	}
	ret = -ENOMEM;
	out->end = json_new(cli->common.json);
	if (!out->end)
		goto no_end;
	for (; (out->objects || out->text) && out->owned < KTRXER_OUT_SPARE; out->owned++) {
		struct json *spare = json_new(false);

		if (!spare)
			goto no_spare;
		ring_put(&out->used, spare, RING);
	}
	ret = cli_thread_start(&out->writer, "ktrxer-out", writer, out);
	if (ret)
		goto no_spare;
	cli->out = out;
	return 0;

no_spare:
	for (struct json *spare; (spare = ring_take(&out->used));)
		json_free(spare);
	json_free(out->end);
no_end:
	close(out->wake_fd);
no_wake:
	pthread_mutex_destroy(&out->producers);
	free(out);
	return ret;
}

void out_start(struct cli *cli)
{
	struct out *out = cli->out;
	struct json *start;

	if (!out->objects) {
		stop_gives_result(cli->common.json);
		return;
	}
	/*
	 * item_get() would lock later: a second thread must wait until the first has put `start`, which is the first
	 * line.
	 */
	pthread_mutex_lock(&out->producers);
	if (out->started) {
		pthread_mutex_unlock(&out->producers);
		return;
	}
	out->started = true;
	stop_gives_result(true);
	start = item_new(out);
	if (start) {
		size_t length = 0;

		json_object(start, NULL);
		line_type(start, "start");
		record_start(cli, start);
		json_object_end(start);
		json_line_end(start);
		if (!json_text(start, &length))
			atomic_fetch_add(&out->dropped, 1);
		atomic_fetch_add(&out->bytes, length);
		ring_put(&out->queue, start, RING);
	}
	pthread_mutex_unlock(&out->producers);
	wake_if_asleep(out);
}

bool out_finished(const struct cli *cli)
{
	return cli->out->finished;
}

struct json *out_end(struct cli *cli)
{
	struct json *end = cli->out->end;

	out_start(cli);
	json_reset(end);
	json_object(end, NULL);
	line_type(end, "end");
	if (cli->common.json) {
		start_of_end_start_open(end);
		record_start(cli, end);
		json_object_end(end);
	}
	return end;
}

bool out_put_end(struct cli *cli, struct json *object)
{
	struct out *out = cli->out;

	out->finished = true;
	json_object_end(object);
	json_line_end(object);
	if (!json_text(object, NULL))
		return false;
	if (cli->common.json || cli->common.jsonl)
		item_put(out, object);
	return true;
}

#ifndef KTRXER_SMALL
bool out_put_part(struct cli *part, struct json *object)
{
	bool made;

	json_object_end(object);
	json_line_end(object);
	made = json_text(object, NULL);
	if (made && (part->common.json || part->common.jsonl))
		item_put(part->out, object);
	else
		json_free(object);
	return made;
}
#endif

/* A reader that takes something is waited for; one that stalls is left. */
static bool wait_for_reader(struct out *out)
{
	static const struct timespec pause = { .tv_nsec = 2 * 1000 * 1000 };
	uint64_t begin = ktrxer_now_ns(), moved = begin;
	size_t progress = atomic_load(&out->progress);

	while (!atomic_load(&out->done)) {
		uint64_t now = ktrxer_now_ns();
		size_t taken = atomic_load(&out->progress);

		if (taken != progress) {
			progress = taken;
			moved = now;
		}
		if (now - moved >= KTRXER_OUT_STALL_MS * 1000000ull || now - begin >= KTRXER_OUT_END_MS * 1000000ull)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

int out_close(struct cli *cli, int status)
{
	struct out *out = cli->out;
	char word[80];
	int error;

	atomic_store(&out->closing, true);
	wake(out);
	if (!wait_for_reader(out)) {
		cli_complain(cli, "the reader of the output has stalled: what it has not taken by now is lost");
		atomic_store(&out->abandoned, true);
		wake(out);
		/*
		 * The writer may never return from a write() (a terminal that was stopped): the process ends without
		 * it, memory and all.
		 */
		return EXIT_NO_RESULT;
	}
	pthread_join(out->writer, NULL);
	error = atomic_load(&out->error);
	if (error && error != EPIPE) {
		cli_complain(cli, "results could not be written to standard output: %s",
			     ktrxer_strerror(-error, word, sizeof word));
		status = EXIT_NO_RESULT;
	}
	for (struct json *item; (item = ring_take(&out->used));)
		json_free(item);
	json_free(out->end);
	close(out->wake_fd);
	pthread_mutex_destroy(&out->producers);
	free(out);
	cli->out = NULL;
	return status;
}
