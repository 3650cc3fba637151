/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads that only compute: the load under which a host is measured. */
#ifndef KTRXER_METHODS_BUSY_THREADS_H
#define KTRXER_METHODS_BUSY_THREADS_H

#include <stdint.h>

enum { BUSY_THREADS_MOST = 4096 };

struct busy_threads;

/* Returns the number of processors that this process may use; 1 at least. */
uint32_t busy_threads_processors(void);
/* 0; -ENOMEM; -EAGAIN: the kernel does not start so many. *threads is NULL then. */
int busy_threads_start(struct busy_threads **threads, uint32_t count);
/* Ends and frees them. */
void busy_threads_stop(struct busy_threads *threads);

#endif
