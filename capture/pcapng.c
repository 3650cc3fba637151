/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The writer. Little-endian on every machine, so that the same packets give the same file. */
#include "pcapng.h"

#include "base_limits.h"
#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/utsname.h>

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,

	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_OS = 3,
	OPTION_APPLICATION = 4,
	OPTION_NAME = 2,
	OPTION_DESCRIPTION = 3,
	OPTION_RESOLUTION = 9,
	OPTION_FLAGS = 2,
	OPTION_START = 2,
	OPTION_FINISH = 3,
	OPTION_OS_DROP = 7,
	OPTION_DELIVERED = 8,

	TEXT_MAX = 4096, /* of a comment; longer ones are cut */
	HEAD_MAX = 512 + 3 * TEXT_MAX,
	BUFFER = 1 << 20, /* of the stream: one write(2) for some thousand packets */
};

struct ktrxer_pcapng {
	FILE *stream;
	char *buffer;
	int interfaces;
	int64_t real_minus_mono; /* one for the whole file: differences between stamps stay exact */
	int error;               /* the first one */
	char path[200];          /* for messages */
};

/*
 * A block under construction, all but a packet's data. Its length was checked before. Never clear it: it is
 * 12.8 KB.
 */
struct block {
	uint8_t bytes[HEAD_MAX];
	uint32_t length;
};

static void put16(struct block *b, uint16_t v)
{
	b->bytes[b->length++] = (uint8_t)v;
	b->bytes[b->length++] = (uint8_t)(v >> 8);
}

static void put32(struct block *b, uint32_t v)
{
	put16(b, (uint16_t)v);
	put16(b, (uint16_t)(v >> 16));
}

static void put64(struct block *b, uint64_t v)
{
	put32(b, (uint32_t)v);
	put32(b, (uint32_t)(v >> 32));
}

/* Times are two halves, the upper first, whatever the byte order. */
static void put_time(struct block *b, int64_t ns)
{
	uint64_t v = ns > 0 ? (uint64_t)ns : 0;

	put32(b, (uint32_t)(v >> 32));
	put32(b, (uint32_t)v);
}

static void put_option(struct block *b, uint16_t code, const void *data, size_t length)
{
	put16(b, code);
	put16(b, (uint16_t)length);
	if (length)
		memcpy(b->bytes + b->length, data, length);
	b->length += (uint32_t)length;
	while (b->length % 4)
		b->bytes[b->length++] = 0;
}

static void put_text(struct block *b, uint16_t code, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (length)
		put_option(b, code, text, length < TEXT_MAX ? length : TEXT_MAX);
}

static void block_begin(struct block *b, uint32_t type)
{
	b->length = 0;
	put32(b, type);
	put32(b, 0);
}

static void file_write(struct ktrxer_pcapng *file, const void *data, size_t length)
{
	if (!file->error && fwrite(data, 1, length, file->stream) != length)
		file->error = errno ? -errno : -EIO;
}

/* `extra` bytes come between what is in the block and its end: a packet's data. */
static void block_length_set(struct block *b, uint32_t total)
{
	const uint32_t end = b->length;

	b->length = 4;
	put32(b, total);
	b->length = end;
}

static int block_end(struct ktrxer_pcapng *file, struct block *b)
{
	put16(b, OPTION_END);
	put16(b, 0);
	put32(b, b->length + 4);
	block_length_set(b, b->length);
	file_write(file, b->bytes, b->length);
	return file->error;
}

int ktrxer_pcapng_create(struct ktrxer_pcapng **out, const char *path, const char *application, const char *comment,
			 struct ktrxer_error *err)
{
	struct ktrxer_pcapng *file = calloc(1, sizeof *file);
	struct ktrxer_clock_pair clocks;
	struct utsname os;
	char text[256];
	struct block b;
	int code;

	if (!file)
		return ktrxer_fail(err, -ENOMEM, "%s: no memory", path);
	snprintf(file->path, sizeof file->path, "%s", path);
	ktrxer_clock_pair_read(&clocks);
	file->real_minus_mono = clocks.real_ns - (int64_t)clocks.mono_ns;
	file->stream = strcmp(path, "-") ? fopen(path, "wbe") : stdout;
	if (!file->stream) {
		code = -errno;
		free(file);
		return ktrxer_fail(err, code, "%s: cannot be written: %m", path);
	}
	file->buffer = malloc(BUFFER);
	if (file->buffer && file->stream != stdout)
		setvbuf(file->stream, file->buffer, _IOFBF, BUFFER);

	block_begin(&b, BLOCK_SECTION);
	put32(&b, 0x1a2b3c4d);
	put16(&b, 1);
	put16(&b, 0);
	put64(&b, UINT64_MAX); /* the section's length is not known yet */
	put_text(&b, OPTION_COMMENT, comment);
	if (!uname(&os)) {
		snprintf(text, sizeof text, "%s %s", os.sysname, os.release);
		put_text(&b, OPTION_OS, text);
	}
	put_text(&b, OPTION_APPLICATION, application);
	code = block_end(file, &b);
	if (!code)
		code = ktrxer_pcapng_flush(file); /* a full disk is known now, not after the measurement */
	if (code)
		return ktrxer_pcapng_close(file, err);
	*out = file;
	return 0;
}

int ktrxer_pcapng_interface(struct ktrxer_pcapng *file, const char *name, const char *description,
			    enum ktrxer_link link, uint32_t snap)
{
	static const uint8_t nanoseconds = 9;
	struct block b;

	block_begin(&b, BLOCK_INTERFACE);
	put16(&b, link == KTRXER_LINK_RAW_IP ? KTRXER_LINKTYPE_RAW : KTRXER_LINKTYPE_ETHERNET);
	put16(&b, 0);
	put32(&b, snap);
	put_text(&b, OPTION_NAME, name);
	put_text(&b, OPTION_DESCRIPTION, description);
	put_option(&b, OPTION_RESOLUTION, &nanoseconds, 1);
	return block_end(file, &b) ? file->error : file->interfaces++;
}

/* epb_flags: bits 0-1 inbound, outbound; bits 2-4 to us, multicast, broadcast, to another host. */
static uint32_t flags_of(const struct krx_packet *packet)
{
	static const uint8_t kind[] = { 1, 3, 2, 4 };

	if (packet->direction == 4)
		return 2;
	return packet->direction < 4 ? 1u | (uint32_t)kind[packet->direction] << 2 : 0;
}

int ktrxer_pcapng_packet(struct ktrxer_pcapng *file, int interface, const struct krx_packet *packet,
			 const char *comment)
{
	static const uint8_t zero[4];
	uint32_t padding = -packet->length & 3, total;
	struct block b, tail;

	if (interface < 0 || interface >= file->interfaces || packet->length > KRX_SNAP_MAX)
		return -EINVAL;
	tail.length = 0;
	block_begin(&b, BLOCK_PACKET);
	put32(&b, (uint32_t)interface);
	/* Stamps since the machine was started would be of 1970. */
	put_time(&b, packet->clock == KTRXER_CLOCK_MONOTONIC ? packet->raw_ns + file->real_minus_mono : packet->raw_ns);
	put32(&b, packet->length);
	put32(&b, packet->original_length);

	put_text(&tail, OPTION_COMMENT, comment);
	put16(&tail, OPTION_FLAGS);
	put16(&tail, 4);
	put32(&tail, flags_of(packet));
	put32(&tail, OPTION_END);
	total = b.length + packet->length + padding + tail.length + 4;
	put32(&tail, total);
	block_length_set(&b, total);

	file_write(file, b.bytes, b.length);
	file_write(file, packet->data, packet->length);
	file_write(file, zero, padding);
	file_write(file, tail.bytes, tail.length);
	return file->error;
}

int ktrxer_pcapng_statistics(struct ktrxer_pcapng *file, int interface, const struct ktrxer_pcapng_stats *stats)
{
	struct block b;

	if (interface < 0 || interface >= file->interfaces)
		return -EINVAL;
	block_begin(&b, BLOCK_STATISTICS);
	put32(&b, (uint32_t)interface);
	put_time(&b, stats->end_ns);
	put16(&b, OPTION_START);
	put16(&b, 8);
	put_time(&b, stats->start_ns);
	put16(&b, OPTION_FINISH);
	put16(&b, 8);
	put_time(&b, stats->end_ns);
	put16(&b, OPTION_OS_DROP);
	put16(&b, 8);
	put64(&b, stats->lost);
	put16(&b, OPTION_DELIVERED);
	put16(&b, 8);
	put64(&b, stats->delivered);
	return block_end(file, &b);
}

int ktrxer_pcapng_flush(struct ktrxer_pcapng *file)
{
	if (!file->error && fflush(file->stream))
		file->error = errno ? -errno : -EIO;
	return file->error;
}

int ktrxer_pcapng_close(struct ktrxer_pcapng *file, struct ktrxer_error *err)
{
	int error;

	if (!file)
		return 0;
	error = ktrxer_pcapng_flush(file);
	if (file->stream != stdout && fclose(file->stream) && !error)
		error = errno ? -errno : -EIO;
	if (error)
		ktrxer_fail(err, error, "%s: not everything could be written: %m", file->path);
	free(file->buffer);
	free(file);
	return error;
}
