/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Engines that follow a script: the script has the refused frames, the times of stamps and the loss of the device, so
 * that a test can reach every end of a probe. fake_engine.c takes the place of the library's table of engines at link
 * time.
 *
 *   fake    the user side waits; the one that `auto` takes
 *   holder  the same with buffers of its own, of which no descriptor tells when they come back; frames of 1000 bytes at
 *           most
 *   kernel  the kernel waits
 *   queue   a queue in the kernel waits
 */
#ifndef KTRXER_TESTS_FAKE_ENGINE_H
#define KTRXER_TESTS_FAKE_ENGINE_H

#include "tx.h"

struct fake_script {
	/* fake, holder */
	_Atomic int refuse;      /* so many submissions are refused ... */
	_Atomic int refuse_with; /* ... with this */
	_Atomic int take_most;   /* of one batch; 0: all */
	_Atomic bool stamps, stamps_come;
	int64_t stamp_after_ns;  /* the submission */
	uint32_t clock_bound_ns; /* the worst error of the stamps by CLOCK_REALTIME: a reader of both clocks may be
				   descheduled between them */
	int64_t nic_ahead_ns,
		nic_after_ns; /* a NIC's clock, and when it stamps after the submission; 0: there is none */
	int send_lasts_ms;
	_Atomic int sends, largest; /* seen */
	uint32_t next_key, stamped_key;
	bool scheds;     /* the packet scheduler stamps each frame when it is submitted, before the driver does */
	uint32_t device; /* of its stamps */
	struct ktrxer_addr from; /* the same */
	bool no_queue;           /* frames leave when they are submitted, whenever their stamps come */
	uint32_t sched_key;
	_Atomic uint32_t lost_key; /* plus 1: the queue dropped this one, and the driver never stamps it */
	uint64_t sent_at[4096];
	uint64_t order[4096];
	_Atomic int sent;
	uint8_t last[128];          /* the begin of the frame that was submitted last, also of one that was refused */
	_Atomic bool holds_buffers; /* the kernel reads frames until they are given back ... */
	_Atomic bool gives_back;    /* ... which it does now */
	struct ktx_request *held[64];
	int held_count;
	_Atomic int given_up, give_up_with;

	/* queue; stamps and stamps_come as above, stamp_after_ns the launch time */
	struct ktx_queue queue;
	uint64_t leave_ns[4096];
	_Atomic int drop;       /* so many of those it took are dropped ... */
	_Atomic int drop_with;  /* ... with this */
	_Atomic int left_early; /* seen */

	/* kernel */
	struct ktx_request *requests;
	uint32_t mask;
	_Atomic uint32_t published, publishes; /* by the tool's thread */
	_Atomic uint32_t sends_to; /* the kernel has sent those before this; UINT32_MAX: all whose time has come */
	_Atomic int gone;          /* negative errno */
	_Atomic uint32_t updates;
	_Atomic uint32_t cancel_to;
	_Atomic uint32_t compensation_ns;
	int64_t late_ns; /* of each stamp */
	int fail_with;   /* instead of being sent */
	uint32_t last_from;
	struct ktx_stream stream;          /* as it was started */
	int stream_starts, stream_refused; /* negative errno */
	struct ktx_stream_look look;       /* what the engine says of it */
	_Atomic bool stream_ends, stream_stopped;
};
extern struct fake_script fake;

/* With an empty script, and without real-time priority. */
struct ktx *fake_open_with(struct ktx_options options);
/* ktx_engines_sized() over the engines of this file. */
int fake_engines_sized(struct ktx_engine_info *engines, size_t size, int max);
/* A frame of 60 zero bytes. */
int fake_commit(struct ktx *tx, uint64_t id, uint64_t at_ns, uint32_t flags);
/* A wait for an event that must come has this limit: a busy machine delays it, and meson stops a test after 60 s. */
enum { FAKE_LIMIT_S = 30 };
/* Waits until the descriptor of the transmitter is readable. */
void fake_await(struct ktx *tx);
/* So many without a time; where the ring is full it waits to be woken. */
void fake_commit_all(struct ktx *tx, uint64_t count);
/* The accounts close. */
struct ktx_accounts fake_drain(struct ktx *tx);

#endif
