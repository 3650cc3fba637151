/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that the programs at the far end and the command share: plain structs in mapped arrays. */
#ifndef KTRXER_BPF_FAREND_H
#define KTRXER_BPF_FAREND_H

#include <linux/types.h>

/* Written by the command, read by the programs. Ports in host order; 0: nothing is counted. */
struct farend_config {
	__u32 port;       /* of the probes that count in this turn */
	__u32 cross_port; /* of the cross traffic */
	__u32 slots;      /* stamps that there is room for */
	__u32 near_index; /* of the device that sends; for the calls of its driver */
	__u32 near_netns; /* and the inode of its namespace */
	__u32 reserved;
	__u64 called; /* by the program: frames that bulks have handed to that driver in this turn */
};

/* Counts of one processor; the command adds them up. Times are on CLOCK_MONOTONIC. */
struct farend_counts {
	__u64 probes; /* of the turn, each once */
	__u64 again;  /* a number that had been here before */
	__u64 odd;    /* too short for a number */
	__u64 first_ns, last_ns;
	__u64 timed;       /* of the probes, up to the one at `last_ns`: beyond the slots not each one is stamped */
	__u64 cross;       /* packets of the cross traffic */
	__u64 cross_bytes; /* of IP */
	__u64 cross_first_ns, cross_last_ns;
};

#endif
