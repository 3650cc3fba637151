/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * ktrxer.ko: what a program and the module say to each other. This file is the specification; what it does not say is refused.
 *
 * Two devices, independent of each other: /dev/ktx sends frames at their times, /dev/krx gives the packets that its rules ask for.
 * An open file belongs to the network namespace of its opener, who needs CAP_NET_RAW there. Everything that a file holds (timers,
 * probes, rules, memory) goes when the last descriptor of it is closed and the last mapping of it is gone.
 *
 * Conventions
 *   numbers   fixed width, native byte order; 64-bit ones are aligned, so that a 32-bit program sees the same layout.
 *   time      nanoseconds on CLOCK_MONOTONIC.
 *   structs   of an ioctl begin with `size`, the caller's sizeof. New fields come at the end. A module that does not know the last
 *             ones takes the call if they are zero (-E2BIG otherwise); one that knows more takes what is missing as zero.
 *   reserved  must be zero, unknown flags too: -EINVAL.
 *   rings     indices run free, 32 bits; an entry lies at index & (entries - 1). Who publishes an index stores it with release
 *             order, who reads it loads it with acquire order. The module keeps its own copy of all that counts: what stands in a
 *             mapping for the program's information can be overwritten without harm to anybody else.
 *   mappings  one for each file, MAP_SHARED, at offset 0, all of it; it is not inherited by a fork.
 *   faults    a program that publishes what cannot be has broken its file: EPROTO from then on, and poll() says POLLERR.
 */
#ifndef _UAPI_LINUX_KTRXER_H
#define _UAPI_LINUX_KTRXER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KTRXER_MAGIC 0x7278746bU /* "ktxr" in memory, where the least byte comes first */
#define KTRXER_UAPI_VERSION 1         /* raised when a layout changes in a way that older programs cannot take */
#define KTRXER_IOC 0xe9

struct ktrxer_version {
	__u32 magic;
	__u32 version;
	__u32 reserved[2];
};

/* Both devices. */
#define KTRXER_IOC_VERSION _IOR(KTRXER_IOC, 0x00, struct ktrxer_version)

/* =============================================================================================== /dev/ktx: sending
 *
 * KTRXER_TX_SETUP binds the file to a device and makes its ring; mmap() gives it to the program. The program writes a frame and its
 * slot, publishes `head`, and calls KTRXER_TX_KICK: that is the pre-dispatch. The module copies frame and slot, so that what is
 * sent is what was there, and gives the frame to the driver's transmit function at its time: past netfilter and the qdisc.
 *
 * Slot n and report n are the n-th probe's (n & (slots - 1)). Reports come in the order of the slots: report n is there when `tail`
 * has passed n. The frame and the slot of a probe are the module's from `head` on, until then; a program has never more than `slots`
 * of them out (head - tail <= slots).
 */

enum ktrxer_tx_timer {
	KTRXER_TX_TIMER_AUTO = 0,    /* the better one of these two, by trying both on this machine (about 10 ms) */
	KTRXER_TX_TIMER_SOFTIRQ = 1, /* a timer's softirq sends */
	KTRXER_TX_TIMER_THREAD = 2,  /* a hard timer wakes a real-time thread of the file's own, which waits out the rest and sends */
	KTRXER_TX_TIMER_NONE = 3,    /* no timer: KTRXER_TX_KICK sends what is due, and says when the next one is. For rate. */
};

enum ktrxer_tx_late {
	KTRXER_TX_LATE_CATCH_UP = 0, /* a probe whose time has passed is sent at once */
	KTRXER_TX_LATE_SKIP = 1,     /* more than late_ns after its time it is not sent */
	KTRXER_TX_LATE_SHIFT = 2,    /* it and all that follow move by its lateness */
};

enum ktrxer_tx_setup_flag {
	KTRXER_TX_NO_ADVANCE = 1 << 0, /* do not begin a hand-over earlier by what the way to the driver costs, as the stamps show it */
};

#define KTRXER_TX_SLOTS_MAX (1U << 20)
#define KTRXER_TX_FRAME_MAX (65535U + 18)
#define KTRXER_TX_ANY_QUEUE 0xffffffffU
#define KTRXER_TX_ANY_CPU 0xffffffffU

struct ktrxer_tx_setup {
	__u32 size;
	__u32 ifindex;     /* of a device in the file's namespace, which must be up */
	__u32 slots;       /* a power of two, 2 to KTRXER_TX_SLOTS_MAX */
	__u32 frame_size;  /* room for a frame in a slot, 1 to KTRXER_TX_FRAME_MAX */
	__u32 timer;       /* enum ktrxer_tx_timer; returned: the one that is used */
	__u32 late;        /* enum ktrxer_tx_late */
	__u32 queue;       /* of the device; KTRXER_TX_ANY_QUEUE: that of the processor that sends */
	__u32 cpu;         /* that sends; KTRXER_TX_ANY_CPU: the module's choice; returned: the one that it is */
	__u32 flags;       /* enum ktrxer_tx_setup_flag */
	__u32 reserved;
	__aligned_u64 late_ns;  /* later than this is late */
	__aligned_u64 retry_ns; /* a frame that the driver refuses is tried again for so long, 10 s at most */
	/* Returned. */
	__aligned_u64 map_size;      /* bytes to map */
	__u32 ring_offset;      /* struct ktrxer_tx_ring, 0 */
	__u32 slots_offset;     /* struct ktrxer_tx_slot each */
	__u32 reports_offset;   /* struct ktrxer_tx_report each */
	__u32 frames_offset;
	__u32 frame_stride;     /* bytes from one frame to the next */
	__u32 lead_ns;          /* waiting begins that much before the time, as measured now */
	__u32 softirq_late_ns;  /* as measured for KTRXER_TX_TIMER_AUTO: how late each way came to its turn, the worst of some; 0: not tried */
	__u32 thread_late_ns;
};

/* Page 0 of the mapping. Each side writes its own line of 128 bytes. */
struct ktrxer_tx_ring {
	/* Made by KTRXER_TX_SETUP, for information. */
	__u32 magic, version;
	__u32 slots, frame_stride;
	__u32 slots_offset, reports_offset, frames_offset, reserved0;
	__u32 pad0[24];
	/* The program's. */
	__u32 head;       /* slots before it are published */
	__u32 seen;       /* reports before it have been read; poll() says POLLIN while tail != seen */
	__u32 advance_ns; /* hand over that much earlier, 50 us at most: for what lies behind the driver, which the module cannot see */
	__u32 pad1[29];
	/* The module's. */
	__u32 tail;       /* reports before it are there */
	__u32 error;      /* errno that has ended this file's sending (ENETDOWN, ENODEV, EPROTO); 0: none */
	__u32 lead_ns;    /* now */
	__u32 pad2[29];
};

enum ktrxer_tx_slot_flag {
	KTRXER_TX_TRAIN = 1 << 0, /* the next slot's probe leaves back to back with this one, by the same call where the device takes it */
};

struct ktrxer_tx_slot {
	__aligned_u64 at_ns; /* 0: at once, after what is before it */
	__u32 length;        /* of the frame, from the device's link header on */
	__u32 flags;         /* enum ktrxer_tx_slot_flag */
};

enum ktrxer_tx_status {
	KTRXER_TX_SENT = 1,      /* the driver took it */
	KTRXER_TX_FAILED = 2,    /* error says why */
	KTRXER_TX_SKIPPED = 3,   /* too late, and the policy is to skip */
	KTRXER_TX_CANCELLED = 4,
};

struct ktrxer_tx_report {
	__aligned_u64 sent_ns;    /* just before the driver's transmit function was called, the time that it was */
	__aligned_u64 planned_ns; /* at_ns, moved by KTRXER_TX_LATE_SHIFT */
	__u32 call_ns;            /* how long that function took, 4 s at most */
	__u32 tries;              /* calls of it, and looks at a queue that was stopped */
	__u16 status;             /* enum ktrxer_tx_status */
	__u16 reserved;
	/*
	 * Negative errno of a failure: -ENOBUFS the queue stayed full, -ENOLINK no carrier, -EMSGSIZE longer than the MTU allows,
	 * -EINVAL no frame of this link, -ENETDOWN, -ENODEV, -ENOMEM, -EPROTO, -EIO the driver dropped it.
	 */
	__s32 error;
};

struct ktrxer_tx_kick {
	__u32 size;
	__u32 cancel;             /* 1: all probes before cancel_to that are not sent yet end as cancelled */
	__u32 cancel_to;
	__u32 reserved;
	__aligned_u64 next_ns;    /* returned, KTRXER_TX_TIMER_NONE: the time of the next probe, ~0: there is none */
};

/*
 * SETUP, once a file: -EBUSY the second time, -ENODEV no such device, -ENETDOWN it is down, -EOPNOTSUPP its frames cannot be made
 * here, -ENOMEM no memory for that many slots. KICK: -ENXIO before SETUP; -EPROTO, -ENETDOWN, -ENODEV once that has happened
 * (all that is published has a report then, or gets one with the next call). None of them waits for a probe's time.
 */
#define KTRXER_TX_SETUP _IOWR(KTRXER_IOC, 0x10, struct ktrxer_tx_setup)
#define KTRXER_TX_KICK _IOWR(KTRXER_IOC, 0x11, struct ktrxer_tx_kick)

/* ============================================================================================= /dev/krx: receiving */

#endif
