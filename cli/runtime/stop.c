/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A handler and an event descriptor, not a signalfd: the second Ctrl-C must work when no thread reads descriptors any
 * more. Handlers have no argument to find their state by, so here (and only here) state is global.
 */
#include "stop.h"

#include "cli.h"
#include "thread.h"
#include "units.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { END_OF_INPUT = -1, FIRST_MS = 100 };
enum { RESULT_NEVER, RESULT_AFTER_FIRST_MS, RESULT_NOW };

static atomic_int reason, signals_seen, result_follows;
static uint64_t first_end_ns;
static int fd = -1;

void stop_request(int why)
{
	static const uint64_t one = 1;
	int none = 0, saved = errno;

	if (atomic_compare_exchange_strong(&reason, &none, why) && fd >= 0 && write(fd, &one, sizeof one) < 0) {
		/* Nothing to be done: a first write to an empty eventfd does not fail. */
	}
	errno = saved;
}

void stop_gives_result(bool now)
{
	atomic_store(&result_follows, now ? RESULT_NOW : RESULT_AFTER_FIRST_MS);
}

/* Ctrl-C before there is anything to report. */
static bool ends_in_silence(int number)
{
	int follows = atomic_load(&result_follows);

	return number == SIGINT &&
	       (follows == RESULT_NEVER || (follows == RESULT_AFTER_FIRST_MS && ktrxer_now_ns() < first_end_ns));
}

static void on_signal(int number)
{
	if (ends_in_silence(number) ||
	    (atomic_fetch_add(&signals_seen, 1) > 0 && (number == SIGINT || number == SIGTERM))) {
		/* After the second signal, too, the process ends as if there had been no handler. */
		if (signal(number, SIG_DFL) == SIG_ERR || raise(number)) /* the filter of `serve` permits neither */
			_exit(128 + number);
		return;
	}
	stop_request(number);
}

int stop_open(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, before;

	atomic_store(&reason, 0);
	first_end_ns = ktrxer_now_ns() + FIRST_MS * (uint64_t)KTRXER_NS_PER_MS;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		/* Ignored on purpose by the parent: nohup, or a shell's background job. */
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_IGN)
			continue;
		if (sigaction(signals[i], &action, NULL))
			return -errno;
	}
	return fd;
}

static void *watch_input(void *argument)
{
	char sink[512];
	ssize_t n;

	do
		n = read(STDIN_FILENO, sink, sizeof sink);
	while (n > 0 || (n < 0 && errno == EINTR));
	stop_request(END_OF_INPUT);
	return argument;
}

int stop_watch_input(void)
{
	pthread_t thread;
	int ret = cli_thread_start(&thread, "ktrxer-input", watch_input, NULL);

	if (!ret)
		pthread_detach(thread);
	return ret;
}

static int reason_now(void)
{
	return atomic_load(&reason);
}

int cli_stopped(const struct cli *cli)
{
	(void)cli;
	return reason_now();
}
