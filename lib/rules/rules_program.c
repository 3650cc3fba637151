/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rules_program.h"

#include "bpf_quiet.h"
#include "clock.h"
#include "live_bpf.h"
#include "rule_hash.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef BPF_F_XDP_HAS_FRAGS /* 5.18 */
#define BPF_F_XDP_HAS_FRAGS (1U << 5)
#endif
#ifndef BPF_F_XDP_DEV_BOUND_ONLY /* 6.3 */
#define BPF_F_XDP_DEV_BOUND_ONLY (1U << 6)
#endif

extern const unsigned char ktrxer_rules_object[], ktrxer_rules_nic_object[];
extern const size_t ktrxer_rules_object_size, ktrxer_rules_nic_object_size;

static int map_fd(const struct rules_program *program, const char *name)
{
	return ktrxer_live_bpf_map_fd(program->object, name);
}

static uint32_t ring_size(uint32_t wanted)
{
	uint32_t size = (uint32_t)sysconf(_SC_PAGESIZE);

	while (size < wanted && size < 1u << 30)
		size *= 2;
	return size;
}

static int entries_set(const struct rules_program *program, const char *name, uint32_t count)
{
	return bpf_map__set_max_entries(ktrxer_live_bpf_map(program->object, name), count ? count : 1);
}

static int shape(struct rules_program *program, const struct rules_setup *setup, const struct rules_table *table)
{
	const char *name = setup->object ? setup->object->program : "rules";
	struct bpf_program *each;
	uint32_t flags = program->frags ? BPF_F_XDP_HAS_FRAGS : 0;
	int rc;

	bpf_object__for_each_program(each, program->object)
		bpf_program__set_autoload(each, !strcmp(bpf_program__name(each), name));
	program->program = bpf_object__find_program_by_name(program->object, name);
	if (!program->program)
		return -ENOENT;
	rc = ktrxer_live_bpf_constants(program->object, &table->constants, sizeof table->constants);
	if (!rc)
		rc = entries_set(program, "exact4", table->counts[0]);
	if (!rc)
		rc = entries_set(program, "exact6", table->counts[1]);
	if (!rc)
		rc = entries_set(program, "counts", program->rules);
	if (!rc)
		rc = entries_set(program, "packets", ring_size(setup->ring_bytes));
	if (!rc)
		rc = entries_set(program, "sockets", setup->queues);
	if (rc)
		return rc;
	if (program->nic) {
		flags |= BPF_F_XDP_DEV_BOUND_ONLY;
		bpf_program__set_ifindex(program->program, setup->nic);
	}
	return bpf_program__set_flags(program->program, flags);
}

static int load_once(struct rules_program *program, const struct rules_setup *setup, struct rules_table *table)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "ktrxer_rules");
	int rc;

	table->constants.config.has_frags = program->frags;
	if (setup->object)
		program->object = bpf_object__open_mem(setup->object->bytes, setup->object->size, &options);
	else if (program->nic)
		program->object = bpf_object__open_mem(ktrxer_rules_nic_object, ktrxer_rules_nic_object_size, &options);
	else
		program->object = bpf_object__open_mem(ktrxer_rules_object, ktrxer_rules_object_size, &options);
	if (!program->object)
		return -errno;
	rc = shape(program, setup, table);
	if (!rc)
		rc = bpf_object__load(program->object);
	if (!rc)
		return 0;
	bpf_object__close(program->object);
	program->object = NULL;
	return rc;
}

/* Loads the best program of this kernel: with the driver's own words, with packets of several pieces, plain. */
static int load(struct rules_program *program, const struct rules_setup *setup, struct rules_table *table)
{
	int rc = -EINVAL;

	ktrxer_bpf_quiet_begin();
	program->frags = !setup->plain;
	if (setup->nic) {
		program->nic = true;
		rc = load_once(program, setup, table);
		program->nic = !rc;
	}
	if (rc && rc != -EPERM)
		rc = load_once(program, setup, table);
	if (rc && rc != -EPERM && rc != -ENOMEM && rc != -E2BIG) {
		program->frags = false;
		rc = load_once(program, setup, table);
	}
	ktrxer_bpf_quiet_end();
	return rc;
}

static int load_failed(int rc, struct ktrxer_error *err)
{
	char word[64];

	if (rc == -EPERM || rc == -EACCES)
		return ktrxer_fail(err, -EPERM,
				   "rules by XDP need CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, which this process does "
				   "not have: run it "
				   "as root (sudo)");
	if (rc == -ENOMEM || rc == -E2BIG)
		return ktrxer_fail(
			err, -ENOMEM,
			"no memory in the kernel for the rules or their ring: fewer rules, or a smaller ring");
	if (rc == -ENOSYS)
		return ktrxer_fail(err, -EOPNOTSUPP, "this kernel has no bpf() call (CONFIG_BPF_SYSCALL), so no XDP");
	return ktrxer_fail(err, -EOPNOTSUPP,
			   "this kernel does not take the rules' program (%s): XDP rules need Linux 5.9",
			   ktrxer_strerror(rc, word, sizeof word));
}

static int exact_fill(const struct rules_program *program, const struct rules_table *table)
{
	const int four = map_fd(program, "exact4"), six = map_fd(program, "exact6");
	const struct krx_match *m = krx_ruleset_table(table->rules);
	struct rules_filter *filter = calloc(1, sizeof *filter);
	const uint32_t zero = 0;
	int rc = filter ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < m->exact_count; i++) {
		const struct krx_view *key = &m->exact[i].key;
		const bool is_four = key->version == 4;
		const struct rules_key4 key4 = ktrxer_rules_key4(key);
		const struct rules_verdict verdict = ktrxer_rules_table_verdict(table, m->exact[i].rule);
		const uint32_t place = is_four ? rules_place4(&key4) : rules_place6(key);

		if (bpf_map_update_elem(is_four ? four : six, is_four ? (const void *)&key4 : key, &verdict,
					BPF_NOEXIST))
			rc = -errno;
		filter->words[place / 64] |= 1ULL << place % 64;
	}
	if (!rc && m->exact_count && bpf_map_update_elem(map_fd(program, "filter"), &zero, filter, 0))
		rc = -errno;
	free(filter);
	return rc;
}

/* Steps that are only possible after the program is loaded. */
static int furnish(struct rules_program *program, const struct rules_setup *setup, const struct rules_table *table,
		   struct ktrxer_error *err)
{
	void *at;
	int rc = exact_fill(program, table);

	if (rc < 0)
		return ktrxer_fail(err, rc, "the kernel's table of rules does not take them all: %m");
	at = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, map_fd(program, "control"),
		  0);
	if (at == MAP_FAILED)
		return ktrxer_fail(err, -ENOMEM, "a page of the rules' program cannot be mapped");
	program->control = at;
	rc = ktrxer_bpf_ring_open(&program->ring, map_fd(program, "packets"), ring_size(setup->ring_bytes));
	if (rc < 0)
		return ktrxer_fail(err, rc, "the ring of packets cannot be mapped: %m");
	return 0;
}

int ktrxer_rules_program_open(struct rules_program *program, const struct rules_setup *setup, struct ktrxer_error *err)
{
	struct rules_table *table = malloc(sizeof *table);
	struct rules_config *config;
	int rc;

	memset(program, 0, sizeof *program);
	if (!table)
		return ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	rc = ktrxer_rules_table_make(table, setup->rules, err);
	if (rc < 0)
		goto free_table;
	config = &table->constants.config;
	config->snap = setup->snap && setup->snap < RULES_DATA_MAX ? setup->snap : RULES_DATA_MAX;
	config->xsk_most = setup->queues ? setup->xsk_most : 0;
	config->raw_ip = setup->link == KTRXER_LINK_RAW_IP;
	config->traced = setup->traced;
	program->rules = (uint32_t)krx_ruleset_count(setup->rules);
	program->processors = libbpf_num_possible_cpus();
	program->each = program->processors > 0 ? calloc((size_t)program->processors, sizeof *program->each) : NULL;
	if (!program->each) {
		rc = ktrxer_fail(err, -ENOMEM, "receiver: no memory");
		goto fail;
	}
	rc = load(program, setup, table);
	if (rc < 0)
		rc = load_failed(rc, err);
	else
		rc = furnish(program, setup, table, err);
	if (rc == 0) {
		free(table);
		return 0;
	}
fail:
	ktrxer_rules_program_close(program);
free_table:
	free(table);
	return rc;
}

void ktrxer_rules_program_close(struct rules_program *program)
{
	ktrxer_bpf_ring_close(&program->ring);
	if (program->control)
		munmap(program->control, (size_t)sysconf(_SC_PAGESIZE));
	bpf_object__close(program->object);
	free(program->each);
	memset(program, 0, sizeof *program);
}

int ktrxer_rules_program_fd(const struct rules_program *program)
{
	return bpf_program__fd(program->program);
}

int ktrxer_rules_program_socket_put(const struct rules_program *program, uint32_t queue, int socket)
{
	return bpf_map_update_elem(map_fd(program, "sockets"), &queue, &socket, 0) ? -errno : 0;
}

int ktrxer_rules_program_ring_fd(const struct rules_program *program)
{
	return map_fd(program, "packets");
}

int ktrxer_rules_program_counts(struct rules_program *program, uint32_t rule, struct rules_counts *sum)
{
	*sum = (struct rules_counts){ 0 };
	if (bpf_map_lookup_elem(map_fd(program, "counts"), &rule, program->each))
		return -errno;
	for (int i = 0; i < program->processors; i++) {
		sum->matched += program->each[i].matched;
		sum->dropped += program->each[i].dropped;
	}
	return 0;
}

int ktrxer_rules_program_lost(struct rules_program *program, uint64_t *lost)
{
	uint64_t *each = (uint64_t *)(void *)program->each;
	const uint32_t zero = 0;

	_Static_assert(sizeof *each <= sizeof *program->each, "room for one number a processor");
	*lost = 0;
	if (bpf_map_lookup_elem(map_fd(program, "lost"), &zero, each))
		return -errno;
	for (int i = 0; i < program->processors; i++)
		*lost += each[i];
	return 0;
}

int ktrxer_rules_program_try(struct rules_program *program, const uint8_t *packet, uint32_t length, uint32_t repeat,
			     struct rules_trial *trial)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = length, .repeat = (int)repeat);

	program->control->decided = 0;
	if (bpf_prog_test_run_opts(ktrxer_rules_program_fd(program), &options))
		return -errno;
	*trial = (struct rules_trial){ .action = options.retval,
				       .cost_ns = options.duration,
				       .decided = (int)*(volatile __u32 *)&program->control->decided - 1 };
	return 0;
}
