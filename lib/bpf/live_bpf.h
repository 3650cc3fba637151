/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libbpf without its messages, for the programs of the live engine and of the rules; its errors become a line of text.
 */
#ifndef KTRXER_LIB_LIVE_BPF_H
#define KTRXER_LIB_LIVE_BPF_H

#include "error.h"

#include <stddef.h>

struct bpf_link;
struct bpf_map;
struct bpf_object;

/* The program is not loaded yet, so that sizes and constants can be set. */
int ktrxer_live_bpf_open(struct bpf_object **object, const unsigned char *bytes, size_t size, const char *name,
			 struct ktrxer_error *err);
int ktrxer_live_bpf_load(struct bpf_object *object, struct ktrxer_error *err);
/* The program's section of constants holds one struct alone. */
int ktrxer_live_bpf_constants(struct bpf_object *object, const void *config, size_t size);
struct bpf_map *ktrxer_live_bpf_map(struct bpf_object *object, const char *name);
int ktrxer_live_bpf_map_fd(struct bpf_object *object, const char *name);
/* MAP_FAILED when it cannot be mapped. `size` is rounded up to pages. */
void *ktrxer_live_bpf_mmap(struct bpf_object *object, const char *name, size_t *size);
/* Redirects go to this device from now on. */
int ktrxer_live_bpf_aim(struct bpf_object *object, const struct ktrxer_device *device, struct ktrxer_error *err);
/* Both tracepoints, or none: false. */
bool ktrxer_live_bpf_trace(struct bpf_object *object, const char *taken, const char *turned_back,
			   struct bpf_link *links[2]);

/* Runs a program with live frames until `repeat` runs are done, or a signal comes: -EINTR. */
int ktrxer_live_bpf_run(int program, const void *frame, uint32_t frame_size, uint32_t repeat, uint32_t batch);

#endif
