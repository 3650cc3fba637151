/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The command's small helpers (writer, watcher): they take no signals, little stack, and no part in what is real-time.
 */
#ifndef KTRXER_CLI_THREAD_H
#define KTRXER_CLI_THREAD_H

#include <pthread.h>

/* 0 or a negative errno. */
int cli_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

#endif
