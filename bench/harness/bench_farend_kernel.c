/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The judge by a receiver of our own library: a copy of each packet, with the kernel's stamp. A thread reads along. */
#include "bench_farend_impl.h"

#include "bytes.h"
#include "error.h"
#include "thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	SNAP = 128, /* headers and the number */
	RING_BYTES = 64 << 20,
	LIMIT = 4096, /* packets between two looks at whether to end */
};

struct kernel_state {
	struct krx *rx;
	pthread_t thread;
	bool running;
	int wake_fd;
	pthread_mutex_t lock; /* of what follows; the reader holds it while it empties the ring */
	uint16_t port, cross_port;
	struct farend_result so_far;
};

static void take(struct farend *f, struct kernel_state *s, const struct krx_packet *p)
{
	struct farend_result *r = &s->so_far;
	struct ktrxer_frame_view view;
	const uint8_t *payload;
	uint64_t number;
	uint16_t port;

	(void)ktrxer_frame_read(&view, p->data, p->length, (enum ktrxer_link)p->link);
	if (view.proto != KTRXER_UDP || !view.ports)
		return;
	port = view.to_port;
	if (port && port == s->cross_port) {
		if (!r->cross++)
			r->cross_first_ns = p->mono_ns;
		r->cross_last_ns = p->mono_ns;
		r->cross_bytes += p->original_length - view.network;
		return;
	}
	if (!port || port != s->port)
		return;
	if (view.transport + 16u > p->length) {
		r->odd++;
		return;
	}
	payload = p->data + view.transport + 8;
	number = load_be64(payload);
	if (number < f->slots) {
		if (f->arrivals[number]) {
			r->again++;
			return;
		}
		f->arrivals[number] = p->mono_ns;
	}
	if (!r->probes++)
		r->first_ns = p->mono_ns;
	r->last_ns = p->mono_ns;
	r->timed = r->probes;
}

static void *read_along(void *argument)
{
	struct farend *f = argument;
	struct kernel_state *s = f->state;
	struct pollfd fds[2] = { { .fd = s->wake_fd, .events = POLLIN }, { .fd = krx_fd(s->rx), .events = POLLIN } };

	for (;;) {
		struct krx_packet packet;
		int n = poll(fds, 2, -1);

		if ((n < 0 && errno != EINTR) || fds[0].revents)
			return NULL;
		pthread_mutex_lock(&s->lock);
		for (int i = 0; i < LIMIT && (n = krx_next(s->rx, &packet)) > 0; i++)
			take(f, s, &packet);
		pthread_mutex_unlock(&s->lock);
		if (n < 0)
			return NULL;
	}
}

static void kernel_close(struct farend *f)
{
	struct kernel_state *s = f->state;
	uint64_t one = 1;

	if (!s)
		return;
	if (s->running && write(s->wake_fd, &one, sizeof one) == sizeof one)
		pthread_join(s->thread, NULL);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	krx_close(s->rx);
	pthread_mutex_destroy(&s->lock);
	free(f->arrivals);
	f->arrivals = NULL;
	free(s);
	f->state = NULL;
}

static int kernel_open(struct farend *f, const struct bench_net *net, const struct farend_options *o,
		       struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	struct krx_rule rule = { .op = KRX_CAPTURE, .proto = KTRXER_UDP };
	struct kernel_state *s = calloc(1, sizeof *s);
	int rc;

	(void)o;
	f->arrivals = calloc(f->slots, sizeof *f->arrivals);
	if (!s || !f->arrivals) {
		free(s);
		return ktrxer_fail(err, -ENOMEM, "no memory for the far end");
	}
	f->state = s;
	pthread_mutex_init(&s->lock, NULL);
	options.device = net->far_device;
	options.snap_length = SNAP;
	options.ring_bytes = RING_BYTES;
	s->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (s->wake_fd < 0) {
		rc = ktrxer_fail(err, -errno, "no descriptor for the far end");
		goto fail;
	}
	if ((rc = krx_open(&s->rx, &options, &rule, 1, err)) < 0)
		goto fail;
	if ((rc = cli_thread_start(&s->thread, "bench-far", read_along, f)) < 0) {
		ktrxer_fail(err, rc, "no thread for the far end");
		goto fail;
	}
	s->running = true;
	return 0;

fail:
	kernel_close(f);
	return rc;
}

static void kernel_begin(struct farend *f, uint16_t port, uint16_t cross_port)
{
	struct kernel_state *s = f->state;

	pthread_mutex_lock(&s->lock);
	s->so_far = (struct farend_result){ 0 };
	memset(f->arrivals, 0, (size_t)f->slots * sizeof *f->arrivals);
	s->port = port;
	s->cross_port = cross_port;
	pthread_mutex_unlock(&s->lock);
}

static void kernel_read(struct farend *f, struct farend_result *r)
{
	struct kernel_state *s = f->state;

	pthread_mutex_lock(&s->lock);
	*r = s->so_far;
	pthread_mutex_unlock(&s->lock);
}

static void kernel_end(struct farend *f)
{
	struct kernel_state *s = f->state;

	pthread_mutex_lock(&s->lock);
	s->port = 0;
	pthread_mutex_unlock(&s->lock);
}

const struct farend_judge farend_kernel = {
	.name = "kernel",
	.open = kernel_open,
	.close = kernel_close,
	.begin = kernel_begin,
	.read = kernel_read,
	.end = kernel_end,
};
