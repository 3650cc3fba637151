/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rx.h"

#include "base_limits.h"
#include "clock.h"
#include "error.h"
#include "options.h"
#include "phc.h"
#include "rx_guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KRX_RING_DEFAULT = 8 << 20,
	KRX_SESSIONS_MAX = 1024,
	KRX_SCAN_MAX = 4096, /* packets that one krx_next() looks at before it lets its caller do something else */
};

enum { PTP_EVENT_PORT = 319 };

const struct krx_backend *const krx_backend_table[] = {
	&krx_backend_packet,
	&krx_backend_xdp,
	&krx_backend_module,
	&krx_backend_nft,
	&krx_backend_module_prerouting,
	NULL,
};

struct krx {
	const struct krx_backend *backend;
	struct krx_backend_state *state;
	struct krx_ruleset *rules;
	struct krx_rule_stats *stats; /* one a rule */
	uint32_t snap;
	struct phc nic; /* its clock, where it has stamps */
	struct ktrxer_clock_map clock;
	uint64_t earliest_ns; /* no packet is of before */
	char why[KRX_NOTE], nic_note[128], note[KRX_NOTE], preceded_by[128];
};

/* 0 if this back end can carry out every rule; else err names the first that it cannot. */
static int backend_suits(const struct krx_backend *backend, const struct krx_ruleset *rules, struct ktrxer_error *err)
{
	char text[KRX_RULE_TEXT];

	for (int i = 0; i < krx_ruleset_count(rules); i++) {
		const struct krx_rule *rule = krx_ruleset_rule(rules, i);

		if (!(backend->ops & (1u << rule->op)))
			return ktrxer_fail(err, -EOPNOTSUPP, "rule '%.90s': the back end '%s' %s",
					   krx_rule_format(rule, text), backend->name, backend->no_op);
	}
	return 0;
}

/* An error after which another back end may still succeed. */
static bool may_try_another(int rc)
{
	return rc == -EOPNOTSUPP || rc == -EBUSY || rc == -E2BIG || rc == -ENOSYS;
}

static int backend_open(struct krx *rx, const struct krx_backend *backend, const struct krx_backend_setup *setup,
			struct ktrxer_error *err)
{
	int ret = backend_suits(backend, rx->rules, err);

	if (ret)
		return ret;
	rx->preceded_by[0] = '\0';
	if (setup->device) /* before the back end adds a tap of its own; what cannot be read is not listed */
		(void)krx_preceding_read(rx->preceded_by, sizeof rx->preceded_by, setup->device, backend->place);
	ret = backend->open(&rx->state, setup, err);
	if (!ret)
		rx->backend = backend;
	return ret;
}

/* The back end of that name; or the first that can do it, and then the complaint of the one that came nearest. */
static int backend_choose(struct krx *rx, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	const char *name = setup->options->backend;
	const bool automatic = !name || !strcmp(name, "auto");
	struct ktrxer_error refused = { 0 };

	for (int i = 0; krx_backend_table[i]; i++) {
		const struct krx_backend *backend = krx_backend_table[i];
		struct ktrxer_error why = { 0 };
		int ret;

		if (!automatic && strcmp(name, backend->name) != 0)
			continue;
		if (automatic && backend_suits(backend, rx->rules, NULL))
			continue;
		ret = backend_open(rx, backend, setup, &why);
		if (!ret) {
			if (!automatic)
				snprintf(rx->why, sizeof rx->why, "it was asked for");
			else if (refused.code)
				snprintf(rx->why, sizeof rx->why, "%s: %s", backend->why, refused.text);
			else
				snprintf(rx->why, sizeof rx->why, "%s", backend->why);
			return 0;
		}
		if (!refused.code)
			refused = why;
		if (!may_try_another(ret))
			break;
	}
	if (!refused.code)
		return ktrxer_fail(
			err, -ENOENT,
			"no back end '%.40s'; there are auto, packet, xdp, module, nftables and module-prerouting",
			name);
	return ktrxer_fail(err, refused.code, "%s", refused.text);
}

/* NICs that stamp not all packets stamp PTP's: events over UDP, and what is not IP. */
static bool wants_ptp(const struct krx_ruleset *rules)
{
	for (int i = 0; i < krx_ruleset_count(rules); i++) {
		const struct krx_rule *rule = krx_ruleset_rule(rules, i);

		if (!rule->proto || (rule->proto == KTRXER_UDP && (!rule->to_port || rule->to_port == PTP_EVENT_PORT)))
			return true;
	}
	return false;
}

/* Set it before the back end listens: some NICs lose their carrier for a moment. */
static void nic_open(struct krx *rx, const struct krx_backend_setup *setup)
{
	const bool requested = setup->options->nic_stamps;
	const char *name = setup->device ? setup->device->name : "";
	const int what = PHC_RECEIVED | (requested ? 0 : PHC_AS_IT_IS) | (wants_ptp(rx->rules) ? 0 : PHC_ALL);
	int rc = setup->device ? ktrxer_phc_open(&rx->nic, name, setup->device->index, what) : -ENODEV;
	char word[64];

	if (!rc) {
		ktrxer_clock_map_init(&rx->clock);
		ktrxer_phc_refresh(&rx->nic, &rx->clock, ktrxer_now_ns());
		if (!rx->nic.map.count) {
			ktrxer_phc_close(&rx->nic);
			rc = -EIO;
		}
	}
	if (!requested)
		return;
	if (rc == -ENODEV)
		snprintf(rx->nic_note, sizeof rx->nic_note, "no NIC stamps: they are of one device, name it");
	else if (rc == -EOPNOTSUPP)
		snprintf(rx->nic_note, sizeof rx->nic_note,
			 "no NIC stamps: %s makes none of what it receives (`ethtool -T %s`)", name, name);
	else if (rc == -EPERM || rc == -EACCES)
		snprintf(rx->nic_note, sizeof rx->nic_note,
			 "no NIC stamps: they need CAP_NET_ADMIN and the NIC's clock (/dev/ptp*)");
	else if (rc)
		snprintf(rx->nic_note, sizeof rx->nic_note, "no NIC stamps: %s",
			 ktrxer_strerror(rc, word, sizeof word));
	else if (rx->nic.setting.now.received != HWTSTAMP_FILTER_ALL)
		snprintf(rx->nic_note, sizeof rx->nic_note, "NIC stamps for PTP's packets alone, %s makes no others",
			 name);
}

/*
 * The NIC's stamp on this host's clock. The back end's time replaces an impossible one (the NIC's clock was set, or
 * is that of another NIC).
 */
static void nic_convert(struct krx *rx, struct krx_packet *packet)
{
	const uint8_t source = packet->source;
	uint64_t mono;

	packet->source = KTRXER_STAMP_NIC;
	if (rx->nic.fd < 0) {
		packet->bound_ns = UINT32_MAX;
		return;
	}
	if (ktrxer_phc_stamp(&rx->nic, &rx->clock, packet->raw_ns, rx->earliest_ns, packet->mono_ns, &mono,
			     &packet->bound_ns)) {
		packet->mono_ns = mono;
		if (mono > rx->earliest_ns + KRX_STAMP_BEFORE_NS)
			rx->earliest_ns = mono - KRX_STAMP_BEFORE_NS;
		return;
	}
	packet->raw_ns = (int64_t)packet->mono_ns;
	packet->clock = KTRXER_CLOCK_MONOTONIC;
	packet->source = source;
	packet->bound_ns = 0;
}

int krx_open(struct krx **out, const struct krx_options *given, const struct krx_rule *rules, int count,
	     struct ktrxer_error *err)
{
	struct krx_options options;
	struct krx_backend_setup setup;
	struct ktrxer_device device;
	struct krx *rx;
	int ret;

	if (!out)
		return ktrxer_fail(err, -EINVAL, "krx_open: no place for the receiver (NULL)");
	*out = NULL;
	ret = ktrxer_options_read(&options, sizeof options, given,
				  offsetof(struct krx_options, see_outgoing) +
					  sizeof options.see_outgoing, /* its first version */
				  "krx_options", err);
	if (ret)
		return ret;
	if (count <= 0 || !rules)
		return ktrxer_fail(err, -EINVAL,
				   "no rule, so nothing would be received; 'capture any from any to any' asks for "
				   "everything");
	if (options.snap_length > KRX_SNAP_MAX)
		return ktrxer_fail(err, -EINVAL, "snap length of %u bytes: %d is the most; 0 means whole packets",
				   options.snap_length, KRX_SNAP_MAX);
	if (!options.ring_bytes)
		options.ring_bytes = KRX_RING_DEFAULT;
	if (options.session_count > KRX_SESSIONS_MAX || (options.session_count && !options.sessions))
		return ktrxer_fail(err, -EINVAL, "%u sessions: at most %d, and where they are", options.session_count,
				   KRX_SESSIONS_MAX);
	if (options.ring_bytes > KRX_RING_MAX)
		return ktrxer_fail(err, -EINVAL, "ring of %u bytes: %d is the most", options.ring_bytes, KRX_RING_MAX);

	rx = calloc(1, sizeof *rx);
	if (!rx)
		return ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	rx->nic.fd = rx->nic.setting.place = -1;
	rx->snap = options.snap_length ? options.snap_length : KRX_SNAP_MAX;
	ret = krx_ruleset_new(&rx->rules, rules, options.rule_size, count, err);
	if (!ret)
		ret = krx_ruleset_list_check(rx->rules, err);
	if (ret)
		goto fail;
	rx->stats = calloc((size_t)count, sizeof *rx->stats);
	if (!rx->stats) {
		ret = ktrxer_fail(err, -ENOMEM, "receiver: no memory for %d rules", count);
		goto fail;
	}
	if (!options.force) {
		ret = krx_guard(rx->rules, &options, err);
		if (ret)
			goto fail;
	}
	if (options.device) {
		ret = ktrxer_device_get(&device, options.device, err);
		if (!ret && !device.up)
			ret = ktrxer_fail(err, -ENETDOWN, "device '%s' is down; `ip link set %s up` brings it up",
					  device.name, device.name);
		if (ret)
			goto fail;
	}
	setup = (struct krx_backend_setup){ .options = &options,
					    .device = options.device ? &device : NULL,
					    .rules = rx->rules };
	rx->earliest_ns = ktrxer_now_ns() - KRX_STAMP_BEFORE_NS;
	nic_open(rx, &setup);
	setup.nic = rx->nic.fd >= 0;
	ret = backend_choose(rx, &setup, err);
	if (ret)
		goto fail;
	if (!rx->backend->nic_stamps && options.nic_stamps)
		snprintf(rx->nic_note, sizeof rx->nic_note, "no NIC stamps: the back end '%s' has the kernel's",
			 rx->backend->name);
	if (!rx->backend->nic_stamps)
		ktrxer_phc_close(&rx->nic);
	*out = rx;
	return 0;
fail:
	ktrxer_phc_close(&rx->nic);
	free(rx->stats);
	krx_ruleset_free(rx->rules);
	free(rx);
	return ret;
}

void krx_close(struct krx *rx)
{
	if (!rx)
		return;
	rx->backend->close(rx->state);
	ktrxer_phc_close(&rx->nic);
	free(rx->stats);
	krx_ruleset_free(rx->rules);
	free(rx);
}

int krx_fd(const struct krx *rx)
{
	if (!rx)
		return -EINVAL;
	return rx->backend->fd(rx->state);
}

/* The rule that matches this packet, where the back end does not report it. -1: none. */
static int rule_find(struct krx *rx, const struct krx_packet *packet)
{
	struct ktrxer_packet_view view;

	ktrxer_packet_parse(&view, packet->data, packet->length, (enum ktrxer_link)packet->link);
	return krx_ruleset_match(rx->rules, &view);
}

int krx_next_sized(struct krx *rx, struct krx_packet *to, size_t size)
{
	struct krx_packet packet;

	if (!rx || !to || !size)
		return -EINVAL;
	for (int i = 0; i < KRX_SCAN_MAX; i++) {
		int ret = rx->backend->next(rx->state, &packet), rule;

		if (ret <= 0)
			return ret;
		if (!rx->backend->decides) {
			rule = rule_find(rx, &packet);
			if (rule < 0 || krx_ruleset_rule(rx->rules, rule)->op == KRX_DROP)
				continue;
			packet.rule = (uint32_t)rule;
			rx->stats[rule].matched++;
			if (krx_ruleset_rule(rx->rules, rule)->op == KRX_FORWARD)
				continue;
			rx->stats[rule].captured++;
		}
		if (packet.length > rx->snap)
			packet.length = rx->snap;
		if (packet.clock == KTRXER_CLOCK_PHC)
			nic_convert(rx, &packet);
		ktrxer_result_write(to, size, &packet, sizeof packet);
		return 1;
	}
	return 0; /* the descriptor stays readable */
}

int krx_stats_sized(struct krx *rx, struct krx_stats *to, size_t size, struct krx_rule_stats *rules, size_t rule_size,
		    int count)
{
	struct krx_stats stats;
	int have, ret;

	if (!rx || !to || !size || count < 0 || !rule_size || (count && !rules))
		return -EINVAL;
	have = krx_ruleset_count(rx->rules);
	if (count > have)
		count = have;
	if (count > 0 && rx->backend->rule_stats) {
		ret = rx->backend->rule_stats(rx->state, rx->stats, count);
		if (ret)
			return ret;
	}
	for (int i = 0; i < count; i++)
		ktrxer_result_write((uint8_t *)rules + (size_t)i * rule_size, rule_size, &rx->stats[i],
				    sizeof *rx->stats);
	stats = (struct krx_stats){
		.backend = rx->backend->name,
		.before_taps = rx->backend->before_taps,
		.after_gro = rx->backend->after_gro,
		.mode = "",
		.why = rx->why,
		.note = "",
		.preceded_by = rx->preceded_by,
	};
	if (rx->backend->describe)
		rx->backend->describe(rx->state, &stats);
	if (rx->nic_note[0]) {
		snprintf(rx->note, sizeof rx->note, "%s%s%s", rx->nic_note, stats.note[0] ? "; " : "", stats.note);
		stats.note = rx->note;
	}
	ret = rx->backend->losses(rx->state, &stats.lost, &stats.clock_steps);
	ktrxer_result_write(to, size, &stats, sizeof stats);
	return ret;
}
