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

	/* Two: after a far queue has drained at once, more answers are to be told of than new ones come. */
	for (int i = 0; i < (o->follow_up ? 2 : 0); i++)
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
			payload[value] = run->making & 0xfc; /* DSCP1: back as it went */
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

static int frame_make(void *arg, struct ktrxer_error *err)
{
	struct stamp_run *run = arg;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->p.path;
	uint8_t *payload;
	int rc = payload_make(run, &payload, err);

	if (rc < 0)
		return rc;
	path.device.link = run->p.info.link;
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = run->p.id;
	spec.to_port = (uint16_t)run->o->port;
	spec.tos = run->making;
	spec.ttl = (uint8_t)run->o->ttl;
	spec.payload = payload;
	spec.payload_length = run->payload_length;
	rc = template_make(&run->p.frame, &spec, err);
	free(payload);
	if (rc == 0)
		run->payload_at = run->p.frame.length - run->payload_length;
	return rc;
}

uint64_t stamp_fill(const struct stamp_run *run, uint32_t which, uint8_t *frame, uint64_t number, uint64_t at_ns)
{
	const struct template *t = &run->classes[which].frame;
	const struct stamp_probe probe = { .seq = (uint32_t)number, .error = run->error, .ssid = (uint16_t)(run->ssid + which),
					   .time = stamp_time_of_ns((int64_t)at_ns + run->real_minus_mono, run->o->ptp) };
	uint8_t *payload = frame + run->payload_at;

	memcpy(frame, t->frame, t->length);
	stamp_probe_write(payload, &probe, run->auth);
	if (run->direct_at)
		store_be32(payload + run->direct_at, (uint32_t)number + 1);
	if (run->auth)
		stamp_sign(payload, &run->key);
	if (run->mac_at)
		stamp_tlv_mac(payload, run->auth, run->mac_at, run->tlv_mac_key, payload + run->mac_at + STAMP_TLV_HEAD);
	ktrxer_frame_checksum(frame, t->length, run->p.info.link);
	return probe.time;
}

/* ---------------------------------------------------------------------------------------------------------- the way */

/* A port that is ours alone: the far end tells sessions apart by it. */
static int plan_port(struct stamp_run *run, struct ktrxer_error *err)
{
	int rc = prober_identify(&run->p, frame_make, err);

	if (rc < 0)
		return rc;
	if (run->p.frame.length - (run->p.info.link == KTRXER_LINK_ETHERNET ? 14 : 0) > run->p.path.mtu)
		return ktrxer_fail(err, -EMSGSIZE, "a payload of %u bytes makes a packet larger than the MTU of %u on '%s'",
				   run->payload_length, run->p.path.mtu, run->p.path.device.name);
	return 0;
}

/* The port is found: each class has its frame. */
static int plan_frames(struct stamp_run *run, struct ktrxer_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < run->class_count && rc == 0; i++) {
		template_free(&run->p.frame);
		run->making = run->classes[i].tos;
		rc = frame_make(run, err);
		run->classes[i].frame = run->p.frame;
		run->p.frame = (struct template){ 0 };
	}
	return rc;
}

static int check_options(const struct stamp_options *o, struct ktrxer_error *err)
{
	if (o->auth_key_file && o->tlv_key_file)
		return ktrxer_fail(err, -EINVAL, "--auth-key-file and --tlv-key-file exclude each other: authenticated mode protects TLVs by its own key");
	for (int i = 0; i < o->tlvs.count; i++)
		if (tlv_by_name(o->tlvs.items[i]) < 0)
			return ktrxer_fail(err, -EINVAL, "--tlv %s: not one of location, time-info, cos, direct", o->tlvs.items[i]);
	return 0;
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
	struct stamp_session_options s = { .window = 64, .timeout_ns = o->timeout_ns, .follow_up = o->follow_up,
					   .auth_key = run->auth ? &run->key : NULL, .tlv_key = run->auth ? NULL : run->tlv_mac_key };
	uint64_t waiting = (o->timeout_ns * 3 + run->p.ahead_ns + KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S) / o->p.interval_ns + 16;

	while (s.window < waiting && s.window < 65536)
		s.window <<= 1;
	run->samples = stamp_samples_new();
	run->rtt = ktrxer_hist_new();
	run->own_queue = ktrxer_hist_new();
	run->far_queue = ktrxer_hist_new();
	run->ipdv = ktrxer_hist_new();
	run->ipdv_up = ktrxer_hist_new();
	run->ipdv_down = ktrxer_hist_new();
	if (!run->samples || !run->rtt || !run->own_queue || !run->far_queue || !run->ipdv || !run->ipdv_up || !run->ipdv_down || clock_offset_new(&run->clock) < 0)
		goto no_memory;
	for (uint32_t i = 0; i < run->class_count; i++) {
		struct stamp_class *class = &run->classes[i];

		s.ssid = (uint16_t)(run->ssid + i);
		class->rtt = ktrxer_hist_new();
		if (!class->rtt || stamp_session_new(&class->session, &s) < 0)
			goto no_memory;
	}
	return 0;
no_memory:
	return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
}

static void plan_clock(struct stamp_run *run)
{
	struct stamp_error error = { .ptp = run->o->ptp };
	struct ktrxer_clock_pair pair;

	clock_sync_read(&run->own);
	error.synchronised = run->own.synchronised;
	error.bound_ns = run->own.bound_ns;
	run->error = stamp_error_write(&error);
	ktrxer_clock_pair_read(&pair);
	run->real_minus_mono = pair.real_ns - (int64_t)pair.mono_ns;
}

int stamp_plan(struct stamp_run *run, struct ktrxer_error *err)
{
	const struct stamp_options *o = run->o;
	int rc;

	if (getrandom(&run->ssid, sizeof run->ssid, 0) != sizeof run->ssid)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	/* 0 is no SSID. */
	run->ssid = o->ssid ? (uint16_t)o->ssid : (uint16_t)(run->ssid | 1);
	if ((rc = check_options(o, err)) < 0 || (rc = stamp_classes_read(run, err)) < 0 || (rc = prober_resolve(&run->p, err)) < 0 ||
	    (rc = plan_keys(run, err)) < 0)
		return rc;
	run->making = run->classes[0].tos;
	plan_clock(run);
	if ((rc = plan_books(run, err)) < 0 ||
	    (rc = prober_open(&run->p, 64, 14 + 40 + 8 + tlvs_lay(run, NULL, (uint32_t)o->payload) + 64, err)) < 0 ||
	    (rc = plan_port(run, err)) < 0 || (rc = plan_frames(run, err)) < 0 || (rc = prober_try_schedule(&run->p, err)) < 0)
		return rc;
	return reply_receiver_open(&run->p.receiver, &(struct reply_receiver_options){ .path = &run->p.path, .tx = run->p.tx, .proto = KTRXER_UDP, .port = run->p.id,
								.snap = run->payload_length + 1 }, err);
}

void stamp_release(struct stamp_run *run)
{
	prober_close(&run->p);
	for (uint32_t i = 0; i < run->class_count; i++) {
		template_free(&run->classes[i].frame);
		stamp_session_free(run->classes[i].session);
		ktrxer_hist_free(run->classes[i].rtt);
	}
	clock_offset_free(run->clock);
	stamp_samples_free(run->samples);
	ktrxer_hist_free(run->rtt);
	ktrxer_hist_free(run->own_queue);
	ktrxer_hist_free(run->far_queue);
	ktrxer_hist_free(run->ipdv);
	ktrxer_hist_free(run->ipdv_up);
	ktrxer_hist_free(run->ipdv_down);
	secret_forget(&run->key, sizeof run->key);
	secret_forget(&run->tlv_key, sizeof run->tlv_key);
}
