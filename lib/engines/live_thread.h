/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads that sit in a call of a live program, and how such a call is ended: by a signal to its thread. */
#ifndef KTRXER_LIB_LIVE_THREAD_H
#define KTRXER_LIB_LIVE_THREAD_H

#include "error.h"

#include <pthread.h>

/*
 * Installs an empty handler for the last unused real-time signal, until the process ends; only the threads of this
 * engine have it unblocked. Returns the signal; -EBUSY: all are used.
 */
int ktrxer_live_signal_choose(struct ktrxer_error *err);

/* The thread blocks all signals, and calls ktrxer_live_thread_prepare() first. */
int ktrxer_live_thread_make(pthread_t *thread, void *(*run)(void *), void *context, struct ktrxer_error *err);
/* `cpu` -1: any. */
void ktrxer_live_thread_prepare(int signal, int cpu);

#endif
