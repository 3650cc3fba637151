/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Probes of a trace, and the answers to them: what routers quote, change, cut short, and what others forge. */
#include "bytes.h"
#include "cm.h"
#include "trace.h"

#include <string.h>
#include <sys/socket.h>

enum { ROOM = 2048 };

static struct trace_probe identity(uint8_t proto, bool six)
{
	struct trace_probe p = { .link = KTRXER_LINK_RAW_IP,
				 .proto = proto,
				 .tos = 0xb8,
				 .port = 33434,
				 .flow_base = 30000,
				 .icmp_id = 0x1234,
				 .tcp_base = 0xfffffff0,
				 .secret = { 1, 2, 3, 4, 5, 6 } };

	ktrxer_addr_parse(&p.path.source, six ? "2001:db8::1" : "192.0.2.1");
	ktrxer_addr_parse(&p.path.to, six ? "2001:db8:1::9" : "198.51.100.9");
	p.path.device.link = KTRXER_LINK_RAW_IP;
	return p;
}

static uint16_t sum(const uint8_t *at, uint32_t length, uint32_t start)
{
	uint32_t total = start;

	for (uint32_t i = 0; i < length; i += 2)
		total += (uint32_t)at[i] << 8 | (i + 1 < length ? at[i + 1] : 0);
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return (uint16_t)total;
}

struct error_packet {
	uint8_t data[ROOM];
	uint32_t length;
};

/* An ICMP error of `from` about the first `quoted` bytes of a probe, filled up to `padded`, with `extensions` behind.
 */
static struct error_packet error_of(const uint8_t *probe, uint32_t quoted, uint32_t padded, const uint8_t *extensions,
				    uint32_t extension_bytes, uint8_t type, uint8_t code)
{
	const bool six = probe[0] >> 4 == 6;
	struct error_packet e = { .length = (six ? 40u : 20u) + 8 + padded + extension_bytes };
	uint8_t *icmp = e.data + (six ? 40 : 20);

	e.data[0] = six ? 0x60 : 0x45;
	if (six) {
		store_be16(e.data + 4, (uint16_t)(e.length - 40));
		e.data[6] = KTRXER_ICMPV6;
		e.data[7] = 61;
		e.data[8] = 0x20;
		memcpy(e.data + 24, probe + 8, 16);
	} else {
		store_be16(e.data + 2, (uint16_t)e.length);
		e.data[8] = 61;
		e.data[9] = KTRXER_ICMP;
		memcpy(e.data + 12, "\x0a\x01\x02\x03", 4);
		memcpy(e.data + 16, probe + 12, 4);
	}
	icmp[0] = type;
	icmp[1] = code;
	memcpy(icmp + 8, probe, quoted);
	if (extension_bytes) {
		icmp[six ? 4 : 5] = (uint8_t)(padded / (six ? 8 : 4));
		memcpy(icmp + 8 + padded, extensions, extension_bytes);
	}
	return e;
}

static bool read_error(struct trace_reply *reply, const struct error_packet *e)
{
	return trace_reply_parse(reply, e->data, e->length, KTRXER_LINK_RAW_IP);
}

static const struct {
	uint8_t proto;
	bool six;
} kinds[] = {
	{ KTRXER_UDP, false }, { KTRXER_TCP, false }, { KTRXER_ICMP, false },
	{ KTRXER_UDP, true },  { KTRXER_TCP, true },  { KTRXER_ICMPV6, true },
};

/* The fields that routers hash are the same in all probes of a flow, and the checksums are right. */
TEST(flows_keep_their_identifier)
{
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		const struct trace_probe p = identity(kinds[k].proto, kinds[k].six);
		const uint32_t ip = kinds[k].six ? 40 : 20;
		uint8_t first[ROOM], other[ROOM], next[ROOM];

		for (uint32_t number = 0; number < 70000; number += 997) {
			const struct trace_sent sent = { number, { (uint8_t)(1 + number % 60), 7 } };
			const struct trace_sent apart = { number, { 1, 8 } }, zero = { 0, { 1, 7 } };
			const int length = trace_probe_build(&p, other, sizeof other, &sent);

			assert_true(length > 0);
			assert_true(trace_probe_build(&p, first, sizeof first, &zero) == length);
			assert_true(trace_probe_build(&p, next, sizeof next, &apart) == length);
			assert_memory_equal(first + ip, other + ip, 4);
			assert_memory_not_equal(first + ip, next + ip, 4);
			/* IPv6: traffic class and flow label; TOS of IPv4. */
			assert_memory_equal(first, other, 2);
			assert_int_equal(other[kinds[k].six ? 7 : 8], sent.want.hop);
			if (!kinds[k].six)
				assert_int_equal(sum(other, 20, 0), 0xffff);
			if (kinds[k].proto == KTRXER_ICMP)
				assert_int_equal(sum(other + ip, (uint32_t)length - ip, 0), 0xffff);
			else
				assert_int_equal(sum(other + ip, (uint32_t)length - ip,
						     (uint32_t)length - ip + kinds[k].proto +
							     sum(other + (kinds[k].six ? 8 : 12), kinds[k].six ? 32 : 8,
								 0)),
						 0xffff);
		}
	}
}

/* Whether the quote is whole or ends behind 8 bytes of transport, and whatever fills it up. */
TEST(quotes_are_recognized)
{
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		const struct trace_probe p = identity(kinds[k].proto, kinds[k].six);
		const uint32_t least = (kinds[k].six ? 40 : 20) + 8;
		uint8_t probe[ROOM];

		for (uint32_t number = 3; number < 140000; number += 9999) {
			const struct trace_sent sent = { number, { 5, 11 } };
			const uint32_t length = (uint32_t)trace_probe_build(&p, probe, sizeof probe, &sent);

			for (uint32_t quoted = least; quoted <= length; quoted++) {
				const struct error_packet e = error_of(probe, quoted, quoted + (quoted & 1 ? 40 : 0),
								       NULL, 0, kinds[k].six ? 3 : 11, 0);
				struct trace_changes changes;
				struct trace_reply reply;
				uint32_t found;
				bool whole;

				assert_true(read_error(&reply, &e));
				assert_int_equal(reply.kind, TRACE_TIME_EXCEEDED);
				/* A quote that is cut within the payload, and filled up, has no secret to compare. */
				if (quoted > least && quoted < length && quoted & 1)
					continue;
				assert_true(trace_probe_number(&p, &reply, &found, &whole));
				if (whole)
					assert_int_equal(found, number);
				else
					assert_int_equal(found % 0xfffe, number % 0xfffe);
				assert_true(trace_probe_fits(&p, &reply, &sent, &changes));
				assert_false(changes.address || changes.checksum || changes.ip_id || changes.tos);
			}
			for (uint32_t quoted = 0; quoted < least; quoted++) {
				const struct error_packet e =
					error_of(probe, quoted, quoted, NULL, 0, kinds[k].six ? 3 : 11, 0);
				struct trace_reply reply;

				assert_false(read_error(&reply, &e));
			}
		}
	}
}

TEST(labels_of_mpls)
{
	static const uint8_t two[] = { 0x20, 0, 0, 0, 0, 12, 1, 1, 0x03, 0xe8, 0x54, 0x01, 0x00, 0x01, 0x01, 0xfe };
	const struct trace_probe p = identity(KTRXER_UDP, false);
	const struct trace_sent sent = { 9, { 3, 1 } };
	struct error_packet e;
	struct trace_reply reply;
	uint8_t probe[ROOM], extensions[sizeof two];
	const uint32_t length = (uint32_t)trace_probe_build(&p, probe, sizeof probe, &sent);

	memcpy(extensions, two, sizeof two);
	e = error_of(probe, length, 128, extensions, sizeof extensions, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_int_equal(reply.label_count, 2);
	assert_int_equal(reply.labels[0].label, 16005);
	assert_int_equal(reply.labels[0].traffic_class, 2);
	assert_false(reply.labels[0].bottom);
	assert_int_equal(reply.labels[0].ttl, 1);
	assert_int_equal(reply.labels[1].label, 16);
	assert_true(reply.labels[1].bottom);
	assert_int_equal(reply.labels[1].ttl, 254);
	/* A router of before RFC 4884 gives no length: the extensions stand behind 128 bytes. */
	e.data[20 + 5] = 0;
	assert_true(read_error(&reply, &e));
	assert_int_equal(reply.label_count, 2);
	/* A checksum must be right; another version is none; an object that is longer than the rest is left out. */
	store_be16(extensions + 2, (uint16_t)~sum(extensions, sizeof extensions, 0));
	e = error_of(probe, length, 128, extensions, sizeof extensions, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_int_equal(reply.label_count, 2);
	extensions[3] ^= 1;
	e = error_of(probe, length, 128, extensions, sizeof extensions, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_int_equal(reply.label_count, 0);
	memcpy(extensions, two, sizeof two);
	extensions[0] = 0x10;
	e = error_of(probe, length, 128, extensions, sizeof extensions, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_int_equal(reply.label_count, 0);
	memcpy(extensions, two, sizeof two);
	for (uint16_t size = 0; size < 40; size++) {
		store_be16(extensions + 4, size);
		e = error_of(probe, length, 128, extensions, sizeof extensions, 11, 0);
		assert_true(read_error(&reply, &e));
		assert_int_equal(reply.label_count, size < 4 || size > 12 ? 0 : (size - 4) / 4);
	}
	memcpy(extensions, two, sizeof two);
	e = error_of(probe, length, 128, extensions, 14, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_int_equal(reply.label_count, 0);
}

TEST(changes_on_the_way)
{
	const struct trace_probe p = identity(KTRXER_UDP, false);
	const struct trace_sent sent = { 77, { 6, 2 } };
	struct trace_changes changes;
	struct trace_reply reply;
	struct error_packet e;
	uint8_t probe[ROOM];
	uint32_t length = (uint32_t)trace_probe_build(&p, probe, sizeof probe, &sent), number;
	bool whole;

	probe[1] = 0;          /* TOS */
	probe[12] ^= 1;        /* source */
	probe[20 + 7] ^= 0x10; /* checksum */
	e = error_of(probe, length, length, NULL, 0, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_true(trace_probe_number(&p, &reply, &number, &whole));
	assert_int_equal(number, 77);
	assert_true(trace_probe_fits(&p, &reply, &sent, &changes));
	assert_true(changes.address && changes.checksum && changes.tos);
	assert_false(changes.ip_id);
	/* Without the secret, a quote with another address may be that of any program. */
	e = error_of(probe, 28, 28, NULL, 0, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_true(trace_probe_number(&p, &reply, &number, &whole));
	assert_false(whole);
	assert_false(trace_probe_fits(&p, &reply, &sent, &changes));
	/* A wrong secret, and the protocol of another probe. */
	probe[12] ^= 1;
	probe[28 + 3] ^= 1;
	e = error_of(probe, length, length, NULL, 0, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_false(trace_probe_number(&p, &reply, &number, &whole));
	length = (uint32_t)trace_probe_build(&p, probe, sizeof probe, &sent);
	probe[9] = KTRXER_TCP;
	e = error_of(probe, length, length, NULL, 0, 11, 0);
	assert_true(read_error(&reply, &e));
	assert_false(trace_probe_number(&p, &reply, &number, &whole));
}

TEST(no_answers)
{
	const struct trace_probe p = identity(KTRXER_UDP, false);
	const struct trace_sent sent = { 77, { 6, 2 } };
	struct trace_reply reply;
	struct error_packet e;
	uint8_t probe[ROOM];
	const uint32_t length = (uint32_t)trace_probe_build(&p, probe, sizeof probe, &sent);

	assert_false(trace_reply_parse(&reply, probe, length, KTRXER_LINK_RAW_IP)); /* UDP */
	e = error_of(probe, length, length, NULL, 0, 11, 1);                        /* reassembly */
	assert_false(read_error(&reply, &e));
	e = error_of(probe, length, length, NULL, 0, 5, 0); /* redirect */
	assert_false(read_error(&reply, &e));
	probe[6] |= 0x01; /* of a later fragment */
	e = error_of(probe, length, length, NULL, 0, 11, 0);
	assert_false(read_error(&reply, &e));
	probe[6] = 0;
	probe[0] = 0x44; /* a header of 16 bytes */
	e = error_of(probe, length, length, NULL, 0, 11, 0);
	assert_false(read_error(&reply, &e));
	probe[0] = 0x4f; /* options up to behind its end */
	e = error_of(probe, length, length, NULL, 0, 11, 0);
	assert_false(read_error(&reply, &e));
}

TEST(meaning)
{
	struct ktrxer_addr four, six, other;
	struct trace_reply r = { .kind = TRACE_DESTINATION_UNREACHABLE, .code = 3 };

	ktrxer_addr_parse(&four, "192.0.2.1");
	ktrxer_addr_parse(&six, "fe80::1");
	ktrxer_addr_parse(&other, "192.0.2.2");
	r.from = four;
	assert_int_equal(trace_end_of(&r, &four), TRACE_ARRIVED);
	assert_int_equal(trace_end_of(&r, &other),
			 TRACE_UNREACHABLE); /* a firewall that refuses by "port unreachable" */
	r.code = 13;
	assert_int_equal(trace_end_of(&r, &four), TRACE_UNREACHABLE);
	r.from = six;
	r.code = 4;
	six.scope_id = 3;
	assert_int_equal(trace_end_of(&r, &six), TRACE_ARRIVED);
	r.code = 3;
	assert_int_equal(trace_end_of(&r, &six), TRACE_UNREACHABLE);
	r.kind = TRACE_TIME_EXCEEDED;
	assert_int_equal(trace_end_of(&r, &six), TRACE_GOES_ON);
	r.kind = TRACE_TCP_ANSWER;
	assert_int_equal(trace_end_of(&r, &six), TRACE_ARRIVED);
}
