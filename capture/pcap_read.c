/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The reader. One record or block in memory at a time; each length is held against a limit before it is believed. */
#include "base_limits.h"
#include "pcapng.h"

#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>

enum {
	KTRXER_CAPTURE_BLOCK_MAX = 1 << 20, /* of a block that must be held in memory: a packet and its comments */
	KTRXER_CAPTURE_INTERFACES_MAX = 4096,
};

enum {
	MAGIC_SECTION = 0x0a0d0d0a, /* reads the same from both ends */
	MAGIC_ORDER = 0x1a2b3c4d,
	BLOCK_INTERFACE = 1,
	BLOCK_OLD_PACKET = 2,
	BLOCK_SIMPLE = 3,
	BLOCK_PACKET = 6,

	OPTION_RESOLUTION = 9,
	OPTION_OFFSET = 14,
};

static const uint32_t magic_us = 0xa1b2c3d4, magic_ns = 0xa1b23c4d;
static const uint32_t magic_kuznetzov = 0xa1b2cd34; /* microseconds, and eight more bytes a record */

struct interface {
	uint16_t linktype;
	uint8_t resolution; /* as in the file: 10^-n, or 2^-(n & 127) with the high bit */
	uint32_t snap;
	int64_t offset_s;
};

struct ktrxer_capture {
	FILE *stream;
	char name[200];
	uint64_t at; /* bytes read */
	uint64_t packets;
	bool big_endian; /* of the file, or the section */
	bool ng;
	uint32_t frac_ns; /* pcap: nanoseconds in a unit of the fraction */
	uint32_t skip;    /* pcap: bytes between record header and data */
	uint16_t linktype;
	struct interface *interfaces; /* pcapng: of this section */
	uint32_t interface_count, interface_room;
	uint8_t *buffer;
	uint32_t buffer_size;
};

static int fail_bad(struct ktrxer_capture *c, struct ktrxer_error *err, const char *what)
{
	return ktrxer_fail(err, -EBADMSG, "%s: %s near byte %llu, after %llu packets", c->name, what,
			   (unsigned long long)c->at, (unsigned long long)c->packets);
}

/* How many of `length` bytes there were, or a negative errno. */
static int64_t pull(struct ktrxer_capture *c, void *to, size_t length, struct ktrxer_error *err)
{
	size_t n = fread(to, 1, length, c->stream);
	c->at += n;
	if (n < length && ferror(c->stream)) {
		int code = errno ? -errno : -EIO;

		return ktrxer_fail(err, code, "%s: cannot be read at byte %llu: %m", c->name,
				   (unsigned long long)c->at);
	}
	return (int64_t)n;
}

/* All of them, or an error. */
static int pull_all(struct ktrxer_capture *c, void *to, size_t length, struct ktrxer_error *err)
{
	int64_t n = pull(c, to, length, err);

	if (n < 0)
		return (int)n;
	return (size_t)n == length ? 0 : fail_bad(c, err, "cut short");
}

static int pull_away(struct ktrxer_capture *c, uint64_t length, struct ktrxer_error *err)
{
	uint8_t nothing[4096];
	int ret = 0;

	while (length && !ret) {
		size_t n = length < sizeof nothing ? (size_t)length : sizeof nothing;

		ret = pull_all(c, nothing, n, err);
		length -= n;
	}
	return ret;
}

/* The caller has held the length against a limit. */
static int buffer_fill(struct ktrxer_capture *c, uint32_t length, struct ktrxer_error *err)
{
	if (length > c->buffer_size || !c->buffer) {
		uint32_t size = length < 2048 ? 2048 : length;
		uint8_t *larger = realloc(c->buffer, size);

		if (!larger)
			return ktrxer_fail(err, -ENOMEM, "%s: no memory for a block of %u bytes", c->name, length);
		c->buffer = larger;
		c->buffer_size = size;
	}
	return pull_all(c, c->buffer, length, err);
}

static uint16_t take16(const struct ktrxer_capture *c, struct bytes *b)
{
	return c->big_endian ? bytes_be16(b) : bytes_le16(b);
}

static uint32_t take32(const struct ktrxer_capture *c, struct bytes *b)
{
	return c->big_endian ? bytes_be32(b) : bytes_le32(b);
}

/* clang-format off */
static const uint64_t ten_to[] = {
	1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u,
	100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u,
	100000000000000000u, 1000000000000000000u, 10000000000000000000u,
};
/* clang-format on */

/* Whole seconds and nanoseconds of `ticks` in an interface's unit. */
static void ticks_split(uint64_t ticks, uint8_t resolution, uint64_t *s, uint64_t *ns)
{
	uint32_t n = resolution & 127;

	if (resolution & 128) {
		uint64_t fraction = n >= 64 ? ticks : n ? ticks & (UINT64_MAX >> (64 - n)) : 0;

		*s = n >= 64 ? 0 : ticks >> n;
		if (n > 34) { /* 2^34 * 10^9 fits; finer than that is finer than a nanosecond */
			fraction = n - 34 >= 64 ? 0 : fraction >> (n - 34);
			n = 34;
		}
		*ns = fraction * 1000000000u >> n;
		return;
	}
	if (n > 19) { /* less than 10^-19: all of it is less than two seconds */
		*s = 0;
		*ns = n - 9 > 19 ? 0 : ticks / ten_to[n - 9];
	} else {
		*s = ticks / ten_to[n];
		*ns = n > 9 ? ticks % ten_to[n] / ten_to[n - 9] : ticks % ten_to[n] * ten_to[9 - n];
	}
}

static void time_set(struct ktrxer_capture_packet *packet, const struct interface *interface, uint64_t ticks)
{
	uint64_t s, ns;
	int64_t total;

	ticks_split(ticks, interface->resolution, &s, &ns);
	packet->has_time = s <= INT64_MAX && !__builtin_add_overflow((int64_t)s, interface->offset_s, &total) &&
			   !__builtin_mul_overflow(total, (int64_t)1000000000, &total) &&
			   !__builtin_add_overflow(total, (int64_t)ns, &packet->time_ns);
	if (!packet->has_time)
		packet->time_ns = 0;
}

static int pcap_begin(struct ktrxer_capture *c, struct ktrxer_error *err)
{
	uint8_t header[20]; /* after the magic */
	struct bytes b = bytes_of(header, sizeof header);
	int ret = pull_all(c, header, sizeof header, err);

	if (ret)
		return ret;
	if (take16(c, &b) != 2)
		return ktrxer_fail(err, -EBADMSG, "%s: a pcap file of a version that no program writes (2.x is known)",
				   c->name);
	bytes_skip(&b, 14);
	c->linktype = (uint16_t)take32(c, &b); /* above are the length of the check sum and its flag */
	return 0;
}

static int pcap_next(struct ktrxer_capture *c, struct ktrxer_capture_packet *packet, struct ktrxer_error *err)
{
	uint8_t header[16];
	struct bytes b = bytes_of(header, sizeof header);
	int64_t n = pull(c, header, sizeof header, err);
	uint32_t s, fraction;
	int ret;

	if (n <= 0)
		return (int)n;
	if (n < (int64_t)sizeof header)
		return fail_bad(c, err, "cut short");
	s = take32(c, &b);
	fraction = take32(c, &b);
	packet->length = take32(c, &b);
	packet->original_length = take32(c, &b);
	if (packet->length > KRX_SNAP_MAX)
		return fail_bad(c, err, "a record of impossible length");
	ret = pull_away(c, c->skip, err);
	if (!ret)
		ret = buffer_fill(c, packet->length, err);
	if (ret)
		return ret;
	packet->data = c->buffer;
	packet->has_time = true;
	packet->time_ns = (int64_t)s * 1000000000 + (int64_t)fraction * c->frac_ns;
	packet->linktype = c->linktype;
	packet->interface = 0;
	return 1;
}

/* The block's type was read, and its byte order is what is found here. */
static int section_begin(struct ktrxer_capture *c, struct ktrxer_error *err)
{
	uint8_t head[8];
	struct bytes b;
	uint32_t length, again;
	int ret = pull_all(c, head, sizeof head, err);

	if (ret)
		return ret;
	if (load_be32(head + 4) == MAGIC_ORDER)
		c->big_endian = true;
	else if (load_le32(head + 4) == MAGIC_ORDER)
		c->big_endian = false;
	else
		return fail_bad(c, err, "a section without its byte order mark");
	b = bytes_of(head, 4);
	length = take32(c, &b);
	if (length < 28 || length % 4 || length > KTRXER_CAPTURE_BLOCK_MAX)
		return fail_bad(c, err, "a section header of impossible length");
	ret = buffer_fill(c, length - 12, err);
	if (ret)
		return ret;
	b = bytes_of(c->buffer, length - 12);
	if (take16(c, &b) != 1)
		return ktrxer_fail(err, -EBADMSG, "%s: a pcapng file of a version that is not known (1.x is)", c->name);
	bytes_skip(&b, bytes_left(&b) - 4);
	again = take32(c, &b);
	if (again != length)
		return fail_bad(c, err, "a section header whose two lengths differ");
	c->interface_count = 0;
	return 0;
}

static int interface_add(struct ktrxer_capture *c, struct bytes b, struct ktrxer_error *err)
{
	struct interface *interface;

	if (c->interface_count == KTRXER_CAPTURE_INTERFACES_MAX)
		return fail_bad(c, err, "too many interfaces");
	if (c->interface_count == c->interface_room) {
		uint32_t room = c->interface_room ? 2 * c->interface_room : 4;
		struct interface *more = realloc(c->interfaces, room * sizeof *more);

		if (!more)
			return ktrxer_fail(err, -ENOMEM, "%s: no memory", c->name);
		c->interfaces = more;
		c->interface_room = room;
	}
	interface = &c->interfaces[c->interface_count];
	*interface = (struct interface){ .resolution = 6 };
	interface->linktype = take16(c, &b);
	bytes_skip(&b, 2);
	interface->snap = take32(c, &b);
	if (!b.ok)
		return fail_bad(c, err, "an interface block that is too short");
	while (bytes_left(&b) >= 4) {
		uint16_t code = take16(c, &b), length = take16(c, &b);
		struct bytes value = bytes_sub(&b, length);

		if (!code)
			break;
		if (!value.ok)
			return fail_bad(c, err, "an option that is longer than its block");
		bytes_skip(&b, -(uint32_t)length & 3);
		if (code == OPTION_RESOLUTION && length == 1) {
			interface->resolution = bytes_u8(&value);
		} else if (code == OPTION_OFFSET && length == 8) {
			uint64_t first = take32(c, &value), second = take32(c, &value);

			interface->offset_s = (int64_t)(c->big_endian ? first << 32 | second : second << 32 | first);
		}
	}
	c->interface_count++;
	return 0;
}

/* The common part of the three kinds of packets, after their heads. */
static int packet_set(struct ktrxer_capture *c, struct ktrxer_capture_packet *packet, struct bytes *b,
		      struct ktrxer_error *err)
{
	if (packet->length > KRX_SNAP_MAX)
		return fail_bad(c, err, "a packet of impossible length");
	packet->data = bytes_take(b, packet->length);
	if (!packet->data)
		return fail_bad(c, err, "a packet that is longer than its block");
	packet->linktype = c->interfaces[packet->interface].linktype;
	return 1;
}

static int packet_read(struct ktrxer_capture *c, uint32_t type, struct bytes b, struct ktrxer_capture_packet *packet,
		       struct ktrxer_error *err)
{
	uint64_t ticks = 0;

	packet->interface = 0;
	packet->has_time = false;
	packet->time_ns = 0;
	if (type == BLOCK_PACKET)
		packet->interface = take32(c, &b);
	if (type == BLOCK_OLD_PACKET) {
		packet->interface = take16(c, &b);
		bytes_skip(&b, 2);
	}
	if (type != BLOCK_SIMPLE) {
		ticks = (uint64_t)take32(c, &b) << 32;
		ticks |= take32(c, &b);
		packet->length = take32(c, &b);
	}
	packet->original_length = take32(c, &b);
	if (!b.ok)
		return fail_bad(c, err, "a packet block that is too short");
	if (packet->interface >= c->interface_count)
		return fail_bad(c, err, "a packet of an interface that was not described");
	if (type == BLOCK_SIMPLE) {
		uint32_t snap = c->interfaces[0].snap;

		packet->length = packet->original_length;
		if (snap && packet->length > snap)
			packet->length = snap;
		if (packet->length > bytes_left(&b))
			packet->length = (uint32_t)bytes_left(&b);
	} else {
		time_set(packet, &c->interfaces[packet->interface], ticks);
	}
	return packet_set(c, packet, &b, err);
}

static int ng_next(struct ktrxer_capture *c, struct ktrxer_capture_packet *packet, struct ktrxer_error *err)
{
	for (;;) {
		uint8_t head[8];
		struct bytes b = bytes_of(head, sizeof head);
		uint32_t type, length;
		int64_t n = pull(c, head, 4, err);
		int ret;

		if (n <= 0)
			return (int)n;
		if (n < 4)
			return fail_bad(c, err, "cut short");
		if (load_be32(head) == MAGIC_SECTION) {
			ret = section_begin(c, err);
			if (ret)
				return ret;
			continue;
		}
		ret = pull_all(c, head + 4, 4, err);
		if (ret)
			return ret;
		type = take32(c, &b);
		length = take32(c, &b);
		if (length < 12 || length % 4)
			return fail_bad(c, err, "a block of impossible length");
		if (type != BLOCK_INTERFACE && type != BLOCK_OLD_PACKET && type != BLOCK_SIMPLE &&
		    type != BLOCK_PACKET) {
			ret = pull_away(c, length - 8, err);
			if (ret)
				return ret;
			continue;
		}
		if (length > KTRXER_CAPTURE_BLOCK_MAX)
			return fail_bad(c, err, "a block of impossible length");
		ret = buffer_fill(c, length - 8, err);
		if (ret)
			return ret;
		b = bytes_of(c->buffer + length - 12, 4);
		if (take32(c, &b) != length)
			return fail_bad(c, err, "a block whose two lengths differ");
		b = bytes_of(c->buffer, length - 12);
		if (type != BLOCK_INTERFACE)
			return packet_read(c, type, b, packet, err);
		ret = interface_add(c, b, err);
		if (ret)
			return ret;
	}
}

static int kind_find(struct ktrxer_capture *c, struct ktrxer_error *err)
{
	uint8_t magic[4];
	int64_t n = pull(c, magic, sizeof magic, err);
	uint32_t value;

	if (n < 0)
		return (int)n;
	if (n == sizeof magic) {
		if (load_be32(magic) == MAGIC_SECTION) {
			c->ng = true;
			return section_begin(c, err);
		}
		for (int order = 0; order < 2; order++) {
			c->big_endian = order;
			value = order ? load_be32(magic) : load_le32(magic);
			c->frac_ns = value == magic_ns ? 1 : 1000;
			c->skip = value == magic_kuznetzov ? 8 : 0;
			if (value == magic_us || value == magic_ns || value == magic_kuznetzov)
				return pcap_begin(c, err);
		}
	}
	return ktrxer_fail(err, -EBADMSG, "%s: neither a pcap nor a pcapng file%s", c->name, n ? "" : ", it is empty");
}

int ktrxer_capture_stream(struct ktrxer_capture **out, FILE *stream, const char *name, struct ktrxer_error *err)
{
	struct ktrxer_capture *c = calloc(1, sizeof *c);
	int ret;

	if (!c) {
		if (stream != stdin)
			fclose(stream);
		return ktrxer_fail(err, -ENOMEM, "%s: no memory", name);
	}
	c->stream = stream;
	snprintf(c->name, sizeof c->name, "%s", name);
	ret = kind_find(c, err);
	if (ret) {
		ktrxer_capture_close(c);
		return ret;
	}
	*out = c;
	return 0;
}

int ktrxer_capture_open(struct ktrxer_capture **out, const char *path, struct ktrxer_error *err)
{
	bool standard = !strcmp(path, "-");
	FILE *stream = standard ? stdin : fopen(path, "rbe");
	if (!stream) {
		int code = -errno;

		return ktrxer_fail(err, code, "%s: cannot be read: %m", path);
	}
	return ktrxer_capture_stream(out, stream, standard ? "standard input" : path, err);
}

int ktrxer_capture_next(struct ktrxer_capture *c, struct ktrxer_capture_packet *packet, struct ktrxer_error *err)
{
	int ret = c->ng ? ng_next(c, packet, err) : pcap_next(c, packet, err);

	c->packets += ret > 0;
	return ret;
}

void ktrxer_capture_close(struct ktrxer_capture *c)
{
	if (!c)
		return;
	if (c->stream != stdin)
		fclose(c->stream);
	free(c->interfaces);
	free(c->buffer);
	free(c);
}
