/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * ktrxer.ko: the interface between a program and the module. This file is the specification; the
 * module refuses everything that this file does not describe.
 *
 * Two devices, independent of each other: /dev/ktx sends frames at their times, /dev/krx captures
 * packets by rules. An open file belongs to the network namespace of its opener, which needs
 * CAP_NET_RAW there; timers need CAP_NET_RAW in the initial user namespace, of the opener and of
 * the caller of SETUP. Everything that a file holds (timers, probes, rules, memory) is released
 * when the last descriptor of the file is closed and its last mapping is removed.
 *
 * Conventions
 *   numbers   fixed width, native byte order; 64-bit ones are aligned, so that a 32-bit program
 *             sees the same layout.
 *   time      nanoseconds on CLOCK_MONOTONIC.
 *   structs   of an ioctl begin with `size`, the caller's sizeof. New fields come at the end. A
 *             module without the last ones accepts the call if they are zero (-E2BIG otherwise); a
 *             module with further ones takes the missing ones as zero.
 *   reserved  must be zero, unknown flags too: -EINVAL.
 *   rings     indices run free, 32 bits; an entry lies at index & (entries - 1). An index is
 *             stored with release order and loaded with acquire order. The module keeps its own
 *             copy of each value that it uses: a program can overwrite the values in its mapping
 *             without harm to other programs.
 *   mappings  one for each file, MAP_SHARED, the whole length, at the offset that SETUP returns
 *             (`map_offset`: 0 unless the processor's caches need addresses of one colour); a
 *             child process does not inherit the mapping.
 *   memory    charged to the memory cgroup of the caller of SETUP, and to RLIMIT_MEMLOCK of its
 *             user (all files of the user together), unless the caller has CAP_IPC_LOCK: -ENOMEM.
 *   faults    a program that publishes an invalid index has broken its file: EPROTO from then on,
 *             and poll() returns POLLERR.
 */
#ifndef _UAPI_LINUX_KTRXER_H
#define _UAPI_LINUX_KTRXER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KTRXER_MAGIC 0x7278746bU /* "ktxr" in memory, where the least byte comes first */
/* Raised when a layout changes so that older programs do not work with it. */
#define KTRXER_UAPI_VERSION 2
#define KTRXER_IOC 0xe9

/**
 * struct ktrxer_version - answer of KTRXER_IOC_VERSION
 * @magic: KTRXER_MAGIC
 * @version: KTRXER_UAPI_VERSION
 * @reserved: 0
 */
struct ktrxer_version {
	__u32 magic;
	__u32 version;
	__u32 reserved[2];
};

/**
 * enum ktrxer_feature - features that a module may have
 * @KTRXER_FEATURE_PROBE_QUEUE: KTRXER_TX_QUEUE
 * @KTRXER_FEATURE_PROBE_USER: `user` of slot and report
 * @KTRXER_FEATURE_EGRESS: netfilter's egress hooks see each probe
 * @KTRXER_FEATURE_BUDGET: sending takes 75 % of a processor at most
 * @KTRXER_FEATURE_GENERATION: records name the table of rules that captured them
 * @KTRXER_FEATURE_EVENTS: poll() reports each change of the device once
 *
 * The features of this module. A newer module sets more bits and fills more fields.
 */
enum ktrxer_feature {
	KTRXER_FEATURE_PROBE_QUEUE = 1 << 0,
	KTRXER_FEATURE_PROBE_USER = 1 << 1,
	KTRXER_FEATURE_EGRESS = 1 << 2,
	KTRXER_FEATURE_BUDGET = 1 << 3,
	KTRXER_FEATURE_GENERATION = 1 << 4,
	KTRXER_FEATURE_EVENTS = 1 << 5,
};

/**
 * struct ktrxer_features - argument of KTRXER_IOC_FEATURES: the features of this module
 * @size: sizeof the struct in the caller's headers
 * @reserved: 0
 * @features: enum ktrxer_feature
 * @clocks: bit n: clock id n is accepted as ktrxer_tx_setup.clock
 * @slots_max: slots of a ring at most
 * @frame_max: bytes of a frame at most
 * @rules_max: rules of a table at most
 * @list_max: rules with wildcards or prefixes at most
 */
struct ktrxer_features {
	__u32 size;
	__u32 reserved;
	__aligned_u64 features;
	__aligned_u64 clocks;
	__u32 slots_max, frame_max;
	__u32 rules_max, list_max;
};

/* Both devices. A command is chosen by its number alone, since the size in it may grow. */
#define KTRXER_IOC_VERSION _IOR(KTRXER_IOC, 0x00, struct ktrxer_version)
#define KTRXER_IOC_FEATURES _IOWR(KTRXER_IOC, 0x01, struct ktrxer_features)

/* =============================================================================== /dev/ktx: sending
 *
 * KTRXER_TX_SETUP binds the file to a device and makes its ring; mmap() gives it to the program.
 * The program writes a frame and its slot, publishes `head`, and calls KTRXER_TX_KICK ahead of the
 * send time. The module copies frame and slot, so that later writes do not change the probe, and
 * passes the frame to the driver's transmit function at its time: past the qdisc, after
 * netfilter's egress hooks.
 *
 * Slot n and report n belong to probe n (index n & (slots - 1)). Reports are written in the order
 * of the slots: report n is valid when `tail` has passed n. The module owns the frame and the slot
 * of a probe from the time at which `head` has passed it until its report; at most `slots` probes
 * are between `tail` and `head` (head - tail <= slots).
 */

/**
 * enum ktrxer_tx_timer - how the send times are kept
 * @KTRXER_TX_TIMER_AUTO: the better one of the next two, by trying both on this machine (about
 *   10 ms)
 * @KTRXER_TX_TIMER_SOFTIRQ: a timer's softirq sends
 * @KTRXER_TX_TIMER_THREAD: a hard timer wakes a real-time thread of the file's own, which spins
 *   for the rest of the time and sends
 * @KTRXER_TX_TIMER_NONE: no timer: KTRXER_TX_KICK sends the probes that are due, and returns the
 *   time of the next probe. For rate. KICK runs in the caller's own time, under the rules of the
 *   scheduler, so the budget below does not apply.
 *
 * The time for which both timers of all files spin and send is three quarters of a processor at
 * most: after 1.2 ms of work at once, the sender rests, and then after each further 180 us of work.
 * A rest takes 60 us. A thread on a machine that takes more than 14 us to wake it up rests for
 * three times the wake-up margin that SETUP measured, 400 us at most, each time after three times
 * as much work. Probes whose time falls into a rest are sent after it.
 */
enum ktrxer_tx_timer {
	KTRXER_TX_TIMER_AUTO = 0,
	KTRXER_TX_TIMER_SOFTIRQ = 1,
	KTRXER_TX_TIMER_THREAD = 2,
	KTRXER_TX_TIMER_NONE = 3,
};

/**
 * enum ktrxer_tx_late - policy for late probes
 * @KTRXER_TX_LATE_CATCH_UP: a probe whose time has passed is sent at once
 * @KTRXER_TX_LATE_SKIP: a probe is not sent when its time passed more than late_ns ago
 * @KTRXER_TX_LATE_SHIFT: the late probe and all later ones move by its lateness
 */
enum ktrxer_tx_late {
	KTRXER_TX_LATE_CATCH_UP = 0,
	KTRXER_TX_LATE_SKIP = 1,
	KTRXER_TX_LATE_SHIFT = 2,
};

/**
 * enum ktrxer_tx_setup_flag - flags of a transmitter
 * @KTRXER_TX_NO_COMPENSATION: no transmit latency compensation: begin a submission at its time, not
 *   earlier by the median latency up to the stamp
 */
enum ktrxer_tx_setup_flag {
	KTRXER_TX_NO_COMPENSATION = 1 << 0,
};

#define KTRXER_TX_SLOTS_MAX (1U << 20)
#define KTRXER_TX_FRAME_MAX (65535U + 18)
#define KTRXER_TX_ANY_QUEUE 0xffffffffU
#define KTRXER_TX_ANY_CPU 0xffffffffU

/**
 * struct ktrxer_tx_setup - argument of KTRXER_TX_SETUP: a device and a ring
 * @size: sizeof the struct in the caller's headers
 * @ifindex: of a device in the file's namespace, which must be up
 * @slots: a power of two, 2 to KTRXER_TX_SLOTS_MAX
 * @frame_size: room for a frame in a slot, 1 to KTRXER_TX_FRAME_MAX
 * @timer: enum ktrxer_tx_timer; returned: the one that is used
 * @late: enum ktrxer_tx_late
 * @queue: of the device; KTRXER_TX_ANY_QUEUE: that of the processor that sends
 * @cpu: the processor that sends; KTRXER_TX_ANY_CPU: the module chooses; returned: the one in use
 * @flags: enum ktrxer_tx_setup_flag
 * @clock: of at_ns, late_ns and all returned times: CLOCK_MONOTONIC (1), others are -EOPNOTSUPP
 * @late_ns: later than this is late
 * @retry_ns: a frame that the driver refuses is tried again for so long, 10 s at most
 * @map_size: bytes to map
 * @map_offset: of mmap()
 * @slots_offset: struct ktrxer_tx_slot each
 * @reports_offset: struct ktrxer_tx_report each
 * @frames_offset: of the frames in the mapping
 * @frame_stride: bytes from one frame to the next
 * @margin_ns: the wait begins that much before the time, as measured now
 * @softirq_late_ns: as measured for KTRXER_TX_TIMER_AUTO: the largest lateness of a softirq in
 *   some trials; 0: not tried
 * @thread_late_ns: the same of a thread
 */
struct ktrxer_tx_setup {
	__u32 size;
	__u32 ifindex;
	__u32 slots;
	__u32 frame_size;
	__u32 timer;
	__u32 late;
	__u32 queue;
	__u32 cpu;
	__u32 flags;
	__u32 clock;
	__aligned_u64 late_ns;
	__aligned_u64 retry_ns;
	/* Returned. */
	__aligned_u64 map_size;
	__u32 map_offset;
	__u32 slots_offset;
	__u32 reports_offset;
	__u32 frames_offset;
	__u32 frame_stride;
	__u32 margin_ns;
	__u32 softirq_late_ns;
	__u32 thread_late_ns;
};

/**
 * struct ktrxer_tx_ring - page 0 of the mapping of /dev/ktx
 * @magic: KTRXER_MAGIC
 * @version: KTRXER_UAPI_VERSION
 * @slots: entries of the ring
 * @frame_stride: bytes from one frame to the next
 * @slots_offset: of the slots in the mapping
 * @reports_offset: of the reports in the mapping
 * @frames_offset: of the frames in the mapping
 * @reserved0: 0
 * @pad0: 0
 * @head: slots before it are published
 * @seen: reports before it have been read; poll() returns POLLIN while tail != seen
 * @compensation_ns: submit that much earlier, 50 us at most: for the latency behind the driver,
 *   which the module cannot measure
 * @pad1: 0
 * @tail: reports before it are written
 * @error: errno that has ended this file's sending (ENETDOWN, ENODEV, EPROTO); 0: none
 * @margin_ns: the present wake-up margin
 * @guard_ns: the present time before a submission with interrupts off; 0: they stay on
 * @pad2: 0
 *
 * Page 0 of the mapping. Each side writes its own line of 128 bytes.
 */
struct ktrxer_tx_ring {
	/* Made by KTRXER_TX_SETUP, for information. */
	__u32 magic, version;
	__u32 slots, frame_stride;
	__u32 slots_offset, reports_offset, frames_offset, reserved0;
	__u32 pad0[24];
	/* The program's. */
	__u32 head;
	__u32 seen;
	__u32 compensation_ns;
	__u32 pad1[29];
	/* The module's. */
	__u32 tail;
	__u32 error;
	__u32 margin_ns;
	__u32 guard_ns;
	__u32 pad2[28];
};

/**
 * enum ktrxer_tx_slot_flag - flags of a probe
 * @KTRXER_TX_TRAIN: the next slot's probe leaves back to back with this one, by the same call
 *   where the device takes it
 * @KTRXER_TX_QUEUE: by `queue`, not by the file's one
 */
enum ktrxer_tx_slot_flag {
	KTRXER_TX_TRAIN = 1 << 0,
	KTRXER_TX_QUEUE = 1 << 1,
};

/**
 * struct ktrxer_tx_slot - a probe
 * @at_ns: 0: at once, after the probes before it
 * @user: chosen by the program; copied to the report
 * @length: of the frame, from the device's link header on
 * @flags: enum ktrxer_tx_slot_flag
 * @queue: of the device, with KTRXER_TX_QUEUE; else 0
 * @reserved: 0
 */
struct ktrxer_tx_slot {
	__aligned_u64 at_ns;
	__aligned_u64 user;
	__u32 length;
	__u32 flags;
	__u32 queue;
	__u32 reserved;
};

/**
 * enum ktrxer_tx_status - how a probe ended
 * @KTRXER_TX_SENT: the driver took it
 * @KTRXER_TX_FAILED: `error` has the reason
 * @KTRXER_TX_SKIPPED: too late, and the policy is to skip
 * @KTRXER_TX_CANCELLED: a KICK cancelled it
 */
enum ktrxer_tx_status {
	KTRXER_TX_SENT = 1,
	KTRXER_TX_FAILED = 2,
	KTRXER_TX_SKIPPED = 3,
	KTRXER_TX_CANCELLED = 4,
};

/**
 * struct ktrxer_tx_report - the end of a probe
 * @sent_ns: the time just before the driver's transmit function was called
 * @planned_ns: at_ns, moved by KTRXER_TX_LATE_SHIFT
 * @user: of the slot
 * @call_ns: duration of that call, 4 s at most
 * @tries: calls of that function, and tries that found the queue stopped
 * @status: enum ktrxer_tx_status
 * @reserved: 0
 * @error: Negative errno of a failure: -ENOBUFS the queue stayed full, -ENOLINK no carrier,
 *   -EMSGSIZE longer than the MTU allows (a VLAN tag adds its 4 bytes), -EINVAL no frame of this
 *   link or no such queue, -EPERM dropped or kept by a rule of netfilter's egress hook, -ENETDOWN,
 *   -ENODEV, -ENOMEM, -EPROTO, -EIO the driver dropped it.
 * @queue: of the device, to which the probe was submitted
 * @reserved1: 0
 */
struct ktrxer_tx_report {
	__aligned_u64 sent_ns;
	__aligned_u64 planned_ns;
	__aligned_u64 user;
	__u32 call_ns;
	__u32 tries;
	__u16 status;
	__u16 reserved;
	__s32 error;
	__u32 queue;
	__u32 reserved1;
};

/**
 * struct ktrxer_tx_kick - argument of KTRXER_TX_KICK: commit, send or cancel
 * @size: sizeof the struct in the caller's headers
 * @cancel: 1: all probes before cancel_to that are not sent yet end as cancelled; waits for no
 *   other call
 * @cancel_to: number of the first probe that is kept
 * @reserved: 0
 * @next_ns: returned, KTRXER_TX_TIMER_NONE: the time of the next probe, ~0: no next probe
 */
struct ktrxer_tx_kick {
	__u32 size;
	__u32 cancel;
	__u32 cancel_to;
	__u32 reserved;
	__aligned_u64 next_ns;
};

/*
 * SETUP, once for each file: -EBUSY the second time, -ENODEV no such device, -ENETDOWN the device
 * is down, -EOPNOTSUPP the module has no support for the link type of the device, -ENOMEM no memory
 * for that many slots, -EPERM a timer without CAP_NET_RAW on the host. KICK: -EINTR a signal came,
 * -ENXIO before SETUP; -EPROTO, -ENETDOWN, -ENODEV after that event (all published probes have a
 * report then, or get one with the next call). No call waits for a probe's time.
 */
#define KTRXER_TX_SETUP _IOWR(KTRXER_IOC, 0x10, struct ktrxer_tx_setup)
#define KTRXER_TX_KICK _IOWR(KTRXER_IOC, 0x11, struct ktrxer_tx_kick)

/* ============================================================================= /dev/krx: receiving
 *
 * KTRXER_RX_SETUP binds the file to a device and makes its ring; mmap() gives it to the program.
 * KTRXER_RX_RULES sets a table of rules: from then on the rules judge packets. A table replaces the
 * former one at once; each packet is judged by one table. A captured packet becomes a record
 * between tail and head, for which poll() returns POLLIN.
 *
 * The first rule of the array that fits decides. A hash finds rules with whole 5-tuples, however
 * many there are; the other rules are compared one after another. A packet that no rule fits goes
 * on.
 *
 * How a packet is read: behind two VLAN tags (one that the device removed counts) and 16 IPv6
 * extension headers. A fragment after the first, a truncated header and wrong lengths leave a
 * packet without ports: then only rules without ports fit. A packet that is not IP fits only a rule
 * with wildcards alone.
 */

#define KTRXER_RX_RULES_MAX 16384	/* in one table */
#define KTRXER_RX_LIST_MAX 1024 /* with wildcards or prefixes: each costs some ns for a packet */
#define KTRXER_RX_RING_MIN 4096
#define KTRXER_RX_RING_MAX (1U << 30)
#define KTRXER_RX_SNAP_MAX 262144
#define KTRXER_RX_EXTENSIONS_MAX 16

/**
 * enum ktrxer_rx_hook - the place in the stack where the rules judge packets
 * @KTRXER_RX_INGRESS: of one device: all packets that arrive, before bridges and IP
 * @KTRXER_RX_PREROUTING: IPv4 and IPv6 packets that pass IP's first checks, of one device or
 *   (ifindex 0) of all
 *
 * Both hooks are after the taps (tcpdump shows packets that are dropped), and after the merging of
 * packets (GRO).
 */
enum ktrxer_rx_hook {
	KTRXER_RX_INGRESS = 1,
	KTRXER_RX_PREROUTING = 2,
};

/**
 * enum ktrxer_rx_op - what a rule does with a packet
 * @KTRXER_RX_CAPTURE: a copy into the ring; the packet goes on
 * @KTRXER_RX_DROP: the packet goes no further
 * @KTRXER_RX_CAPTURE_DROP: both
 * @KTRXER_RX_FORWARD: it goes on, and is counted
 */
enum ktrxer_rx_op {
	KTRXER_RX_CAPTURE = 1,
	KTRXER_RX_DROP = 2,
	KTRXER_RX_CAPTURE_DROP = 3,
	KTRXER_RX_FORWARD = 4,
};

/* While the file is open the device also receives packets with other destination addresses. */
#define KTRXER_RX_PROMISCUOUS (1U << 0)

/**
 * struct ktrxer_rx_setup - argument of KTRXER_RX_SETUP: a device and a ring
 * @size: sizeof the struct in the caller's headers
 * @flags: KTRXER_RX_PROMISCUOUS
 * @hook: enum ktrxer_rx_hook
 * @ifindex: the device
 * @snap: bytes of a packet that are kept, link header included; 0: all
 * @ring_bytes: in: for records; out: the next power of two
 * @map_bytes: length for mmap()
 * @tail_offset: of the __u32 that the reader writes
 * @data_offset: of the records
 * @map_offset: of mmap()
 * @reserved: 0
 */
struct ktrxer_rx_setup {
	__u32 size;
	__u32 flags;
	__u32 hook;
	__u32 ifindex;
	__u32 snap;
	__u32 ring_bytes;
	/* out */
	__u32 map_bytes;
	__u32 tail_offset;
	__u32 data_offset;
	__u32 map_offset;
	__u32 reserved[2];
};

/**
 * struct ktrxer_rx_rule - a rule
 * @op: enum ktrxer_rx_op
 * @family: 4, 6; 0: any, both addresses are wildcards
 * @proto: after extension headers; 0: any
 * @from_prefix: bits that count; those behind are 0. 0: any address of the family
 * @to_prefix: as @from_prefix
 * @reserved: 0
 * @from_port: network order; 0: any
 * @to_port: network order; 0: any
 * @from: address in network order; an IPv4 one has four bytes
 * @to: as @from
 *
 * A wildcard is 0. Addresses and ports are in network order; an IPv4 address is in the first four
 * bytes.
 */
struct ktrxer_rx_rule {
	__u8 op;
	__u8 family;
	__u8 proto;
	__u8 from_prefix;
	__u8 to_prefix;
	__u8 reserved[3];
	__be16 from_port;
	__be16 to_port;
	__u8 from[16];
	__u8 to[16];
};

/**
 * struct ktrxer_rx_rules - argument of KTRXER_RX_RULES: a table of rules
 * @size: sizeof the struct in the caller's headers
 * @count: number of rules; 0 removes all rules
 * @rules: pointer to struct ktrxer_rx_rule[count]
 * @rule_size: sizeof(struct ktrxer_rx_rule)
 * @generation: in: 0; out: of this table, in its records. 1 for the first table of the file
 */
struct ktrxer_rx_rules {
	__u32 size;
	__u32 count;
	__aligned_u64 rules;
	__u32 rule_size;
	__u32 generation;
};

/**
 * struct ktrxer_rx_stats - argument of KTRXER_RX_STATS: counters
 * @size: sizeof the struct in the caller's headers
 * @count: in: room in `matched`; out: rules in force
 * @matched: pointer to __u64[count]: packets that each rule decided since its table was set; 0: not
 *   requested
 * @captured: records written
 * @lost: packets to be captured for which there was no room: captured + lost is the sum over rules
 *   that capture
 * @state: enum ktrxer_rx_state
 * @generation: of the rules in force; 0: none yet
 */
struct ktrxer_rx_stats {
	__u32 size;
	__u32 count;
	__aligned_u64 matched;
	/* out, since open() */
	__aligned_u64 captured;
	__aligned_u64 lost;
	__u32 state;
	__u32 generation;
};

/**
 * enum ktrxer_rx_state - the state of the device
 * @KTRXER_RX_UP: the device receives
 * @KTRXER_RX_DOWN: the device is down, and may come up again
 * @KTRXER_RX_GONE: deleted, or in another namespace: final. poll(): EPOLLHUP
 */
enum ktrxer_rx_state {
	KTRXER_RX_UP = 0,
	KTRXER_RX_DOWN = 1,
	KTRXER_RX_GONE = 2,
};

/**
 * struct ktrxer_rx_ring - the first page of the mapping of /dev/krx
 * @magic: KTRXER_MAGIC
 * @version: KTRXER_UAPI_VERSION
 * @tail_offset: in the mapping, of the __u32 that the reader writes
 * @data_offset: in the mapping, of the records
 * @data_bytes: of the records
 * @state: enum ktrxer_rx_state
 * @lost: the low 32 bits of ktrxer_rx_stats.lost
 * @events: changes of `state`
 * @reserved: 0
 * @head: begin of the next record: wraps at 2^32, the position is head % data_bytes. Load-acquire
 *
 * The kernel writes this page and never reads it.
 */
struct ktrxer_rx_ring {
	__u32 magic;
	__u32 version;
	__u32 tail_offset, data_offset, data_bytes;
	__u32 state;
	__u32 lost;
	__u32 events;
	__u32 reserved[8];
	__u32 head;
};

/*
 * The reader's page begins with a __u32, the tail: records before it may be overwritten.
 * Store-release. A second __u32 is the number of events (`events`) that the reader has read: poll()
 * returns EPOLLPRI, and EPOLLERR unless the device is up, while the two differ. An invalid tail
 * (more than data_bytes behind the head) counts as a full ring until the reader writes a valid one.
 * A reader that has lost its position continues with tail = head; the module writes the head with
 * each packet.
 */

/* No packet, but padding up to the end of the ring: only `size` and `flags` are valid. */
#define KTRXER_RX_PAD (1U << 0)
/* The device had removed the outer VLAN tag; the tag is in the packet again. */
#define KTRXER_RX_TAGGED (1U << 1)
/* The device has no Ethernet header: `data` begins with IP. */
#define KTRXER_RX_RAW_IP (1U << 2)
/* No arrival stamp: the time was read in the hook. */
#define KTRXER_RX_LATE (1U << 3)

/**
 * struct ktrxer_rx_record - a captured packet
 * @size: of the whole record, up to the next one
 * @flags: KTRXER_RX_PAD and the others above
 * @rule: index of the rule in the table
 * @ifindex: of the device on which the packet arrived
 * @length: of the packet, link header and tag included
 * @kept: bytes of the packet in `data`
 * @real_ns: arrival, CLOCK_REALTIME: the stamp that taps show
 * @mono_ns: the same instant on CLOCK_MONOTONIC: exact, unless the clock was set at that moment
 * @tci: of the tag that the device had removed
 * @direction: 0 to this host, 1 broadcast, 2 multicast, 3 to another host
 * @reserved: 0
 * @generation: of the table of `rule`
 * @data: the packet
 *
 * A record begins at a multiple of 8.
 */
struct ktrxer_rx_record {
	__u32 size;
	__u32 flags;
	__u32 rule;
	__u32 ifindex;
	__u32 length;
	__u32 kept;
	__s64 real_ns;
	__aligned_u64 mono_ns;
	__u16 tci;
	__u8 direction;
	__u8 reserved;
	__u32 generation;
	__u8 data[];
};

/*
 * SETUP, once for each file: -EBUSY the second time, -ENODEV no such device, -ENOMEM no memory for
 * that ring. RULES: -ENXIO before SETUP, -EPERM a rule drops and the caller or the opener has no
 * CAP_NET_ADMIN, -E2BIG too many rules, -ENODEV the device was removed, -EOPNOTSUPP the kernel has
 * no ingress hook. A refused call leaves the table unchanged.
 */
#define KTRXER_RX_SETUP _IOWR(KTRXER_IOC, 0x40, struct ktrxer_rx_setup)
#define KTRXER_RX_RULES _IOWR(KTRXER_IOC, 0x41, struct ktrxer_rx_rules)
#define KTRXER_RX_STATS _IOWR(KTRXER_IOC, 0x42, struct ktrxer_rx_stats)

#endif
