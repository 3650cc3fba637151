/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "thread.h"

#include "helper_thread.h"

#include <signal.h>
#include <stddef.h>

/* Locked memory (mlockall) makes every page of a stack resident: a stack of 8 MiB would be the largest thing of all. */
enum { STACK_BYTES = 128 * 1024 };

int cli_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int ret;

	ret = pthread_attr_init(&attr);
	if (ret)
		return -ret;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	helper_thread_policy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(thread, &attr, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!ret)
		pthread_setname_np(*thread, name);
	return -ret;
}
