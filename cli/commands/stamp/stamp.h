/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer stamp`: its options, and its parts. */
#ifndef KTRXER_CLI_STAMP_H
#define KTRXER_CLI_STAMP_H

#include "clock_offset.h"
#include "clock_sync.h"
#include "prober.h"
#include "sha256.h"
#include "stamp_samples.h"
#include "stamp_session.h"

struct stamp_options {
	struct prober_options p;
	const char *auth_key_file, *tlv_key_file;
	struct opt_list tlvs;
	const char *dscp;
	uint8_t ecn;
	uint64_t payload, timeout_ns, ttl, port, ssid;
	bool ptp, follow_up;
};

enum { STAMP_CLASSES = 8 };

/* One of those that --dscp names. */
struct stamp_class {
	uint8_t tos;
	struct template frame;
	struct stamp_session *session;
	struct ktrxer_hist *rtt;
	uint64_t untimed;
};

struct stamp_run {
	struct prober p;
	struct stamp_class classes[STAMP_CLASSES];
	uint32_t class_count;
	uint8_t making;            /* the DSCP and ECN byte of the frame that is being made */
	const struct stamp_options *o;
	uint32_t payload_at, payload_length;
	uint32_t direct_at, mac_at; /* offsets in the payload; 0: none */
	bool auth;
	struct hmac_key key, tlv_key;
	const struct hmac_key *tlv_mac_key;
	struct clock_offset *clock;
	struct stamp_samples *samples;
	uint16_t ssid, error;      /* ssid: of the first class; the others' follow */
	int64_t real_minus_mono;
	struct clock_sync own, peer; /* the worst that was stated */
	bool peer_seen;
	struct ktrxer_hist *rtt, *own_queue, *far_queue, *ipdv, *ipdv_up, *ipdv_down, *lateness;
	struct ktx_accounts accounts; /* of the measured probes */
	uint64_t closing;          /* probes beyond those */
	uint64_t host_ns;          /* the worst that converting T1 and T4 to one clock may err */
	bool interrupted;
};

/* stamp_plan.c */
int stamp_plan(struct stamp_run *run, struct ktrxer_error *err);
/* Writes probe `number` of a class into a frame; returns the time that its packet carries. */
uint64_t stamp_fill(const struct stamp_run *run, uint32_t which, uint8_t *frame, uint64_t number, uint64_t at_ns);
void stamp_release(struct stamp_run *run);

/* stamp_class.c */
int stamp_classes_read(struct stamp_run *run, struct ktrxer_error *err);
/* The class that an answer belongs to; NULL: the answer does not say, and the run has failed. */
struct stamp_class *stamp_class_of(struct stamp_run *run, const uint8_t *packet, size_t length);
/* Of all classes together. */
void stamp_counts(const struct stamp_run *run, struct stamp_session_counts *sum);
void stamp_classes_json(const struct stamp_run *run, struct json *end);

/* stamp_report.c */
void stamp_losses_json(struct json *end, const struct stamp_session_counts *c);
void stamp_say_what(struct stamp_run *run);
void stamp_say_sample(struct stamp_run *run, struct stamp_class *class, const struct stamp_sample *sample);
void stamp_say_event(struct stamp_run *run, enum stamp_event event);
int stamp_finish(struct stamp_run *run);

#endif
