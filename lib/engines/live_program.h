/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live program, loaded: its maps mapped, its tracepoints attached. All of it goes with its file descriptors, that
 * is, with the process.
 */
#ifndef KTRXER_LIB_LIVE_PROGRAM_H
#define KTRXER_LIB_LIVE_PROGRAM_H

#include "error.h"
#include "live.h"

struct bpf_object;
struct bpf_link;

struct live_setup {
	const struct ktrxer_device *device;
	uint32_t slots, frame_size; /* slots: a power of two */
	uint64_t late_ns, retry_ns;
	enum ktx_late_policy late;
	bool times;
};

struct live_program {
	struct bpf_object *object;
	struct bpf_link *links[2];
	int workers[LIVE_WORKERS];
	struct live_control *control;
	uint64_t *ends;
	uint8_t *slots;
	size_t control_size, ends_size, slots_size;
	uint32_t mask, stride, frame_size;
	bool traced; /* the driver reports the end of each frame */
};

int ktrxer_live_program_open(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err);
void ktrxer_live_program_close(struct live_program *program);

/*
 * Runs a worker until `repeat` runs are done, or a signal arrives: -EINTR. `frame_size` is the initial length of its
 * buffers; frames of that length are the cheapest.
 */
int ktrxer_live_program_run(const struct live_program *program, int worker, uint32_t repeat, uint32_t batch,
			    uint32_t frame_size);
/* Tries to load the program, which takes about 30 ms, and sends nothing. */
int ktrxer_live_program_try(const struct live_program *program, struct ktrxer_error *err);

/*
 * Its upper half is not 0 when it is final (a time below 4.3 s after the boot aside), and the JITs of 32-bit kernels
 * store that half last.
 */
static inline bool live_end_by_halves(const uint64_t *end, uint64_t *word)
{
	typedef uint32_t __attribute__((may_alias)) half;
	const half *halves = (const half *)end;
	const int upper = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	const uint32_t high = __atomic_load_n(&halves[upper], __ATOMIC_ACQUIRE);

	*word = (uint64_t)high << 32 | __atomic_load_n(&halves[!upper], __ATOMIC_RELAXED);
	return high;
}

/* The word of an end. False: this probe has not ended yet. */
static inline bool live_end_read(const uint64_t *end, uint64_t *word)
{
#if UINTPTR_MAX > UINT32_MAX
	*word = __atomic_load_n(end, __ATOMIC_ACQUIRE);
	return *word > LIVE_SUBMITTED;
#else
	return live_end_by_halves(end, word);
#endif
}

static inline struct live_slot *live_slot_at(const struct live_program *program, uint32_t number)
{
	return (struct live_slot *)(void *)(program->slots + (size_t)program->stride * (number & program->mask));
}

#endif
