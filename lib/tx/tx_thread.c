/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The thread that pumps, where the caller does not: it sleeps until the next deadline, or until it is woken. */
#include "tx_request.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

static void thread_sleep(struct ktx *tx, uint64_t next)
{
	const bool kernel = tx->engine->kernel;
	struct pollfd fds[2] = { { .fd = tx->wake_fd, .events = POLLIN }, { .fd = -1, .events = kernel ? POLLIN : 0 } };
	uint64_t now;
	struct timespec span = { 0 };
	int rc, error;

	if (tx->pump.starved) {
		/* There was nothing to send: a commit must wake us. Look once more after saying so. */
		atomic_store(&tx->shared.idle, true);
		if (atomic_load(&tx->ring.head) != tx->pump.submitted || atomic_load(&tx->shared.quit)) {
			atomic_store(&tx->shared.idle, false);
			return;
		}
	}
	/* Errors of the network come when all stamps are in, too. Before the first frame there is no socket yet. */
	if (tx->pump.submitted || kernel || stamps_wanted(tx))
		fds[1].fd = tx->engine->event_fd(tx->state);
	now = ktrxer_now_ns();
	if (next <= now && next != KTRXER_NEVER)
		return;
	if (next != KTRXER_NEVER)
		span = ktrxer_span(next - now);
	rc = ppoll(fds, 2, next == KTRXER_NEVER ? NULL : &span, NULL);
	ktrxer_waiter_slept(&tx->pump.waiter, now, rc == 0 ? next : 0, ktrxer_now_ns());
	if (fds[0].revents)
		ktx_signal_clear(tx->wake_fd);
	tx->pump.look = fds[1].revents != 0;
	/*
	 * An error that is no message in the queue (a device that went away) is taken off, or it would wake us for
	 * ever.
	 */
	if (fds[1].revents & POLLERR && !kernel)
		(void)!getsockopt(fds[1].fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof error });
	atomic_store(&tx->shared.idle, false);
}

/* After so long the caches have forgotten the way; so long before the deadline they are reminded of it. */
#define WARM_AFTER_NS 200000
#define WARM_BEFORE_NS 15000

/* False: a cancellation came first. */
static bool spin_until(struct ktx *tx, uint64_t start)
{
	const uint64_t before = WARM_BEFORE_NS + 2 * tx->pump.warm_cost_ns;
	uint64_t now = ktrxer_now_ns();
	bool cold = tx->engine->submit->warm && start - tx->pump.last_call_ns > WARM_AFTER_NS &&
		    before < tx->pump.waiter.margin_ns;

	for (; now < start; now = ktrxer_now_ns()) {
		if (cancel_due(tx))
			return false;
		/* Only with time to spare: a warming that ends after the deadline is worse than none. */
		if (!cold || start - now > before)
			continue;
		cold = false;
		if (start - now > before / 2) {
			tx->engine->submit->warm(tx->state);
			tx->pump.warm_cost_ns = ktrxer_now_ns() - now;
		}
	}
	return true;
}

static void thread_wait(struct ktx *tx, uint64_t next)
{
	const uint64_t start = tx->pump.spin_to_ns, now = ktrxer_now_ns();
	uint64_t nap;

	if (!start || (start > now && start - now > tx->pump.waiter.margin_ns)) {
		thread_sleep(tx, next);
		return;
	}
	if (start > now && (nap = ktrxer_waiter_nap(&tx->pump.waiter, now, start - now)) != 0) {
		thread_sleep(tx, start - nap);
		return;
	}
	ktrxer_waiter_no_rest(&tx->pump.waiter, now);
	if (spin_until(tx, start))
		ktx_pump_start(tx);
}

static void *thread_main(void *context)
{
	struct ktx *tx = context;
	/* Where the kernel waits this thread only looks after it, and keeps off its processor. */
	const bool kernel = tx->engine->kernel;
	const bool spin = tx->options.wait == KTX_WAIT_SPIN && tx->options.purpose == KTX_FOR_TIMING;

	ktrxer_waiter_prepare(&tx->pump.waiter, tx->options.flags, kernel ? -1 : tx->options.cpu, spin);
	if (spin && !kernel && !tx->engine->submit->queue)
		ktrxer_waiter_calibrate(&tx->pump.waiter);
	ktrxer_waiter_show(&tx->pump.waiter);
	pthread_mutex_lock(&tx->lock);
	tx->is_started = true;
	pthread_cond_signal(&tx->started);
	pthread_mutex_unlock(&tx->lock);
	while (!atomic_load(&tx->shared.quit)) {
		uint64_t next;

		ktx_pump_once(tx, &next);
		thread_wait(tx, next);
	}
	return NULL;
}

/* Enough for a batch of error-queue messages, and little enough for a small device. */
#define THREAD_STACK (128 * 1024)

int ktx_thread_start(struct ktx *tx, struct ktrxer_error *err)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_mutex_init(&tx->lock, NULL);
	pthread_cond_init(&tx->started, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	/* Signals are the tool's affair; a handler on this thread would cost a deadline. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&tx->thread, &attr, thread_main, tx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (rc)
		return ktrxer_fail(err, -rc, "no thread for the waiter (%d)", rc);
	tx->has_thread = true;
	pthread_mutex_lock(&tx->lock);
	while (!tx->is_started)
		pthread_cond_wait(&tx->started, &tx->lock);
	pthread_mutex_unlock(&tx->lock);
	return 0;
}

void ktx_thread_stop(struct ktx *tx)
{
	if (!tx->has_thread)
		return;
	atomic_store(&tx->shared.quit, true);
	/* Ends a retry or a spin, too. */
	ktx_cancel(tx);
	pthread_join(tx->thread, NULL);
	tx->has_thread = false;
	pthread_cond_destroy(&tx->started);
	pthread_mutex_destroy(&tx->lock);
}
