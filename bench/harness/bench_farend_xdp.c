/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The judge by XDP, and by fentry where the driver is called: farend.bpf.c is its program. */
#include "bench_farend_impl.h"

#include "farend.h"
#include "error.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const unsigned char ktrxer_farend_object[];
extern const size_t ktrxer_farend_object_size;

enum { CALLS = 2 };

/* Ways to see the near driver being called, the best first. Each has two programs: for one packet, for a bulk. */
enum call_way { BY_FENTRY, BY_TRACEPOINT, NOT_AT_ALL };

static const struct {
	const char *program, *function; /* of veth; NULL: of any driver */
} call_programs[NOT_AT_ALL][CALLS] = {
	[BY_FENTRY] = { { "driver_call", "veth_xmit" }, { "driver_bulk", "veth_ndo_xdp_xmit" } },
	[BY_TRACEPOINT] = { { "near_call", NULL }, { "near_bulk", NULL } },
};

struct xdp_state {
	struct bpf_object *object;
	struct bpf_link *link, *calls[CALLS];
	struct farend_config *config;
	size_t config_bytes, stamps_bytes;
	int counts_fd, processors;
	struct farend_counts *counts; /* one a processor */
};

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static void *map_memory(struct bpf_object *object, const char *name, size_t bytes)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	void *at = map ? mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0)
		       : MAP_FAILED;

	return at == MAP_FAILED ? NULL : at;
}

static bool kernel_has(const struct btf *btf, const char *function)
{
	return btf && btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) > 0;
}

/*
 * Programs that stamp the driver's calls are loaded only where they are requested and the kernel has the tracepoints.
 */
static void choose_calls(struct farend *f, struct bpf_object *object, enum call_way wanted)
{
	struct btf *btf = wanted == BY_FENTRY ? btf__load_vmlinux_btf() : NULL;

	for (int way = BY_FENTRY; way < NOT_AT_ALL; way++) {
		for (int i = 0; i < CALLS; i++) {
			struct bpf_program *program =
				bpf_object__find_program_by_name(object, call_programs[way][i].program);
			const char *function = call_programs[way][i].function;
			const bool use = way == (int)wanted && (!function || kernel_has(btf, function));

			if (program)
				bpf_program__set_autoload(program, use);
			if (way == (int)wanted && i == 0 && !use)
				snprintf(f->note, sizeof f->note, "the driver's calls are not stamped by fentry: %s",
					 btf ? "its functions are not in "
					       "this kernel's BTF (only veth's are known)"
					     : "this kernel has no BTF (/sys/kernel/btf/vmlinux, "
					       "CONFIG_DEBUG_INFO_BTF)");
		}
	}
	btf__free(btf);
}

static bool attach_calls(struct xdp_state *s, enum call_way way)
{
	bool any = false;

	for (int i = 0; way != NOT_AT_ALL && i < CALLS; i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(s->object, call_programs[way][i].program);

		if (!program || bpf_program__fd(program) < 0)
			continue;
		s->calls[i] = bpf_program__attach(program);
		if (i == 0 && s->calls[i])
			any = true;
	}
	return any;
}

static int load(struct farend *f, struct xdp_state *s, enum call_way way)
{
	LIBBPF_OPTS(bpf_object_open_opts, open, .object_name = "farend");
	static const char *const by_number[] = { "arrivals", "calls" };

	s->object = bpf_object__open_mem(ktrxer_farend_object, ktrxer_farend_object_size, &open);
	if (!s->object)
		return -errno;
	for (int i = 0; i < 2; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(s->object, by_number[i]);

		if (!map || bpf_map__set_max_entries(map, i == 0 || way != NOT_AT_ALL ? f->slots : 1))
			return -EINVAL;
	}
	choose_calls(f, s->object, way);
	return bpf_object__load(s->object);
}

static void xdp_close(struct farend *f)
{
	struct xdp_state *s = f->state;

	if (!s)
		return;
	for (int i = 0; i < CALLS; i++)
		bpf_link__destroy(s->calls[i]);
	bpf_link__destroy(s->link);
	if (s->config)
		munmap(s->config, whole_pages(s->config_bytes));
	if (f->arrivals)
		munmap(f->arrivals, whole_pages(s->stamps_bytes));
	if (f->calls)
		munmap(f->calls, whole_pages(s->stamps_bytes));
	f->arrivals = f->calls = NULL;
	bpf_object__close(s->object);
	free(s->counts);
	free(s);
	f->state = NULL;
}

static int xdp_open(struct farend *f, const struct bench_net *net, const struct farend_options *o,
		    struct ktrxer_error *err)
{
	struct xdp_state *s = calloc(1, sizeof *s);
	enum call_way way = o->calls ? BY_FENTRY : NOT_AT_ALL;
	struct stat near;
	char word[64];
	int rc;

	if (!s)
		return ktrxer_fail(err, -ENOMEM, "no memory for the far end");
	libbpf_set_print(NULL); /* messages are in `err` */
	f->state = s;
	s->stamps_bytes = (size_t)f->slots * sizeof *f->arrivals;
	s->config_bytes = sizeof *s->config;
	rc = load(f, s, way);
	while (rc < 0 && way != NOT_AT_ALL) { /* a verifier that takes exception to it: the rest still works */
		bpf_object__close(s->object);
		s->object = NULL;
		snprintf(f->note, sizeof f->note,
			 "the driver's calls are not stamped by %s: this kernel refuses such programs (%s)%s",
			 way == BY_FENTRY ? "fentry" : "tracepoints", ktrxer_strerror(rc, word, sizeof word),
			 rc == -EPERM ? ": a policy (lockdown, an LSM), or CAP_PERFMON is missing" : "");
		rc = load(f, s, ++way);
	}
	if (rc < 0) {
		ktrxer_fail(err, rc, "its program is not taken (%s)%s", ktrxer_strerror(rc, word, sizeof word),
			    rc == -EPERM ? ": CAP_BPF and CAP_NET_ADMIN are needed, of the machine's own root" : "");
		goto fail;
	}
	s->processors = libbpf_num_possible_cpus();
	s->counts = calloc((size_t)(s->processors > 0 ? s->processors : 1), sizeof *s->counts);
	s->counts_fd = bpf_object__find_map_fd_by_name(s->object, "counts");
	s->config = map_memory(s->object, "config", s->config_bytes);
	f->arrivals = map_memory(s->object, "arrivals", s->stamps_bytes);
	if (s->processors < 1 || !s->counts || s->counts_fd < 0 || !s->config || !f->arrivals) {
		rc = ktrxer_fail(err, -ENOMEM, "its maps cannot be mapped (Linux 5.5)");
		goto fail;
	}
	s->link = bpf_program__attach_xdp(bpf_object__find_program_by_name(s->object, "farend"), (int)net->far_index);
	if (!s->link) {
		rc = -errno;
		ktrxer_fail(err, rc, "%s takes no XDP program (%s)%s", net->far_device,
			    ktrxer_strerror(rc, word, sizeof word), rc == -EBUSY ? ": another one is there" : "");
		goto fail;
	}
	s->config->near_index = net->near_index;
	s->config->near_netns = fstat(net->near_fd, &near) == 0 ? (__u32)near.st_ino : 0;
	if (attach_calls(s, way))
		f->calls = map_memory(s->object, "calls", s->stamps_bytes);
	if (f->calls && way == BY_TRACEPOINT) {
		const size_t used = strlen(f->note);

		snprintf(f->note + used, sizeof f->note - used,
			 "%sby tracepoints: before the call (net_dev_start_xmit), after that of a bulk "
			 "(xdp_devmap_xmit); they do not see senders that bypass the qdisc layer (packet, xsk)",
			 used ? "; " : "");
	}
	return 0;

fail:
	xdp_close(f);
	return rc;
}

static void xdp_begin(struct farend *f, uint16_t port, uint16_t cross_port)
{
	struct xdp_state *s = f->state;
	const __u32 zero = 0;

	*(volatile __u32 *)&s->config->port = 0;
	s->config->slots = f->slots;
	s->config->called = 0;
	s->config->cross_port = cross_port;
	memset(f->arrivals, 0, s->stamps_bytes);
	if (f->calls)
		memset(f->calls, 0, s->stamps_bytes);
	memset(s->counts, 0, (size_t)s->processors * sizeof *s->counts);
	bpf_map_update_elem(s->counts_fd, &zero, s->counts, BPF_ANY);
	__atomic_store_n(&s->config->port, port, __ATOMIC_RELEASE);
}

static void earlier(uint64_t *first, uint64_t ns)
{
	if (ns && (!*first || ns < *first))
		*first = ns;
}

static void later(uint64_t *last, uint64_t ns)
{
	if (ns > *last)
		*last = ns;
}

static void xdp_read(struct farend *f, struct farend_result *r)
{
	struct xdp_state *s = f->state;
	const __u32 zero = 0;

	*r = (struct farend_result){ 0 };
	if (bpf_map_lookup_elem(s->counts_fd, &zero, s->counts))
		return;
	for (int i = 0; i < s->processors; i++) {
		const struct farend_counts *n = &s->counts[i];

		r->probes += n->probes;
		r->timed += n->timed;
		r->again += n->again;
		r->odd += n->odd;
		r->cross += n->cross;
		r->cross_bytes += n->cross_bytes;
		earlier(&r->first_ns, n->first_ns);
		later(&r->last_ns, n->last_ns);
		earlier(&r->cross_first_ns, n->cross_first_ns);
		later(&r->cross_last_ns, n->cross_last_ns);
	}
}

static void xdp_end(struct farend *f)
{
	struct xdp_state *s = f->state;

	__atomic_store_n(&s->config->port, 0, __ATOMIC_RELEASE);
}

const struct farend_judge farend_xdp = {
	.name = "xdp",
	.open = xdp_open,
	.close = xdp_close,
	.begin = xdp_begin,
	.read = xdp_read,
	.end = xdp_end,
};
