/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `stamp` is to do, checked before the first probe; and how each probe is made. */
#include "stamp.h"

#include "error.h"
#include "limits.h"
#include "secret.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timex.h>

/* -------------------------------------------------------------------------------------------------------- the packet */

static const struct {
	const char *name;
	uint8_t type;
	uint16_t length;
} tlv_names[] = {
	{ "location", STAMP_TLV_LOCATION, 4 + 2 * 20 }, /* with the addresses as the far end sees them */
	{ "time-info", STAMP_TLV_TIME_INFO, 4 },
	{ "cos", STAMP_TLV_COS, 4 },
	{ "direct", STAMP_TLV_DIRECT, 12 },
};

static int tlv_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof tlv_names / sizeof *tlv_names; i++)
		if (strcmp(tlv_names[i].name, name) == 0)
			return (int)i;
	return -1;
}

static uint32_t tlv_put(uint8_t *payload, uint32_t at, uint8_t type, uint16_t length)
{
	return at + stamp_tlv_write(payload ? payload + at : NULL, type, length);
}

/* The TLVs, in a payload (or without one, to know how long they are). Returns the length. */
static uint32_t tlvs_lay(struct stamp_run *run, uint8_t *payload, uint32_t padding)
{
	const struct stamp_options *o = run->o;
	uint32_t at = (uint32_t)stamp_base_length(run->auth), begin = at;

	if (o->follow_up)
		at = tlv_put(payload, at, STAMP_TLV_FOLLOW_UP, 16);
	for (int i = 0; i < o->tlvs.count; i++) {
		const int which = tlv_by_name(o->tlvs.items[i]);
		const uint32_t value = at + STAMP_TLV_HEAD;

		at = tlv_put(payload, at, tlv_names[which].type, tlv_names[which].length);
		if (!payload)
			continue;
		if (tlv_names[which].type == STAMP_TLV_DIRECT)
			run->direct_at = value;
		else if (tlv_names[which].type == STAMP_TLV_COS)
			payload[value] = (uint8_t)(o->tos & 0xfc); /* DSCP1: back as it went */
		else if (tlv_names[which].type == STAMP_TLV_LOCATION)
			tlv_put(payload, tlv_put(payload, value + 4, 7, 16), 4, 16);
	}
	if (padding >= STAMP_TLV_HEAD)
		at = tlv_put(payload, at, STAMP_TLV_PADDING, (uint16_t)(padding - STAMP_TLV_HEAD));
	if (run->tlv_mac_key && at > begin) {
		if (payload)
			run->mac_at = at;
		at = tlv_put(payload, at, STAMP_TLV_HMAC, STAMP_MAC_LENGTH);
	}
	return at;
}

static int payload_make(struct stamp_run *run, uint8_t **payload, struct ktrxer_error *err)
{
	const uint32_t least = tlvs_lay(run, NULL, 0), asked = (uint32_t)run->o->payload;
	uint32_t length = asked > least ? asked : least;

	if (asked && asked < least)
		return ktrxer_fail(err, -EINVAL, "--payload %u: a probe with these extensions has at least %u bytes", asked, least);
	/* Room that is too small for a TLV's head becomes room that is just enough. */
	if (length > least && length - least < STAMP_TLV_HEAD)
		length = least + STAMP_TLV_HEAD;
	/* With padding alone an HMAC TLV comes in as well. */
	run->payload_length = tlvs_lay(run, NULL, length - least);
	*payload = calloc(1, run->payload_length);
	if (!*payload)
		return ktrxer_fail(err, -ENOMEM, "no memory for a payload of %u bytes", run->payload_length);
	tlvs_lay(run, *payload, length - least);
	return 0;
}

static int frame_make(struct stamp_run *run, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->path;
	uint8_t *payload;
	int rc = payload_make(run, &payload, err);

	if (rc < 0)
		return rc;
	path.device.link = run->info.link;
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = run->port;
	spec.to_port = (uint16_t)run->o->port;
	spec.tos = (uint8_t)run->o->tos;
	spec.ttl = (uint8_t)run->o->ttl;
	spec.payload = payload;
	spec.payload_length = run->payload_length;
	template_free(&run->frame);
	rc = template_make(&run->frame, &spec, err);
	free(payload);
	if (rc == 0)
		run->payload_at = run->frame.length - run->payload_length;
	return rc;
}

uint64_t stamp_fill(const struct stamp_run *run, uint8_t *frame, uint64_t number, uint64_t at_ns)
{
	const struct stamp_probe probe = { .seq = (uint32_t)number, .error = run->error, .ssid = run->ssid,
					   .time = stamp_time_of_ns((int64_t)at_ns + run->real_minus_mono, run->o->ptp) };
	uint8_t *payload = frame + run->payload_at;

	memcpy(frame, run->frame.frame, run->frame.length);
	stamp_probe_write(payload, &probe, run->auth);
	if (run->direct_at)
		store_be32(payload + run->direct_at, (uint32_t)number + 1);
	if (run->auth)
		stamp_sign(payload, &run->key);
	if (run->mac_at)
		stamp_tlv_mac(payload, run->auth, run->mac_at, run->tlv_mac_key, payload + run->mac_at + STAMP_TLV_HEAD);
	ktrxer_frame_checksum(frame, run->frame.length, run->info.link);
	return probe.time;
}

/* ---------------------------------------------------------------------------------------------------------- the way */

static int plan_path(struct stamp_run *run, bool with_mac, struct ktrxer_error *err)
{
	const struct stamp_options *o = run->o;
	struct ktrxer_path_options p = KTRXER_PATH_OPTIONS_INIT;
	struct ktrxer_addr to = run->path.to; /* the path is being written */

	p.device = o->device;
	p.from = o->from;
	p.to = to;
	p.no_link_address = !with_mac;
	return ktrxer_path_resolve(&run->path, &p, err);
}

static int plan_engine(struct stamp_run *run, struct ktrxer_error *err)
{
	const struct stamp_options *o = run->o;
	struct ktx_options t = KTX_OPTIONS_INIT;
	const bool by_stack = strcmp(o->engine, "udp") == 0 || strcmp(o->engine, "raw") == 0 ||
			      (strcmp(o->engine, "auto") == 0 && run->path.needs_stack);
	int rc;

	t.device = o->device || !by_stack || run->path.to.scope_id ? run->path.device.name : NULL;
	t.engine = o->engine;
	t.wait = o->precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	t.flags = o->precise ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK;
	t.cpu = (int)o->cpu;
	t.slots = 64;
	while (t.slots < 1024 && t.slots * o->interval_ns < run->ahead_ns)
		t.slots *= 2;
	t.frame_size = 14 + 40 + 8 + tlvs_lay(run, NULL, (uint32_t)o->payload) + 64;
	if ((rc = ktx_open(&run->tx, &t, err)) < 0)
		return rc;
	ktx_info(run->tx, &run->info);
	if (!(run->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	if (run->path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP, "whole frames from this host to itself are dropped by its kernel as forged: use --engine udp");
	return plan_path(run, true, err);
}

/* A port that is ours alone: the far end tells sessions apart by it. */
static int plan_port(struct stamp_run *run, struct ktrxer_error *err)
{
	int rc = -EADDRINUSE;

	for (int tries = 0; tries < 16 && rc == -EADDRINUSE; tries++) {
		uint16_t random;

		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
		run->port = (uint16_t)(49152u | random);
		rc = frame_make(run, err);
		if (rc == 0)
			rc = ktx_check(run->tx, run->frame.frame, run->frame.length, err);
	}
	if (rc < 0)
		return rc;
	if (run->frame.length - (run->info.link == KTRXER_LINK_ETHERNET ? 14 : 0) > run->path.mtu)
		return ktrxer_fail(err, -EMSGSIZE, "a payload of %u bytes makes a packet larger than the MTU of %u on '%s'",
				   run->payload_length, run->path.mtu, run->path.device.name);
	return 0;
}

static int check_options(const struct stamp_options *o, const struct ktrxer_addr *to, struct ktrxer_error *err)
{
	const struct opt_rate rate = { .num = KTRXER_NS_PER_S, .den = o->interval_ns, .given = true };

	if (o->auth_key_file && o->tlv_key_file)
		return ktrxer_fail(err, -EINVAL, "--auth-key-file and --tlv-key-file exclude each other: authenticated mode protects TLVs by its own key");
	for (int i = 0; i < o->tlvs.count; i++)
		if (tlv_by_name(o->tlvs.items[i]) < 0)
			return ktrxer_fail(err, -EINVAL, "--tlv %s: not one of location, time-info, cos, direct", o->tlvs.items[i]);
	return cli_guard_rate(to, &rate, o->flood, err);
}

static int plan_keys(struct stamp_run *run, struct ktrxer_error *err)
{
	const struct stamp_options *o = run->o;
	int rc = 0;

	run->auth = o->auth_key_file != NULL;
	if (run->auth)
		rc = secret_key_read(o->auth_key_file, &run->key, err);
	else if (o->tlv_key_file)
		rc = secret_key_read(o->tlv_key_file, &run->tlv_key, err);
	run->tlv_mac_key = run->auth ? &run->key : o->tlv_key_file ? &run->tlv_key : NULL;
	return rc;
}

static int plan_books(struct stamp_run *run, struct ktrxer_error *err)
{
	const struct stamp_options *o = run->o;
	struct stamp_session_options s = { .window = 64, .timeout_ns = o->timeout_ns, .ssid = run->ssid, .follow_up = o->follow_up,
					   .auth_key = run->auth ? &run->key : NULL, .tlv_key = run->auth ? NULL : run->tlv_mac_key };
	uint64_t waiting = (o->timeout_ns * 2 + run->ahead_ns) / o->interval_ns + 16;

	while (s.window < waiting && s.window < 65536)
		s.window <<= 1;
	run->samples = stamp_samples_new();
	run->rtt = ktrxer_hist_new();
	run->ipdv = ktrxer_hist_new();
	run->ipdv_forward = ktrxer_hist_new();
	run->ipdv_backward = ktrxer_hist_new();
	if (!run->samples || !run->rtt || !run->ipdv || !run->ipdv_forward || !run->ipdv_backward ||
	    stamp_session_new(&run->session, &s) < 0 || clockest_new(&run->clock) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
	return 0;
}

static void plan_clock(struct stamp_run *run)
{
	struct timex tx = { 0 };
	struct stamp_error error = { .ptp = run->o->ptp };
	struct ktrxer_clock_pair pair;

	run->own.bound_ns = UINT64_MAX;
	if (adjtimex(&tx) >= 0) {
		run->own.synchronised = !(tx.status & STA_UNSYNC);
		run->own.bound_ns = (uint64_t)tx.maxerror * KTRXER_NS_PER_US;
	}
	error.synchronised = run->own.synchronised;
	error.bound_ns = run->own.bound_ns;
	run->error = stamp_error_write(&error);
	ktrxer_clock_pair_read(&pair);
	run->real_minus_mono = pair.real_ns - (int64_t)pair.mono_ns;
}

int stamp_schedule(struct stamp_run *run, struct ktrxer_error *err)
{
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;

	s.kind = run->o->poisson ? KTRXER_SCHEDULE_POISSON : KTRXER_SCHEDULE_PERIODIC;
	s.start_ns = run->start_ns;
	s.gap_num = run->o->interval_ns;
	memcpy(s.seed, run->seed, sizeof s.seed);
	return ktrxer_schedule_new(&run->schedule, &s, err);
}

int stamp_plan(struct stamp_run *run, struct ktrxer_error *err)
{
	const struct stamp_options *o = run->o;
	int rc;

	if (o->v4 && o->v6)
		return ktrxer_fail(err, -EINVAL, "-4 and -6 exclude each other");
	if ((rc = cli_resolve(o->host, o->v4 ? AF_INET : o->v6 ? AF_INET6 : 0, &run->path.to, err)) < 0 ||
	    (rc = check_options(o, &run->path.to, err)) < 0 || (rc = plan_keys(run, err)) < 0)
		return rc;
	if (getrandom(run->seed, sizeof run->seed, 0) != sizeof run->seed)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	/* 0 is no SSID. */
	run->ssid = o->ssid ? (uint16_t)o->ssid : (uint16_t)(load_be16(run->seed) | 1);
	run->wanted = o->count ? o->count : UINT64_MAX;
	/*
	 * Enough that a waiter of real-time priority does not starve when a busy machine keeps this thread, which has none, from
	 * its processor; little enough that stopping cancels little.
	 */
	run->ahead_ns = (uint64_t)(o->precise ? 250 : 50) * KTRXER_NS_PER_MS;
	run->talkative = o->interval_ns >= 200 * (uint64_t)KTRXER_NS_PER_MS;
	plan_clock(run);
	if ((rc = plan_books(run, err)) < 0 || (rc = plan_path(run, false, err)) < 0 || (rc = plan_engine(run, err)) < 0 ||
	    (rc = plan_port(run, err)) < 0)
		return rc;
	run->start_ns = ktrxer_now_ns();
	if ((rc = stamp_schedule(run, err)) < 0)
		return rc;
	ktrxer_schedule_free(run->schedule);
	run->schedule = NULL;
	return inlet_open(&run->inlet, &(struct inlet_options){ .path = &run->path, .tx = run->tx, .proto = KTRXER_UDP, .port = run->port,
								.snap = run->payload_length + 1 }, err);
}

void stamp_release(struct stamp_run *run)
{
	inlet_close(&run->inlet);
	ktx_close(run->tx);
	ktrxer_schedule_free(run->schedule);
	stamp_session_free(run->session);
	clockest_free(run->clock);
	stamp_samples_free(run->samples);
	template_free(&run->frame);
	ktrxer_hist_free(run->rtt);
	ktrxer_hist_free(run->ipdv);
	ktrxer_hist_free(run->ipdv_forward);
	ktrxer_hist_free(run->ipdv_backward);
	secret_forget(&run->key, sizeof run->key);
	secret_forget(&run->tlv_key, sizeof run->tlv_key);
}
