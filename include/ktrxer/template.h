/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Templates: a frame of which fields vary from probe to probe. The conventions are in <ktrxer.h>, which includes this.
 */
#ifndef KTRXER_TEMPLATE_H
#define KTRXER_TEMPLATE_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>
#include <ktrxer/tx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library finds the fields of the headers in the frame. */
enum ktx_field {
	KTX_FIELD_BYTES = 0,       /* `width` bytes at `at`, if they contain no length, type or checksum */
	KTX_FIELD_SOURCE = 1,      /* addresses: 4 bytes, or the low 8 of IPv6's 16 (a table has all 16) */
	KTX_FIELD_DESTINATION = 2, /* the link address stays */
	KTX_FIELD_SOURCE_PORT = 3,
	KTX_FIELD_DESTINATION_PORT = 4,
	KTX_FIELD_IP_ID = 5,      /* IPv4's identification */
	KTX_FIELD_FLOW_LABEL = 6, /* IPv6's 20 bits */
	KTX_FIELD_TOS = 7,        /* DSCP and ECN, the whole byte; IPv4 */
	KTX_FIELD_TTL = 8,        /* or hop limit */
	KTX_FIELD_ICMP_ID = 9,    /* of echo requests */
	KTX_FIELD_ICMP_SEQUENCE = 10,
	KTX_FIELD_TCP_SEQUENCE = 11,
	KTX_FIELD_PAYLOAD = 12, /* `width` bytes, `at` bytes into the payload of UDP, TCP or an echo request */
};

enum ktx_vary_how {
	KTX_VARY_COUNTER = 1, /* from, from + step, ... */
	KTX_VARY_RANDOM = 2,  /* the same values in a pseudo-random order: each once, then the same again */
	KTX_VARY_TABLE = 3,   /* the entries of `table` */
};

/*
 * The value of a field depends on the number of the probe alone, so that each probe can be made again: with `place` =
 * (number / every) % count it is from + step * place, or with KTX_VARY_RANDOM from + step * permutation(place), or
 * entry `place` of the table.
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
	const uint8_t *frame; /* copied */
	uint32_t length;
	enum ktrxer_link link; /* its first header (ktx_info.link) */
	const struct ktx_vary *fields;
	size_t field_size;      /* sizeof(struct ktx_vary), which may grow: the same policy as for `size` */
	uint32_t field_count;   /* 8 at most; an IPv6 address of a table counts as two */
	bool every_combination; /* fields whose `every` is 0 take each combination of their values, the first field
				     fastest */
};
#define KTX_TEMPLATE_OPTIONS_INIT { .size = sizeof(struct ktx_template_options), .field_size = sizeof(struct ktx_vary) }

struct ktx_template;
/*
 * Checks the frame and its fields, and copies them. 0; -EBADMSG: the frame has no such field; -ERANGE: a value does not
 * fit into it; -EINVAL: fields overlap, or a length, type or checksum would vary; -EOPNOTSUPP: a checksum that this
 * library cannot update (SCTP); -ENOMEM. Correct checksums stay correct; a UDP checksum of 0 stays 0.
 */
KTRXER_API int ktx_template_new(struct ktx_template **made, const struct ktx_template_options *options,
				struct ktrxer_error *err);
/* Frees the template. Frames that were made of it stay. */
KTRXER_API void ktx_template_free(struct ktx_template *made);
/* The length of each of its frames, in bytes. */
KTRXER_API uint32_t ktx_template_length(const struct ktx_template *made);
/* The number of different frames: probe `number` + this has the same frame as probe `number`. 0: 2^64, or more. */
KTRXER_API uint64_t ktx_template_space(const struct ktx_template *made);
/* Writes the frame of this number: ktx_template_length() bytes. */
KTRXER_API void ktx_template_fill(const struct ktx_template *made, uint8_t *frame, uint64_t number);

/* Numbers of a template's probes. */
struct ktx_range {
	size_t size;
	uint64_t next;    /* the first number; the call adds the number of committed probes */
	uint64_t left;    /* how many; the call subtracts the same. KTRXER_NEVER: until ktx_cancel() */
	uint32_t threads; /* with KTX_CAN_TEMPLATE: processors that share the range, 0: one. Other engines use one */
};
#define KTX_RANGE_INIT { .size = sizeof(struct ktx_range), .left = KTRXER_NEVER }

/*
 * Commits probes without a send time. The id of a probe is its number. 0: some or all were committed; call again while
 * range->left is not 0. -EAGAIN: no slot is free; wait as after ktx_reserve(). Other errors: as for ktx_commit(). The
 * template may be freed afterwards.
 *
 * An engine with KTX_CAN_TEMPLATE takes the whole range with one call and makes the frames itself, if the transmitter
 * is for rate and its reports are not KTX_REPORT_ALL: then there are accounts and no reports. It takes one range at a
 * time (-EAGAIN), in no order with the probes of ktx_commit().
 */
KTRXER_API int ktx_template_send(struct ktx *tx, const struct ktx_template *made, struct ktx_range *range,
				 struct ktrxer_error *err);

#ifdef __cplusplus
}
#endif
#endif
