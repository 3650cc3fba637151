/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A template's range, sent by the stream program (bpf/stream.h): one worker for each processor that takes part, with a
 * program, maps and a thread of its own. The tool's thread starts and reads it, the pump thread updates it; the
 * phase says which of them owns it.
 */
#ifndef KTRXER_LIB_LIVE_STREAM_H
#define KTRXER_LIB_LIVE_STREAM_H

#include "engine.h"
#include "stream.h"

#include <pthread.h>

struct bpf_link;
struct bpf_object;
struct live_stream;

struct live_stream_worker {
	struct live_stream *stream;
	struct bpf_object *object;
	struct bpf_link *links[2];
	int program;
	struct stream_worker *state;
	size_t state_size;
	int cpu;
	pthread_t thread;
	bool has_thread;
	_Atomic bool done;  /* by the thread: its last call has ended */
	_Atomic int result; /* negative errno: the kernel does not run it */
};

struct live_stream {
	/* STREAM_ENDED is set by the pump */
	_Atomic enum live_stream_phase { STREAM_NONE, STREAM_RUNS, STREAM_ENDED } phase;
	_Atomic int lost; /* negative errno: the device or the kernel side is gone */
	uint32_t workers_count;
	struct live_stream_worker *workers;
	struct stream_share *share;
	size_t share_size;
	uint8_t frame[LIVE_FRAME_MAX]; /* what a call's buffers begin with */
	uint32_t length;
	uint64_t count;
	uint64_t began_ns;
	int signal;
	bool traced;
};

/* The last stream has ended. */
int ktrxer_live_stream_start(struct live_stream *stream, const struct ktrxer_device *device,
			     const struct ktx_options *options, const struct ktx_stream *what,
			     struct ktrxer_error *err);
void ktrxer_live_stream_stop(struct live_stream *stream);
void ktrxer_live_stream_look(const struct live_stream *stream, struct ktx_stream_look *look);
/* The pump's; says when to come back. */
void ktrxer_live_stream_update(struct live_stream *stream, uint64_t now_ns, uint64_t *next_ns);
/* The rest of the range ends with this negative errno. */
void ktrxer_live_stream_lose(struct live_stream *stream, int error);
/* Ends what runs, whatever is left of it. The pump does not run any more. */
void ktrxer_live_stream_close(struct live_stream *stream);

#endif
