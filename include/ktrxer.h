/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libktrxer: sends probes at their scheduled times, and reports for each one when it left.
 *
 * A transmitter (ktx) sends whole frames at absolute times through one engine. It reports for each probe when it left,
 * how late that was, and where the time stamp was taken. A template makes frames that differ in some of their fields. A
 * receiver (krx) delivers the packets that match its rules, with the kernel's or the NIC's time stamps. Transmitters
 * and receivers do not depend on each other.
 *
 * Conventions. They hold for each function, unless its own comment says otherwise.
 *   time      64-bit nanoseconds on CLOCK_MONOTONIC. A name with _real_ns: CLOCK_REALTIME. A name with _ns that is
 *             signed: a difference.
 *   lengths   bytes.
 *   errors    A function that can fail returns a negative errno. If it has a parameter struct ktrxer_error, it fills
 *             that with one line: what failed, on what object, why, what to do. The parameter may be NULL. The library
 *             never prints and never exits.
 *   NULL      A required pointer that is NULL is -EINVAL; where no errno can be returned there is no effect, and the
 *             result is 0 or "". A call that fails writes NULL to the pointer that it was to fill. Functions that close
 *             or free accept NULL.
 *   arrays    An array is passed with the number of its elements; a negative number is -EINVAL, and NULL is allowed
 *             with 0.
 *   options   Structs of options begin with `size`; initialise them with their _INIT macro. New fields are added at the
 *             end: a field that a smaller struct lacks counts as zero, and a byte other than zero behind the end of
 *             this library's struct is -E2BIG. Values and flags that this version does not know are -EINVAL. Structs
 *             and strings are copied, and need to exist during the call only.
 *   results   A function that fills a struct of the caller, or an array of them, has the name _sized and a parameter
 *             `size`, sizeof one struct; the inline function of the same name without _sized passes it. A struct may
 *             grow at its end: the library fills the fields that the caller's struct has, fields that this library
 *             does not know are zero, and no byte behind `size` is written. A size of 0 is like NULL. Programs in
 *             other languages call the functions _sized. ktrxer_addr and ktrxer_error never grow.
 *   strings   A string in a result is constant for ever, or exists until the object is closed.
 *   threads   A function without an object may be called by any thread at any time. Of the functions of one object
 *             (ktx, krx, schedule, histogram, template) one runs at a time, in any thread; templates are constant, so
 *             several threads may read one. A transmitter may have a thread of its own, which these functions
 *             synchronise with.
 *   blocking  A function may block for as long as its system calls do. ktx_reserve(), ktx_commit(), ktx_reports(),
 *             ktx_pump() and krx_next() never wait for an event.
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
