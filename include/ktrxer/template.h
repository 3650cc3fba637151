/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Templates: a frame given once, of which fields vary from probe to probe. Conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_TEMPLATE_H
#define KTRXER_TEMPLATE_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>
#include <ktrxer/tx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What varies. Fields of the headers are found in the frame by their name. */
enum ktx_field {
	KTX_FIELD_BYTES = 0,       /* where `at` and `width` say: any bytes that no length, type or checksum stands in */
	KTX_FIELD_SOURCE = 1,      /* addresses: 4 bytes, or the low 8 of IPv6's 16 (a table has all 16) */
	KTX_FIELD_DESTINATION = 2, /* the frame still goes to the link address that it has */
	KTX_FIELD_SOURCE_PORT = 3,
	KTX_FIELD_DESTINATION_PORT = 4,
	KTX_FIELD_IP_ID = 5,       /* IPv4's identification */
	KTX_FIELD_FLOW_LABEL = 6,  /* IPv6's 20 bits */
	KTX_FIELD_TOS = 7,         /* DSCP and ECN, the whole byte; IPv4 */
	KTX_FIELD_TTL = 8,         /* or hop limit */
	KTX_FIELD_ICMP_ID = 9,     /* of echo requests */
	KTX_FIELD_ICMP_SEQUENCE = 10,
	KTX_FIELD_TCP_SEQUENCE = 11,
	KTX_FIELD_PAYLOAD = 12,    /* `width` bytes, `at` bytes into the payload of UDP, TCP or an echo request */
};

enum ktx_vary_how {
	KTX_VARY_COUNTER = 1, /* from, from + step, ... */
	KTX_VARY_RANDOM = 2,  /* the same values in a pseudo-random order: none comes again before each has been there */
	KTX_VARY_TABLE = 3,   /* as given */
};

/*
 * A field's value depends on the probe's number alone: `place` = (number / every) % count, and then from + step * place, or with
 * KTX_VARY_RANDOM from + step * (where the permutation puts `place`), or the table's entry. So any probe can be made again.
 */
struct ktx_vary {
	enum ktx_field field;
	enum ktx_vary_how how;
	uint32_t at, width;   /* KTX_FIELD_BYTES, KTX_FIELD_PAYLOAD: width 1, 2, 4 or 8 */
	uint64_t from, step;  /* step 0: 1 */
	uint64_t count;       /* of values; 0: up to the largest that the field holds */
	uint64_t every;       /* the value changes after so many probes; 0: after each */
	uint64_t seed;        /* of the order */
	const uint8_t *table; /* count entries of the field's width, in network order; copied */
};

struct ktx_template_options {
	size_t size;
	const uint8_t *frame;     /* copied */
	uint32_t length;
	enum ktrxer_link link;    /* what it begins with (ktx_info.link) */
	const struct ktx_vary *fields;
	size_t field_size;        /* sizeof(struct ktx_vary), which may grow */
	uint32_t field_count;     /* 8 at most; an IPv6 address of a table counts as two */
	bool every_combination;   /* fields whose `every` is 0 change so that together they come to every combination, the first one
				     fastest */
};
#define KTX_TEMPLATE_OPTIONS_INIT { .size = sizeof(struct ktx_template_options), .field_size = sizeof(struct ktx_vary) }

struct ktx_template;
/*
 * -EBADMSG: the frame has no such field; -ERANGE: a value does not fit into it; -EINVAL: fields overlap, or what may not vary would;
 * -EOPNOTSUPP: a checksum that nobody here can keep right (SCTP). Checksums that are right stay right; a UDP checksum of 0 stays 0.
 */
KTRXER_API int ktx_template_new(struct ktx_template **made, const struct ktx_template_options *options, struct ktrxer_error *err);
KTRXER_API void ktx_template_free(struct ktx_template *made);
KTRXER_API uint32_t ktx_template_length(const struct ktx_template *made);
/* How many probes differ from one another before the first comes again; 0: 2^64, or more. */
KTRXER_API uint64_t ktx_template_space(const struct ktx_template *made);
/* The whole frame of this number, which is the same wherever it is made. */
KTRXER_API void ktx_template_fill(const struct ktx_template *made, uint8_t *frame, uint64_t number);

/* Numbers of a template's probes. */
struct ktx_range {
	size_t size;
	uint64_t next;     /* the first; moved on by what was committed */
	uint64_t left;     /* so many; KTRXER_NEVER: until ktx_cancel() */
	uint32_t threads;  /* KTX_CAN_TEMPLATE: so many processors share the range; 0: one. Else there is the pump's alone */
};
#define KTX_RANGE_INIT { .size = sizeof(struct ktx_range), .left = KTRXER_NEVER }

/*
 * Commits probes without a time, as fast as they go. The id of a probe is its number. 0: some, or all; call again while range->left.
 * -EAGAIN: there is no room now, wait as after ktx_reserve(). Else as ktx_commit().
 *
 * An engine that has KTX_CAN_TEMPLATE takes the whole range at once, and makes the frames itself, if the transmitter is for rate and no
 * report of each probe is asked for: there are accounts then, and no reports. One range at a time (-EAGAIN); between it and probes of
 * ktx_commit() there is no order. The template may be freed at once.
 */
KTRXER_API int ktx_template_send(struct ktx *tx, const struct ktx_template *made, struct ktx_range *range, struct ktrxer_error *err);

#ifdef __cplusplus
}
#endif
#endif
