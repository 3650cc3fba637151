/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_METHODS_SHORT_SLICE_H
#define KTRXER_METHODS_SHORT_SLICE_H

/*
 * Requests the shortest slice (0.1 ms) for this thread. It needs no privilege and does not change the thread's share of
 * a processor: since Linux 6.12 a thread that wakes up with a shorter slice than the running one preempts it. An older
 * kernel ignores the slice. A thread of another policy than SCHED_OTHER stays as it is.
 */
void short_slice(void);

#endif
