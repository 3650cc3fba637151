/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every limit of the library, in one place. A number here has a reason beside it. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winclude-next-absolute-path"
#pragma clang diagnostic ignored "-Winclude-next-outside-header"
#endif
#include_next <limits.h>
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#ifndef KTRXER_LIMITS_H
#define KTRXER_LIMITS_H

enum ktrxer_limits {
	/* transmitter */
	KTX_SLOTS_DEFAULT = 1024,
	KTX_SLOTS_MAX = 1 << 20, /* 2 GiB of full frames */
	KTX_BATCH_MAX = 64,      /* frames of one sendmmsg: beyond it nothing is gained (zmap PR 751) */
	KTX_FRAME_MAX = 65535 + 18,
	KTX_LATE_DEFAULT_NS = 100 * 1000,
	KTX_RETRY_DEFAULT_NS = 10 * 1000 * 1000,
	KTX_STAMP_WAIT_NS = 100 * 1000 *
		1000, /* a stamp of a device that never stamped holds reports back by at most this */
	/* the driver's stamp of a packet that has entered the packet scheduler: a longer own queue is not measured */
	KTX_OWN_QUEUE_WAIT_S = 3,
	KTX_SCHED_WAITING = 1
		<< 16, /* probes that can wait for their stamps at once, a power of two: a second at 64 kpps */
	/* the NIC's stamp after the driver's: most come within a millisecond, and some NICs drop them when busy */
	KTX_NIC_WAIT_NS = 10 * 1000 * 1000,
	KTX_BUFFER_WAIT_NS = 1000 * 1000 * 1000, /* the same for a frame that the kernel does not give back */

	/* later wake-ups of the handing side than that are stalls; submitted requests cannot be cancelled */
	KTX_QUEUE_AHEAD_NS = 10 * 1000 * 1000,
	KTX_QUEUE_EARLY_NS = 50 *
		1000, /* a frame that leaves this much before its launch time was not delayed by the queue */

	KTX_NETWORK_ERRORS = 64, /* a power of two */

	/* waiter */
	KTX_MARGIN_MIN_NS = 20 * 1000,
	KTX_MARGIN_MAX_NS = 1000 * 1000,  /* a longer spin is a busy core, not precision */
	KTX_MARGIN_PRIOR_NS = 200 * 1000, /* with it the median is about 1 us where nothing was calibrated */
	KTX_CALIBRATION_ROUNDS = 24,
	KTX_COMPENSATION_MAX_NS = 50 *
		1000, /* a submission that costs more is not early-started, it is a slow machine */
	KTX_COMPENSATION_GRAIN_NS = 50,
	KTX_REALTIME_REST_NS = 300 * 1000 * 1000, /* sched_rt_runtime_us allows 950 ms; well before it */

	/* resolution */
	KTRXER_NEIGHBOUR_TIMEOUT_MS = 1000,
	KTRXER_NETLINK_BUFFER = 32768,
	KTRXER_NETLINK_BATCH = 16 << 20, /* one transaction of nftables */
	KTRXER_NETLINK_DUMP_TRIES = 4,   /* of a table that changes while it is read */

	/* schedule */
	KTRXER_TRAIN_MAX = 1 << 20,
	KTRXER_LIST_MAX = 1 << 24, /* offsets of a list: 128 MiB, 16 million probes */
	KTRXER_LIST_FILE_MAX = 256
		<< 20,               /* bytes of its file, comments included; also the end of a pipe that never ends */
	KTRXER_LIST_LINE_MAX = 4096, /* a longer line is not text */

	/* estimates from files */
	KTRXER_PPT_SAMPLES_MAX = 1 << 24, /* gaps of a file, or packets of a capture: 200 to 270 MB */
	KTRXER_PPT_LINE_MAX = 128,        /* a size, a gap and blanks */

	/* parser */
	KTRXER_IPV6_EXTENSIONS_MAX = 16, /* no program sends more; a hostile packet could hold a thousand */

	/* capture files */
	KTRXER_CAPTURE_BLOCK_MAX = 1 << 20, /* of a block that must be held in memory: a packet and its comments */
	KTRXER_CAPTURE_INTERFACES_MAX = 4096,

	/* receiver */
	KRX_RULES_MAX = 16384,
	KRX_LIST_MAX = 1024, /* with wildcards or prefixes: every back end compares them one after another */
	KRX_RING_DEFAULT = 8 << 20,
	KRX_SESSIONS_MAX = 1024,
	KRX_RING_MAX = 1 << 30,
	KRX_SNAP_MAX = 262144,
	/* of the ring: larger packets (jumbo, merged by GRO) go by the socket's queue instead of making it shallow */
	KRX_SLOT_MAX = 4096,
	KRX_QUEUE_BYTES = 4 << 20, /* for those: some sixty of the largest */
	KRX_SCAN_MAX = 4096, /* packets that one krx_next() looks at before it lets its caller do something else */
	/*
	 * A packet reaches its place in the queue this long after its stamp, if its processor is taken away meanwhile.
	 */
	KRX_STAMP_BEFORE_NS = 20 * 1000 * 1000,
	KRX_CLOCK_AGE_NS = 10 * 1000 * 1000, /* between two samples of the clocks; a step is noticed that late */
	KRX_STAMPS_ON_NS = 2 * 1000 * 1000,  /* the kernel switches arrival stamps on by deferred work */
	KRX_QUEUES_MAX = 64,                 /* receive queues that get an AF_XDP socket of their own */
	KRX_NOTE = 320,
	KRX_HEADERS_SNAP = 256, /* link, IP and transport headers with room for options: what matching a rule needs */

	/* server */
	KTRXER_PORT = 8620, /* TCP and UDP; among 8616 to 8664, which IANA has not assigned; STAMP's own is 862 */
	KTRXER_LIMITER_BUCKETS = 8192,    /* 128 KiB; a power of two */
	KTRXER_REFLECTOR_SESSIONS = 4096, /* 4.8 MiB, of which idle places take none; a power of two */
	KTRXER_REFLECTOR_LEFT =
		64, /* stamps of answers that no follow-up has reported yet: many when a queue of this host drains */
	KTRXER_REFLECTOR_SEQUENCES = 256, /* of a session, in which copies of requests are found: a power of two */
	KTRXER_REFLECTOR_UNIT =
		512, /* bytes that cost as much as one small answer: a flood of large ones is 42 Mbit/s, not 737 */
	KTRXER_REFLECTOR_GROUPS = 4096,     /* prefixes, by hash, whose sessions are counted; a power of two */
	KTRXER_REFLECTOR_BURST_MS = 100,    /* of --max-answer-bitrate: so long the limit of all may be exceeded */
	KTRXER_REFLECTOR_PACKET_MAX = 9216, /* jumbo frames; longer ones are not answered */
	KTRXER_REFLECTOR_TLVS_MAX = 64,     /* of one packet that are looked at; the rest is sent back as it came */
	KTRXER_REFLECTOR_IDLE_S = 300,      /* a session without packets for so long is forgotten */
	KTRXER_REFLECTOR_TRIAL_S = 10,      /* and so is one of fewer than 16 packets, which forged addresses make */
	KTRXER_SERVE_BATCH = 64,            /* packets of one recvmmsg */
	KTRXER_SERVE_ADDRESSES = 16,        /* --bind */

	/* server: its log and its metrics */
	KTRXER_LOG_RATE = 1,      /* lines a second about the clients of one /24 or /56 */
	KTRXER_LOG_BURST = 20,    /* so many at once */
	KTRXER_LOG_ALL_RATE = 20, /* about all clients without the token: 250 MB a day at most */
	KTRXER_LOG_ALL_BURST = 200,
	KTRXER_METRICS_CONNECTIONS = 4,
	KTRXER_METRICS_PATIENCE_S = 5,
#ifdef KTRXER_SMALL
	KTRXER_SERVER_EXTRAS = 0, /* the small static program has no room for log, metrics, reload and passed sockets */
#else
	KTRXER_SERVER_EXTRAS = 1,
#endif

	/* server and client: flows (docs/reference/control.md) */
	KTRXER_CONTROL_PENDING = 256, /* connections that have not stated their purpose yet */
	KTRXER_CONTROL_GROUPS = 256,  /* prefixes, by hash, whose waiting connections are counted; a power of two */
	KTRXER_CONTROL_NEW = 32,      /* control connections that have not shown the token */
	KTRXER_CONTROL_HELLO_S = 10,  /* and so long they may take for it */
	KTRXER_CONTROL_RATE = 20,     /* control connections a second from each /24 and /56: guesses at the token */
	KTRXER_CONTROL_BURST = 100,
	KTRXER_CONTROL_TRUSTED = 64,     /* addresses whose clients have proven the token */
	KTRXER_CONTROL_TRUSTED_S = 3600, /* their STAMP packets may be marked so long */
	KTRXER_CONTROL_CONNECT_S = 60,   /* for all the flows of a session to be connected, and then to be started */
	KTRXER_CONTROL_SILENCE_S =
		30, /* a client that says nothing for so long is gone; a full queue holds pings back for seconds */
	KTRXER_CONTROL_AFTER_S = 60, /* between the end of the last flow and that of the session */
	KTRXER_CONTROL_LEAVE_S = 2,  /* a refusal has so long to arrive */
	KTRXER_CONTROL_SAMPLES_BYTES = 256
		<< 10, /* of samples that wait for a slow client; more are counted and dropped */
	KTRXER_FLOW_FLOWS_MOST = 16384,
	KTRXER_FLOW_UDP_MOST = 64,        /* UDP flows of one client: each has a transmitter of its own */
	KTRXER_FLOW_UDP_BYTES = 64 << 20, /* of the packets that all these transmitters hold ready */
	KTRXER_FLOW_SAMPLE_MIN_NS = 1000 * 1000,
	KTRXER_FLOW_SAMPLE_MAX_S =
		3600, /* a longer interval is no series; and times near 2^64 ns would pass it at once */
	KTRXER_FLOW_SAMPLES_S = 50000,  /* samples a second of all flows of a client */
	KTRXER_FLOW_SETTLE_S = 2,       /* a receiver whose time is over waits for the sender's end */
	KTRXER_FLOW_REPORTED_MS = 1000, /* and after the sender said that it has ended, for what is on its way */
	KTRXER_FLOW_QUEUE_S = 20,       /* a receiver of UDP waits for what is queued on its way at most so long */
	KTRXER_TRAIN_MOST = 1000,       /* packets of one train */
	KTRXER_TRAIN_BYTES = 2 << 20,   /* and their payload: 2^24 bits times 10^9 stay within 64 bits */
	KTRXER_FLOW_WORD_S =
		5, /* one that was cut off waits for the sender's word on that, while the control connection lives */

	/* command: output */
	KTRXER_OUT_ITEMS = 4096,    /* objects that wait for a slow reader; power of two */
	KTRXER_OUT_BYTES = 1 << 20, /* and their bytes: resident memory stays below 2 MB */
	KTRXER_OUT_SPARE = 64,      /* of which this many are there from the start, so that probing allocates nothing */
	KTRXER_OUT_STALL_MS = 2000, /* at the end: a reader that takes no byte for so long is given up */
	KTRXER_OUT_END_MS = 30000,  /* and so is one that takes them, but this slowly */
	KTRXER_REASONS_MAX = 32,    /* sentences beside a verdict */

	/* command: when to begin */
	KTRXER_START_AHEAD_MS = 50,       /* --start-at: back this early, so that the first probe is prepared in time */
	KTRXER_START_AHEAD_MAX_S = 86400, /* later is a wrong unit */
	KTRXER_FLOOD_PPS = 10000,         /* a higher rate towards public addresses needs --flood */
	KTRXER_HOST_WATCH_MS = 250,       /* between two looks at /proc/stat */
};

#endif
