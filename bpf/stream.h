/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory that the stream program and the library share. A stream is a range of numbers of one template, sent as fast as
 * the device takes it by one or more workers, each a call of the program on a thread of its own with maps of its own.
 * The workers take the numbers in chunks from one counter: so none is sent twice, none is left out, and a slower worker
 * takes fewer.
 */
#ifndef KTRXER_BPF_STREAM_H
#define KTRXER_BPF_STREAM_H

#include "live.h"
#include "vary.h"

enum {
	STREAM_CHUNK = 1024,
	STREAM_PENDING = 256,       /* a power of two, at least twice the batch */
	STREAM_BATCH = 64,          /* runs of the program between two flushes */
	STREAM_HEAD = 128,          /* bytes that are written directly; later ones by a call */
	STREAM_WORDS_MAX = 1 << 20, /* of all tables */
};

/* Constant from loading on: the verifier drops what this template does not need. */
struct stream_config {
	__u64 first; /* number of the first probe */
	__u64 retry_ns;
	__u8 traced; /* the tracepoints tell what became of a frame */
	__u8 reserved[7];
	struct vary_plan plan;
	__u8 frame[LIVE_FRAME_MAX] __attribute__((aligned(8)));
};

struct stream_share {
	__u64 taken; /* by workers, in chunks; may pass `count` */
	__u64 count;
	__u32 stop; /* by the library: no more chunks are taken */
	__u8 pad[44];
};

/* One worker's own; written by its program, but for the beginning of a call. Numbers are counted from `first`. */
struct stream_worker {
	__u64 next, chunk_end;
	__u32 submitted, completed; /* into and out of `pending` */
	__u32 again_in, again_out;  /* refused probes wait for their turn in `again` */
	__u32 left;                 /* runs before the next flush */
	__u32 cpu;
	__u64 place[VARY_PARTS],
		rest[VARY_PARTS]; /* of `next`: its place in each part, and how often that has been used */

	__u64 sent, failed, unstamped; /* unstamped: of those sent, those without a stamp */
	__u64 refusals;                /* by the driver */
	__u64 first_ns, last_ns;
	__u64 refused_since_ns;
	__s32 error; /* the last one, positive */
	__u32 reserved;

	__u64 pending[STREAM_PENDING];
	__u64 again[STREAM_PENDING];
};

#endif
