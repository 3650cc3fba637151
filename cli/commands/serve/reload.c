/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reload.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A handler has no argument to find its state by. */
static int signal_fd = -1;

static void on_signal(int number)
{
	static const uint64_t one = 1;
	const int saved = errno;

	(void)number;
	(void)!write(signal_fd, &one, sizeof one);
	errno = saved;
}

int reload_open(struct loop *loop, struct loop_source *source)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	int rc;

	source->fd = signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signal_fd < 0)
		return -errno;
	rc = loop_watch(loop, source, EPOLLIN);
	sigemptyset(&action.sa_mask);
	if (rc == 0 && sigaction(SIGHUP, &action, NULL) != 0)
		rc = -errno;
	return rc;
}

void reload_taken(struct loop_source *source)
{
	uint64_t signals;

	(void)!read(source->fd, &signals, sizeof signals);
}

void reload_close(struct loop *loop, struct loop_source *source)
{
	if (source->fd < 0)
		return;
	signal(SIGHUP, SIG_IGN);
	loop_unwatch(loop, source);
	close(source->fd);
	source->fd = signal_fd = -1;
}
