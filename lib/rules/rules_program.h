/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rules' program, loaded, with its maps. All of it goes with its file descriptors, that is, with the process. */
#ifndef KTRXER_LIB_RULES_PROGRAM_H
#define KTRXER_LIB_RULES_PROGRAM_H

#include "bpf_ring.h"
#include "error.h"
#include "rules_table.h"

struct bpf_object;
struct bpf_program;

/* Another object that holds the rules' maps, and a program that decides by them: for tests. */
struct rules_object {
	const void *bytes;
	size_t size;
	const char *program;
};

struct rules_setup {
	const struct krx_ruleset *rules;
	uint32_t snap;       /* 0: whole packets */
	uint32_t ring_bytes; /* of the ring buffer: the next power of two */
	uint32_t queues;     /* of AF_XDP sockets, 0: none */
	uint32_t xsk_most;
	enum ktrxer_link link;
	uint32_t nic; /* index of a device whose driver is asked for its own stamps; 0: none */
	bool traced;
	bool plain;                        /* for tests: as a kernel before 5.18 has it */
	const struct rules_object *object; /* NULL: the program of bpf/rules.bpf.c */
};

struct rules_program {
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_ring ring;
	struct rules_control *control; /* mapped */
	uint32_t rules;
	int processors;
	struct rules_counts *each; /* room for what each processor counted */
	bool nic, frags;
};

int ktrxer_rules_program_open(struct rules_program *program, const struct rules_setup *setup, struct ktrxer_error *err);
void ktrxer_rules_program_close(struct rules_program *program);

int ktrxer_rules_program_fd(const struct rules_program *program);
int ktrxer_rules_program_ring_fd(const struct rules_program *program); /* to be polled */
/* The AF_XDP socket gets the packets of capture+drop of this queue from now on. */
int ktrxer_rules_program_socket_put(const struct rules_program *program, uint32_t queue, int socket);
int ktrxer_rules_program_counts(struct rules_program *program, uint32_t rule, struct rules_counts *sum);
int ktrxer_rules_program_lost(struct rules_program *program, uint64_t *lost);

struct rules_trial {
	uint32_t action;  /* XDP_PASS... */
	uint32_t cost_ns; /* the mean of `repeat` runs */
	int decided;      /* the rule's position, -1: none; traced programs only */
};
/* BPF_PROG_RUN: the program on a packet of 14 bytes or more that comes by no device. */
int ktrxer_rules_program_try(struct rules_program *program, const uint8_t *packet, uint32_t length, uint32_t repeat,
			     struct rules_trial *trial);

#endif
