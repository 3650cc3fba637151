/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory that the live program and the library share: three mapped arrays. A probe is a free-running 32-bit number; its
 * slot and its end lie at number & mask.
 *
 *   slots    written by the library before `head` passes them, read by the program (but for `at_ns`, moved by a shift,
 *            and `refused`)
 *   ends     one word a probe: 0 not sent yet, LIVE_SUBMITTED, else how it ended
 *   control  one side's line is not the other's: each poll reads the first line, which changes only with a commit
 */
#ifndef KTRXER_BPF_LIVE_H
#define KTRXER_BPF_LIVE_H

#include <linux/types.h>

enum {
	LIVE_BULK = 16,        /* frames that the kernel hands to a driver with one call (DEV_MAP_BULK_SIZE) */
	LIVE_BATCH_MAX = 64,   /* runs of the program between two flushes */
	LIVE_PENDING = 128,    /* a power of two, twice the batch */
	LIVE_FRAME_MAX = 3072, /* a page less what the kernel keeps in it */
	LIVE_WORKERS = 2,      /* two calls at most: one that works, one that takes over */
};

/* The word of an end: a time in ns on CLOCK_MONOTONIC, or with LIVE_WITHOUT_STAMP a kind and an errno. */
#define LIVE_SUBMITTED 1ULL
#define LIVE_WITHOUT_STAMP (1ULL << 63)
enum live_kind { LIVE_FAILED = 1, LIVE_SKIPPED = 2, LIVE_CANCELLED = 3, LIVE_UNPROVEN = 4 };
#define LIVE_END(kind, error) (LIVE_WITHOUT_STAMP | (unsigned long long)(kind) << 32 | (__u32)(error))

/* Constant from loading on. */
struct live_config {
	__u64 late_most_ns, retry_ns;
	__u32 mask;
	__u32 frame_most;
	__u8 skips, shifts; /* of late probes */
	__u8 times;         /* a probe that has a time is flushed with the run that takes it */
	__u8 traced;        /* the tracepoints tell what became of a frame */
	__u32 reserved;
};

struct live_slot {
	__u64 at_ns; /* 0: at once */
	__u32 length;
	__u32 train; /* how many leave together from this one on, itself included; 1: it leaves alone, or is the last */
	__u32 refused;  /* submissions that came to nothing */
	__u32 restarts; /* the shift begins again at 0 */
	__u32 reserved[2];
	__u8 frame[];
};

struct live_control {
	/* written by the library */
	__u32 head;            /* committed */
	__u32 cancel_to;       /* earlier probes that are not sent yet are cancelled */
	__u32 compensation_ns; /* 32 bits: machines of 32 bits have no larger atomics */
	__u32 reserved;
	__u32 batch[LIVE_WORKERS]; /* as given to the kernel for each call */
	__u8 pad1[40];

	/*
	 * written by the program of the worker that owns the ring; before that, and while no call runs, by the library
	 */
	__u32 tail; /* to be looked at next */
	__u32 head_seen;
	__u32 owner; /* the worker whose turn it is */
	__u32 in_train;
	__u32 submitted, completed; /* into and out of `pending` */
	__u32 cpu;
	__u32 pad2;
	__u64 shift_ns;
	__u64 refused_since_ns;
	__u64 refusals; /* by the driver */
	__u8 pad3[8];

	/* each worker's own */
	struct live_worker {
		__u32 runs; /* of this call, 2^31 at most */
		__u32 left; /* runs before the next flush */
		__u32 mine; /* has seen that it is the owner */
		__u8 pad[52];
	} workers[LIVE_WORKERS];
	__u32 taker;   /* the worker that came last: the owner gives the ring to it */
	__u32 reached; /* makes what others wrote visible: an atomic operation is a barrier */
	__u8 pad4[56];

	__u32 pending[LIVE_PENDING]; /* numbers that are submitted and not completed */
};

#endif
