/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Files of packets. Written: pcapng, nanoseconds, the raw stamps (those on CLOCK_MONOTONIC moved to CLOCK_REALTIME by
 * one difference for the whole file). Read: pcap (micro- and nanoseconds, both byte orders, Kuznetzov's variant) and
 * pcapng (sections, interfaces, resolutions and offsets, packets of all three kinds), as a stream: a file may be larger
 * than memory, come by a pipe, and be hostile.
 */
#ifndef KTRXER_LIB_PCAPNG_H
#define KTRXER_LIB_PCAPNG_H

#include <ktrxer.h>

#include <stdio.h>

enum { KTRXER_LINKTYPE_ETHERNET = 1, KTRXER_LINKTYPE_RAW = 101 };

struct ktrxer_pcapng;

/* `path` "-": standard output. `comment` (may be NULL) stands at the head of the file. */
int ktrxer_pcapng_create(struct ktrxer_pcapng **file, const char *path, const char *application, const char *comment,
			 struct ktrxer_error *err);
/* The interface's number, or a negative errno. `snap` 0: whole packets. Both texts may be NULL. */
int ktrxer_pcapng_interface(struct ktrxer_pcapng *file, const char *name, const char *description,
			    enum ktrxer_link link, uint32_t snap);
/* `comment` may be NULL. */
int ktrxer_pcapng_packet(struct ktrxer_pcapng *file, int interface, const struct krx_packet *packet,
			 const char *comment);
struct ktrxer_pcapng_stats {
	int64_t start_ns, end_ns; /* CLOCK_REALTIME */
	uint64_t delivered, lost;
};
int ktrxer_pcapng_statistics(struct ktrxer_pcapng *file, int interface, const struct ktrxer_pcapng_stats *stats);
int ktrxer_pcapng_flush(struct ktrxer_pcapng *file);
/* The first error of all that was written, if there was one: a full disk is not silent. Frees in any case. */
int ktrxer_pcapng_close(struct ktrxer_pcapng *file, struct ktrxer_error *err);

struct ktrxer_capture;

struct ktrxer_capture_packet {
	const uint8_t *data; /* valid until the next call */
	uint32_t length, original_length;
	int64_t time_ns; /* since 1970; only with has_time */
	bool has_time;
	uint16_t linktype;  /* KTRXER_LINKTYPE_... or any other */
	uint32_t interface; /* within its section; 0 in pcap */
};

/* `path` "-": standard input. -EBADMSG: no capture file. */
int ktrxer_capture_open(struct ktrxer_capture **capture, const char *path, struct ktrxer_error *err);
/* The capture closes `stream`; `name` is for messages. */
int ktrxer_capture_stream(struct ktrxer_capture **capture, FILE *stream, const char *name, struct ktrxer_error *err);
/* 1 and a packet, 0 at the end, -EBADMSG where the file is damaged or cut short (err says at which byte). */
int ktrxer_capture_next(struct ktrxer_capture *capture, struct ktrxer_capture_packet *packet, struct ktrxer_error *err);
void ktrxer_capture_close(struct ktrxer_capture *capture);

#endif
