/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A handler and an event descriptor, not a signalfd: the second Ctrl-C must work when no thread reads descriptors any
 * more. Handlers have no argument to find their state by, so here (and only here) state is global.
 */
#include "stop.h"

#include "cli.h"
#include "thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { END_OF_INPUT = -1 };

static atomic_int reason, signals_seen;
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

static void on_signal(int number)
{
	if (atomic_fetch_add(&signals_seen, 1) > 0 && (number == SIGINT || number == SIGTERM)) {
		/* The second one: the user has waited enough. End as if there had been no handler. */
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	stop_request(number);
}

int stop_open(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, before;

	atomic_store(&reason, 0);
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
