/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libktrxer: probes that leave on time, and the proof of it.
 *
 * A transmitter (ktx) sends whole frames at absolute times through one engine and reports, for each probe, when it left,
 * by whose word, and how late. A template makes frames that differ in some of their fields. A receiver (krx) gives the packets that its rules ask for, with the kernel's own stamps.
 * The two are independent of each other.
 *
 * Conventions
 *   time      64-bit nanoseconds on CLOCK_MONOTONIC, unless a name says otherwise (_real_ns: CLOCK_REALTIME).
 *   errors    a negative errno comes back; where a call takes a struct ktrxer_error it is filled with one line for a person:
 *             what failed, where, what now. The library never prints and never exits.
 *   NULL      a required pointer that is NULL is -EINVAL (no effect, 0 or "" where no errno can come back). A call that fails leaves NULL in
 *             the pointer that it was to fill.
 *   options   structs begin with `size`; initialise them with their _INIT macro. New fields come at the end: what a smaller struct does not
 *             have counts as zero, and a byte other than zero behind the end of this library's struct is -E2BIG. Values and flags that this
 *             version does not know are -EINVAL.
 *   results   structs that the library fills have a fixed size for ever. Their `reserved` words are zero; new fields take their place.
 *   threads   one thread at a time may call into one ktx (or one krx). The waiter thread that a ktx may own is its own affair.
 */
#ifndef KTRXER_H
#define KTRXER_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>
#include <ktrxer/rx.h>
#include <ktrxer/schedule.h>
#include <ktrxer/template.h>
#include <ktrxer/tx.h>

#endif
