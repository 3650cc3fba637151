/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_LIB_HELPER_THREAD_H
#define KTRXER_LIB_HELPER_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A thread with these attributes is not real-time, whatever its creator is: a real-time helper would delay the probes.
 * Any other policy is inherited, because only a privileged thread leaves SCHED_IDLE.
 */
static inline void helper_thread_policy(pthread_attr_t *attr)
{
	const struct sched_param none = { 0 };
	int priority; /* struct sched_param of the kernel */

	/* The function of musl always fails, and pthread_getschedparam() of glibc returns an earlier value. */
	if (syscall(SYS_sched_getparam, 0, &priority) == 0 && priority == 0)
		return;
	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &none);
}

#endif
