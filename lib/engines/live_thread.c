/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define WORKER_NICE (-20)
#define WORKER_STACK (128 * 1024)

static void signal_nothing(int number)
{
	(void)number; /* its arrival alone ends the call */
}

int ktrxer_live_signal_choose(struct ktrxer_error *err)
{
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--) {
		struct sigaction now, ours = { .sa_handler = signal_nothing };

		if (sigaction(number, NULL, &now) != 0)
			continue;
		if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == signal_nothing)
			return number;
		if (now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL)
			continue;
		if (sigaction(number, &ours, NULL) == 0)
			return number;
	}
	return ktrxer_fail(
		err, -EBUSY,
		"every real-time signal of this process is in use: the live engine needs one to end its calls");
}

void ktrxer_live_thread_prepare(int signal, int cpu)
{
	sigset_t set;
	cpu_set_t cpus;

	prctl(PR_SET_NAME, "ktx-live", 0, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	/* Counts where real time is refused, or not asked for. */
	(void)!setpriority(PRIO_PROCESS, 0, WORKER_NICE);
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	(void)!sched_setaffinity(0, sizeof cpus, &cpus);
}

int ktrxer_live_thread_make(pthread_t *thread, void *(*run)(void *), void *context, struct ktrxer_error *err)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WORKER_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, &attr, run, context);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc ? ktrxer_fail(err, -rc, "no thread for the live engine (%d)", rc) : 0;
}
