/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Receivers: rules, packets, time stamps. The conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_RX_H
#define KTRXER_RX_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>

#ifdef __cplusplus
extern "C" {
#endif

enum krx_op { KRX_CAPTURE = 1, KRX_DROP = 2, KRX_CAPTURE_DROP = 3, KRX_FORWARD = 4 };

struct krx_rule {
	enum krx_op op;
	uint8_t proto;                  /* IP protocol number; 0: any */
	struct ktrxer_addr from, to;    /* family 0: any */
	uint8_t from_prefix, to_prefix; /* bits that count */
	uint16_t from_port, to_port;    /* 0: any. For ICMP there are no ports */
	uint32_t priority;              /* smaller first; equal: the earlier rule first */
};

/*
 * "OP PROTO from ADDR[:PORT] to ADDR[:PORT] [prio N]", e.g. "capture udp from any to 192.0.2.0/24:53". 0, or -EINVAL.
 */
KTRXER_API int krx_rule_parse_sized(struct krx_rule *rule, size_t size, const char *text, struct ktrxer_error *err);
static inline int krx_rule_parse(struct krx_rule *rule, const char *text, struct ktrxer_error *err)
{
	return krx_rule_parse_sized(rule, sizeof *rule, text, err);
}
#define KRX_RULE_TEXT 192
/* Writes the rule in the form that krx_rule_parse() reads, and returns `text`. */
KTRXER_API const char *krx_rule_format_sized(const struct krx_rule *rule, size_t size, char text[KRX_RULE_TEXT]);
static inline const char *krx_rule_format(const struct krx_rule *rule, char text[KRX_RULE_TEXT])
{
	return krx_rule_format_sized(rule, sizeof *rule, text);
}

enum ktrxer_stamp_clock {
	KTRXER_CLOCK_REALTIME = 1,
	KTRXER_CLOCK_MONOTONIC = 2,
	KTRXER_CLOCK_TAI = 3,
	KTRXER_CLOCK_PHC = 4,
};
enum ktrxer_stamp_source { KTRXER_STAMP_NIC = 1, KTRXER_STAMP_XDP = 2, KTRXER_STAMP_KERNEL = 3, KTRXER_STAMP_USER = 4 };

struct krx_packet {
	const uint8_t *data;      /* from the link header on; valid until the next krx_next() or krx_close() */
	uint32_t length;          /* bytes here */
	uint32_t original_length; /* bytes on the link */
	uint64_t mono_ns;         /* arrival on CLOCK_MONOTONIC */
	int64_t raw_ns;           /* the stamp as its clock had it */
	uint32_t bound_ns;        /* error of the conversion; UINT32_MAX: the NIC's stamp could not be converted, and
				     mono_ns is the time at which the driver delivered the packet */
	uint8_t clock;            /* enum ktrxer_stamp_clock of raw_ns */
	uint8_t source;           /* enum ktrxer_stamp_source */
	uint8_t direction;        /* 0 to this host, 1 broadcast, 2 multicast, 3 to another host, 4 sent by this host */
	uint8_t vlan_present;     /* 1: the kernel had removed a tag, and data contains it again, as with libpcap */
	uint16_t vlan_tci;        /* of that tag */
	uint32_t rule;            /* index of the rule that captured it */
	uint32_t device;          /* index of the device that received it */
	uint8_t link;             /* enum ktrxer_link: the first header of data */
};

/*
 * The rules must not interrupt this connection: its packets come from `from`:`from_port` to this host's `to`:`to_port`.
 */
struct krx_session {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port;
};

struct krx_options {
	size_t size;
	const char *device;   /* NULL: all */
	const char *backend;  /* NULL or "auto"; "packet", "xdp", "module", "nftables", "module-prerouting" */
	uint32_t snap_length; /* 0: whole packets */
	uint32_t ring_bytes;  /* 0: 8 MiB */
	bool promiscuous;
	bool see_outgoing; /* also what this host sends */
	bool force;        /* accept rules that drop everything, or packets of one of `sessions` */
	bool nic_stamps;   /* switch the NIC's stamps on; else they are used where they are on. krx_stats.note names
				 devices without */
	const struct krx_session *sessions; /* TCP connections that the rules must not interrupt, e.g. the user's own
					       login */
	uint32_t session_count;
	/* Of one element of `sessions`, and of the rules of krx_open(). Both may grow: the same policy as for `size` */
	size_t session_size, rule_size;
};
#define KRX_OPTIONS_INIT                                                                           \
	{                                                                                          \
		.size = sizeof(struct krx_options), .session_size = sizeof(struct krx_session),    \
		.rule_size = sizeof(struct krx_rule)                                               \
	}

struct krx;
/*
 * Installs the rules, then opens the device: a packet from before the rules is never delivered. At least one rule. 0;
 * -EPERM: no privilege, or a rule that needs `force`; -EBUSY: another XDP program is attached to the device; -E2BIG:
 * too many rules for the back end; -ENODEV, -ENETDOWN: the device; -EOPNOTSUPP: the back end does not work on this
 * device or kernel.
 */
KTRXER_API int krx_open(struct krx **rx, const struct krx_options *options, const struct krx_rule *rules, int count,
			struct ktrxer_error *err);
/* Removes the rules. Packets that were not read are lost. */
KTRXER_API void krx_close(struct krx *rx);
/*
 * Checks whether the back end `module` works here: opens /dev/krx and closes it, and changes nothing. 0, or a negative
 * errno: the kernel module is not loaded, of another version, or not for this user; err says what helps.
 */
KTRXER_API int krx_module_check(struct ktrxer_error *err);
/*
 * Writes the list of krx_stats.preceded_by for rules at the ingress hook of the device (the back ends module and
 * nftables), cut to `size` bytes with its NUL. Rules of the back end xdp come before all of it but other XDP programs.
 * 0; -ENODEV: there is no such device; -EINVAL: no buffer or no device is given; -EOPNOTSUPP: a small build, or a link
 * that this library does not support; another negative errno: the kernel does not list them.
 */
KTRXER_API int krx_preceding(char *text, size_t size, const char *device, struct ktrxer_error *err);
/*
 * The descriptor stays open and the same until krx_close(). Readable while packets or a change of the device wait: use
 * it level-triggered (poll(), epoll without EPOLLET).
 */
KTRXER_API int krx_fd(const struct krx *rx);
/* 1 and a packet; 0: no packet waits; -ENETDOWN: the device went down; -ENODEV: it was removed. */
KTRXER_API int krx_next_sized(struct krx *rx, struct krx_packet *packet, size_t size);
static inline int krx_next(struct krx *rx, struct krx_packet *packet)
{
	return krx_next_sized(rx, packet, sizeof *packet);
}

struct krx_rule_stats {
	uint64_t matched, captured, dropped; /* captured: delivered by krx_next(). Matched, but not captured and not
						lost: still waits */
};
struct krx_stats {
	const char *backend;
	bool before_taps;     /* a packet that it drops does not reach tcpdump */
	bool after_gro;       /* GRO may have merged several packets into one */
	uint64_t lost;        /* captured by a rule, but the ring was full */
	uint64_t clock_steps; /* of CLOCK_REALTIME since krx_open() */
	const char *mode;     /* of XDP: "native" (in the driver) or "generic"; of the module: "ingress", "prerouting";
				 else "" */
	const char *why;      /* why this back end was chosen */
	const char *note;     /* limitations and their reasons; "": none. Valid until the next krx_stats() or
				 krx_close() */
	/* programs and sockets that saw packets of the device before the rules at the start, e.g. "XDP program 12
	   (generic), 2 taps, 1 tc filter"; "": nothing, or no device was named */
	const char *preceded_by;
};
/* The counters now, also of the first `count` rules, in the order in which they were given. 0, or a negative errno. */
KTRXER_API int krx_stats_sized(struct krx *rx, struct krx_stats *stats, size_t size, struct krx_rule_stats *rules,
			       size_t rule_size, int count);
static inline int krx_stats(struct krx *rx, struct krx_stats *stats, struct krx_rule_stats *rules, int count)
{
	return krx_stats_sized(rx, stats, sizeof *stats, rules, sizeof *rules, count);
}

#ifdef __cplusplus
}
#endif
#endif
