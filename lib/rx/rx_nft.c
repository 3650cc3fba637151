/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The back end "nftables" is for hosts without XDP. A table of this process's own at the device's ingress drops
 * packets; a tap before it captures them. The kernel removes the table with its socket, and the tap with its own.
 */
#include "rx.h"

#include "nft_rules.h"
#include "rtnl.h"
#include "rx_watch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct krx_backend_state {
	struct krx_backend_state *tap; /* of the back end "packet"; NULL: nothing is captured */
	struct krx_watch watch;        /* without a tap */
	struct krx_look look;
	const struct krx_ruleset *rules;
	struct rtnl *nft;
	char table[40];
	uint32_t device;
};

static bool wants_tap(const struct krx_ruleset *rules)
{
	for (int i = 0; i < krx_ruleset_count(rules); i++)
		if (krx_ruleset_rule(rules, i)->op != KRX_DROP)
			return true;
	return false;
}

static int commit_failed(int rc, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	char word[64];

	if (rc == -EPERM || rc == -EACCES)
		return krx_privilege_missing(err, "CAP_NET_ADMIN");
	if (rc == -EOPNOTSUPP || rc == -EPROTONOSUPPORT || rc == -EINVAL || rc == -EAFNOSUPPORT)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "this kernel has no nftables tables that belong to a process (%s): Linux 5.12 with "
				   "CONFIG_NF_TABLES_NETDEV and CONFIG_NETFILTER_INGRESS has them",
				   ktrxer_strerror(rc, word, sizeof word));
	if (rc == -ENODEV || rc == -ENOENT)
		return ktrxer_fail(err, -ENODEV, "device '%s' is gone, or its kernel has no ingress hook",
				   setup->device->name);
	return ktrxer_fail(err, rc, "the nftables table of %d rules is refused: %m", krx_ruleset_count(setup->rules));
}

static int table_make(struct krx_backend_state *s, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	static _Atomic uint32_t serial;
	struct rtnl_request batch;
	uint32_t message;
	int rc;

	snprintf(s->table, sizeof s->table, "ktrxer-%ld-%u", (long)getpid(), atomic_fetch_add(&serial, 1));
	rc = ktrxer_nft_rules_make(&batch, setup->rules, s->table, setup->device->name, err);
	if (rc == 0) {
		rc = ktrxer_nft_open(&s->nft);
		if (rc == 0)
			rc = ktrxer_rtnl_batch(s->nft, &batch, &message);
		if (rc < 0)
			rc = commit_failed(rc, setup, err);
	}
	ktrxer_rtnl_request_free(&batch);
	return rc;
}

static void nft_backend_close(struct krx_backend_state *s)
{
	if (!s)
		return;
	ktrxer_rtnl_close(s->nft);
	if (s->tap)
		krx_backend_packet.close(s->tap);
	krx_watch_close(&s->watch);
	free(s);
}

static int nft_backend_open(struct krx_backend_state **out, const struct krx_backend_setup *setup,
			    struct ktrxer_error *err)
{
	struct krx_backend_state *s;
	int rc;

	if (!setup->device)
		return ktrxer_fail(err, -EINVAL, "rules that drop sit on one device: name the device");
	s = calloc(1, sizeof *s);
	if (!s)
		return ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	s->watch.fd = -1;
	s->rules = setup->rules;
	s->device = setup->device->index;
	/* First the tap: a packet that comes meanwhile is captured and goes on, rather than lost. */
	if (wants_tap(setup->rules))
		rc = krx_backend_packet.open(&s->tap, setup, err);
	else
		rc = krx_watch_open(&s->watch, setup->device, setup->options->promiscuous, err);
	if (!rc)
		rc = table_make(s, setup, err);
	if (rc < 0) {
		nft_backend_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

static int nft_backend_fd(const struct krx_backend_state *s)
{
	return s->tap ? krx_backend_packet.fd(s->tap) : s->watch.fd;
}

static int nft_backend_next(struct krx_backend_state *s, struct krx_packet *packet)
{
	return s->tap ? krx_backend_packet.next(s->tap, packet) : krx_watch_look(&s->look, s->watch.fd, s->device);
}

static int nft_backend_losses(struct krx_backend_state *s, uint64_t *lost, uint64_t *clock_steps)
{
	*lost = *clock_steps = 0;
	return s->tap ? krx_backend_packet.losses(s->tap, lost, clock_steps) : 0;
}

struct tally {
	const struct krx_ruleset *rules;
	struct krx_rule_stats *stats;
	int count;
};

static void tally_take(void *context, uint32_t mark, uint64_t packets)
{
	const struct tally *tally = context;
	enum krx_op op;

	if (mark >= (uint32_t)tally->count)
		return;
	op = krx_ruleset_rule(tally->rules, (int)mark)->op;
	if (op == KRX_DROP || op == KRX_CAPTURE_DROP)
		tally->stats[mark].dropped += packets;
	if (op == KRX_DROP) /* no tap has looked at these */
		tally->stats[mark].matched += packets;
}

static void tally_restart(void *context)
{
	const struct tally *tally = context;

	for (int i = 0; i < tally->count; i++) {
		tally->stats[i].dropped = 0;
		if (krx_ruleset_rule(tally->rules, i)->op == KRX_DROP)
			tally->stats[i].matched = 0;
	}
}

static int nft_backend_rule_stats(struct krx_backend_state *s, struct krx_rule_stats *rules, int count)
{
	static const struct nft_reader reader = { tally_restart, tally_take };
	struct tally tally = { .rules = s->rules, .stats = rules, .count = count };

	return ktrxer_nft_counters(s->table, &reader, &tally);
}

static void nft_backend_describe(const struct krx_backend_state *s, struct krx_stats *stats)
{
	(void)s;
	stats->note = "dropped behind the taps (tcpdump sees it), and after merging by the device (GRO)";
}

const struct krx_backend krx_backend_nft = {
	.name = "nftables",
	.ops = 1u << KRX_CAPTURE | 1u << KRX_DROP | 1u << KRX_CAPTURE_DROP | 1u << KRX_FORWARD,
	.why = "a rule drops, and XDP cannot be had",
	.before_taps = false,
	.place = KRX_AT_INGRESS,
	.after_gro = true,
	.nic_stamps = true, /* the tap's */
	.open = nft_backend_open,
	.close = nft_backend_close,
	.fd = nft_backend_fd,
	.next = nft_backend_next,
	.losses = nft_backend_losses,
	.rule_stats = nft_backend_rule_stats,
	.describe = nft_backend_describe,
};
