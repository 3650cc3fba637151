/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The back ends "module" and "module-prerouting" read records from the ring that ktrxer.ko shares, which decides by the
 * rules. One descriptor holds all of it. <linux/ktrxer.h> is the specification.
 */
#include "base_limits.h"
#include "rule_match.h"
#include "rx.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ktrxer.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The layout is the same on every machine, and the operations are the library's own. */
_Static_assert(sizeof(struct ktrxer_rx_setup) == 48 && sizeof(struct ktrxer_rx_rule) == 44 &&
		       sizeof(struct ktrxer_rx_rules) == 24 && sizeof(struct ktrxer_rx_stats) == 40 &&
		       sizeof(struct ktrxer_rx_record) == 48 && offsetof(struct ktrxer_rx_ring, head) == 64,
	       "layout");
_Static_assert((int)KRX_CAPTURE == KTRXER_RX_CAPTURE && (int)KRX_DROP == KTRXER_RX_DROP &&
		       (int)KRX_CAPTURE_DROP == KTRXER_RX_CAPTURE_DROP && (int)KRX_FORWARD == KTRXER_RX_FORWARD &&
		       KRX_SNAP_MAX <= KTRXER_RX_SNAP_MAX && KRX_RING_MAX <= KTRXER_RX_RING_MAX &&
		       KRX_RULES_MAX <= KTRXER_RX_RULES_MAX && (int)KRX_LIST_MAX == KTRXER_RX_LIST_MAX,
	       "limits");

struct krx_backend_state {
	int fd;
	const struct krx_ruleset *rules;
	struct ktrxer_rx_setup setup;
	uint8_t *map;
	uint32_t head, tail; /* `head` as last seen */
	uint32_t held;       /* bytes at the tail that the caller has */
	uint64_t *captured;  /* by rule, as given */
	uint64_t *matched;   /* by rule, as asked */
};

static int module_open(struct ktrxer_error *err)
{
	struct ktrxer_version version = { 0 };
	char word[64];
	int fd = open("/dev/krx", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == EPERM)
		return ktrxer_fail(
			err, -EPERM,
			"/dev/krx needs CAP_NET_RAW, which this process does not have: run it as root (sudo)");
	/* Root in a user namespace alone: the other back ends may still work. */
	if (fd < 0 && errno == EACCES)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "/dev/krx may not be opened by this user: run it as root (sudo), or join the group "
				   "that the file belongs to");
	if (fd < 0)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the kernel module is not here (/dev/krx: %s): `modprobe ktrxer` loads it where it "
				   "is installed "
				   "(docs/howto/module.md)",
				   ktrxer_strerror(-errno, word, sizeof word));
	if (!ioctl(fd, KTRXER_IOC_VERSION, &version) && version.version == KTRXER_UAPI_VERSION)
		return fd;
	close(fd);
	return ktrxer_fail(
		err, -EOPNOTSUPP,
		"/dev/krx is of version %u, and this ktrxer speaks version %d: install both from one release",
		version.version, KTRXER_UAPI_VERSION);
}

int krx_module_check(struct ktrxer_error *err)
{
	const int fd = module_open(err);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int fail_errno(struct ktrxer_error *err, const char *what)
{
	const int code = -errno;
	return ktrxer_fail(err, code, "/dev/krx: %s: %m", what);
}

static int ring_make(struct krx_backend_state *s, const struct krx_backend_setup *setup, uint32_t hook,
		     struct ktrxer_error *err)
{
	uint32_t bytes = setup->options->ring_bytes;

	if (bytes < KTRXER_RX_RING_MIN)
		bytes = KTRXER_RX_RING_MIN;
	for (;; bytes /= 2) {
		s->setup = (struct ktrxer_rx_setup){
			.size = sizeof s->setup, .hook = hook, .snap = setup->options->snap_length, .ring_bytes = bytes
		};
		if (setup->device) {
			s->setup.ifindex = setup->device->index;
			s->setup.flags = setup->options->promiscuous ? KTRXER_RX_PROMISCUOUS : 0;
		}
		if (!ioctl(s->fd, KTRXER_RX_SETUP, &s->setup))
			break;
		if (errno != ENOMEM || bytes == KTRXER_RX_RING_MIN)
			return fail_errno(err, "no ring");
	}
	s->map = mmap(NULL, s->setup.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)s->setup.map_offset);
	if (s->map == MAP_FAILED) {
		s->map = NULL;
		return fail_errno(err, "the ring cannot be mapped");
	}
	return 0;
}

static int rules_set(struct krx_backend_state *s, struct ktrxer_error *err)
{
	const int count = krx_ruleset_count(s->rules);
	struct ktrxer_rx_rules table = { .size = sizeof table,
					 .count = (uint32_t)count,
					 .rule_size = sizeof(struct ktrxer_rx_rule) };
	struct ktrxer_rx_rule *to = calloc((size_t)count, sizeof *to);
	int ret;

	if (!to)
		return ktrxer_fail(err, -ENOMEM, "no memory for %d rules", count);
	for (int rank = 0; rank < count; rank++) /* the module compares them in this order */
		krx_rule_pack(&to[rank], krx_ruleset_ranked(s->rules, rank));
	table.rules = (uintptr_t)to;
	ret = ioctl(s->fd, KTRXER_RX_RULES, &table) ? -errno : 0;
	free(to);
	switch (ret) {
	case 0:
		return 0;
	case -EPERM:
		return ktrxer_fail(
			err, ret,
			"rules that drop need CAP_NET_ADMIN, which this process does not have: run it as root (sudo)");
	case -E2BIG:
		return ktrxer_fail(err, ret,
				   "the device has too many netfilter hooks at its ingress: remove one "
				   "(`nft list hooks` lists them)");
	case -EOPNOTSUPP:
		return ktrxer_fail(err, ret,
				   "this kernel has no ingress hook (CONFIG_NETFILTER_INGRESS): the back end "
				   "'module-prerouting' does without");
	default:
		errno = -ret;
		return fail_errno(err, "rules");
	}
}

static void module_close(struct krx_backend_state *s)
{
	if (!s)
		return;
	if (s->map)
		munmap(s->map, s->setup.map_bytes);
	if (s->fd >= 0)
		close(s->fd);
	free(s->captured);
	free(s->matched);
	free(s);
}

static int open_at(struct krx_backend_state **out, const struct krx_backend_setup *setup, uint32_t hook,
		   struct ktrxer_error *err)
{
	const struct timespec pause = { .tv_nsec = KRX_STAMPS_ON_NS };
	const size_t count = (size_t)krx_ruleset_count(setup->rules);
	struct krx_backend_state *s;
	int ret;

	if (setup->options->see_outgoing)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the module gets arriving packets, not those sent here: do without outgoing "
				   "packets, or use the back end 'packet'");
	s = calloc(1, sizeof *s);
	if (!s)
		return ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	s->rules = setup->rules;
	s->captured = calloc(count, sizeof *s->captured);
	s->matched = calloc(count, sizeof *s->matched);
	s->fd = module_open(err);
	ret = s->fd;
	if (ret >= 0)
		ret = s->captured && s->matched ? ring_make(s, setup, hook, err)
						: ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	if (!ret) {
		nanosleep(&pause, NULL);
		ret = rules_set(s, err);
	}
	if (ret) {
		module_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

static int ingress_open(struct krx_backend_state **out, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	if (!setup->device)
		return ktrxer_fail(err, -EINVAL,
				   "rules at a device's ingress sit on one device: name the device, or use the back "
				   "end 'module-prerouting'");
	return open_at(out, setup, KTRXER_RX_INGRESS, err);
}

static int prerouting_open(struct krx_backend_state **out, const struct krx_backend_setup *setup,
			   struct ktrxer_error *err)
{
	return open_at(out, setup, KTRXER_RX_PREROUTING, err);
}

static int module_fd(const struct krx_backend_state *s)
{
	return s->fd;
}

static const struct ktrxer_rx_ring *ring_of(const struct krx_backend_state *s)
{
	return (const void *)s->map;
}

/*
 * The state of the device, once all records are read. The module reports each change by poll() until it is marked as
 * seen.
 */
static int device_look(const struct krx_backend_state *s)
{
	const uint32_t events = __atomic_load_n(&ring_of(s)->events, __ATOMIC_ACQUIRE);

	__atomic_store_n((uint32_t *)(void *)(s->map + s->setup.tail_offset) + 1, events, __ATOMIC_RELAXED);
	switch (__atomic_load_n(&ring_of(s)->state, __ATOMIC_RELAXED)) {
	case KTRXER_RX_DOWN:
		return -ENETDOWN;
	case KTRXER_RX_GONE:
		return -ENODEV;
	default:
		return 0;
	}
}

static int module_next(struct krx_backend_state *s, struct krx_packet *packet)
{
	const uint32_t mask = s->setup.ring_bytes - 1;
	const struct ktrxer_rx_record *r;

	for (;;) {
		s->tail += s->held;
		if (s->held)
			__atomic_store_n((uint32_t *)(void *)(s->map + s->setup.tail_offset), s->tail,
					 __ATOMIC_RELEASE);
		s->held = 0;
		if (s->head == s->tail)
			s->head = __atomic_load_n(&ring_of(s)->head, __ATOMIC_ACQUIRE);
		if (s->head == s->tail)
			return device_look(s);
		r = (const void *)(s->map + s->setup.data_offset + (s->tail & mask));
		if (r->size < 8 || r->size > s->head - s->tail)
			return -EBADMSG; /* the module does not do that: another process has written there */
		s->held = r->size;
		if (!(r->flags & KTRXER_RX_PAD))
			break;
	}
	if (r->size < sizeof *r || r->kept > r->size - sizeof *r || r->rule >= (uint32_t)krx_ruleset_count(s->rules))
		return -EBADMSG;
	*packet = (struct krx_packet){
		.data = r->data,
		.length = r->kept,
		.original_length = r->length,
		.mono_ns = r->mono_ns,
		.raw_ns = r->real_ns,
		.clock = KTRXER_CLOCK_REALTIME,
		.source = KTRXER_STAMP_KERNEL,
		.direction = r->direction,
		.vlan_present = !!(r->flags & KTRXER_RX_TAGGED),
		.vlan_tci = r->tci,
		.rule = (uint32_t)(krx_ruleset_ranked(s->rules, (int)r->rule) - krx_ruleset_rule(s->rules, 0)),
		.device = r->ifindex,
		.link = r->flags & KTRXER_RX_RAW_IP ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET,
	};
	s->captured[packet->rule]++;
	return 1;
}

static int module_losses(struct krx_backend_state *s, uint64_t *lost, uint64_t *clock_steps)
{
	struct ktrxer_rx_stats stats = { .size = sizeof stats };

	*clock_steps = 0; /* the module reads both clocks at once */
	if (ioctl(s->fd, KTRXER_RX_STATS, &stats))
		return -errno;
	*lost = stats.lost;
	return 0;
}

static int module_rule_stats(struct krx_backend_state *s, struct krx_rule_stats *rules, int count)
{
	const int have = krx_ruleset_count(s->rules);
	struct ktrxer_rx_stats stats = { .size = sizeof stats,
					 .count = (uint32_t)have,
					 .matched = (uintptr_t)s->matched };

	if (ioctl(s->fd, KTRXER_RX_STATS, &stats))
		return -errno;
	for (int rank = 0; rank < have; rank++) {
		const struct krx_rule *rule = krx_ruleset_ranked(s->rules, rank);
		const int i = (int)(rule - krx_ruleset_rule(s->rules, 0));

		if (i < count)
			rules[i] = (struct krx_rule_stats){
				.matched = s->matched[rank],
				.captured = s->captured[i],
				.dropped = rule->op == KRX_DROP || rule->op == KRX_CAPTURE_DROP ? s->matched[rank] : 0
			};
	}
	return 0;
}

static void module_describe(const struct krx_backend_state *s, struct krx_stats *stats)
{
	stats->mode = s->setup.hook == KTRXER_RX_INGRESS ? "ingress" : "prerouting";
	stats->note = s->setup.hook == KTRXER_RX_INGRESS
			      ? "dropped behind the taps (tcpdump sees it), and after merging by the device (GRO)"
			      : "IP packets alone, without those that IP refuses; dropped behind the taps (tcpdump "
				"sees it), and "
				"after merging by the device (GRO)";
}

/* Both places of the hook: all but their names, and how they begin. */
#define BACKEND(its_name, its_why, its_open) \
	{ \
		.name = its_name, \
		.ops = 1u << KRX_CAPTURE | 1u << KRX_DROP | 1u << KRX_CAPTURE_DROP | 1u << KRX_FORWARD, \
		.why = its_why, \
		.after_gro = true, \
		.place = KRX_AT_INGRESS, \
		.decides = true, \
		.open = its_open, \
		.close = module_close, \
		.fd = module_fd, \
		.next = module_next, \
		.losses = module_losses, \
		.rule_stats = module_rule_stats, \
		.describe = module_describe, \
	}

const struct krx_backend krx_backend_module = BACKEND("module", "a rule drops, and XDP cannot be had", ingress_open);
const struct krx_backend krx_backend_module_prerouting =
	BACKEND("module-prerouting", "a rule drops, and nothing that does it at the device's ingress can be had",
		prerouting_open);
