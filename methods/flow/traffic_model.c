/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "traffic_model.h"

#include "bytes.h"
#include "limiter.h"

/* Times whose differences are exponential with this mean. */
static int exponential(struct ktrxer_schedule **times, uint64_t mean_num, uint64_t mean_den, const uint8_t seed[16],
		       uint8_t salt)
{
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;

	o.kind = KTRXER_SCHEDULE_POISSON;
	o.gap_num = mean_num;
	o.gap_den = mean_den;
	memcpy(o.seed, seed, sizeof o.seed);
	o.seed[15] ^= salt;
	return ktrxer_schedule_new(times, &o, NULL);
}

static uint64_t next_time(struct ktrxer_schedule *times)
{
	struct ktrxer_deadline due;

	return ktrxer_schedule_next(times, &due) < 0 ? KTRXER_NEVER : due.at_ns;
}

int traffic_model_begin(struct traffic_model *model, const struct flow_spec *spec, const uint8_t seed[16])
{
	int rc = 0;

	memset(model, 0, sizeof *model);
	model->spec = spec;
	model->random = load_be64(seed);
	/* (min + max) / 2 bytes, 8 bits each */
	if (spec->model == FLOW_POISSON)
		rc = exponential(&model->times,
				 ((uint64_t)spec->payload_min + spec->payload_max) * 4 * (uint64_t)KTRXER_NS_PER_S,
				 spec->rate_bps, seed, 0);
	if (spec->model != FLOW_VOIP)
		return rc;
	rc = exponential(&model->times, TRAFFIC_TALK_NS, 1, seed, 1);
	if (rc == 0)
		rc = exponential(&model->pauses, TRAFFIC_PAUSE_NS, 1, seed, 2);
	if (rc == 0)
		model->talk_ns = next_time(model->times);
	return rc;
}

void traffic_model_end(struct traffic_model *model)
{
	ktrxer_schedule_free(model->times);
	ktrxer_schedule_free(model->pauses);
	model->times = model->pauses = NULL;
}

static uint32_t draw_payload(struct traffic_model *model)
{
	const uint32_t low = model->spec->payload_min, span = model->spec->payload_max - low + 1u;

	if (span == 1)
		return low;
	model->random += 0x9e3779b97f4a7c15ULL;
	/* A product instead of a remainder: no size is preferred by more than one part in 2^16. */
	return low + (uint32_t)((limiter_mix(model->random) >> 32) * span >> 32);
}

/* How long the wire of this rate is busy with so many bits, to the nanosecond and without drift. */
static uint64_t time_of(uint64_t bits, uint64_t rate_bps)
{
	const uint64_t whole = bits / rate_bps, rest = bits % rate_bps;

	/* rest * 10^9 passes 64 bits above 18 Gbit/s */
	if (rest <= UINT64_MAX / (uint64_t)KTRXER_NS_PER_S)
		return whole * (uint64_t)KTRXER_NS_PER_S + rest * (uint64_t)KTRXER_NS_PER_S / rate_bps;
	return whole * (uint64_t)KTRXER_NS_PER_S + (uint64_t)((double)rest * 1e9 / (double)rate_bps);
}

/* The speaker talks at the start. */
static uint64_t speech(struct traffic_model *model, uint64_t spent_ns)
{
	while (spent_ns >= model->talk_ns) {
		model->paused_ns = next_time(model->pauses);
		model->talk_ns = next_time(model->times);
	}
	return spent_ns + model->paused_ns;
}

/*
 * Trains begin at the mean rate, each later by a random part of an eighth of the time between two: periodic cross
 * traffic would meet each train in the same way.
 */
static uint64_t train(struct traffic_model *model, uint32_t *payload)
{
	const struct flow_spec *s = model->spec;

	if (model->of_train == s->train)
		model->of_train = 0;
	if (!model->of_train) {
		const uint64_t jitter_ns = time_of(flow_train_bits(s), s->rate_bps) / 8 + 1;

		model->at_ns = time_of(model->bits, s->rate_bps);
		model->bits += flow_train_bits(s);
		model->random += 0x9e3779b97f4a7c15ULL;
		model->at_ns += limiter_mix(model->random) % jitter_ns;
		model->gap_ns = s->train_gap_ns;
	} else {
		model->at_ns += model->gap_ns;
		if (s->train_shrink)
			model->gap_ns = model->gap_ns / 65536 * s->train_shrink +
					model->gap_ns % 65536 * s->train_shrink / 65536;
	}
	*payload = model->of_train++ ? s->payload_min : s->payload_max;
	return model->at_ns;
}

uint64_t traffic_model_next(struct traffic_model *model, uint32_t *payload)
{
	uint64_t at_ns;

	if (model->spec->model == FLOW_TRAIN)
		return train(model, payload);
	if (model->spec->model == FLOW_POISSON)
		at_ns = next_time(model->times);
	else if (model->spec->model == FLOW_VOIP)
		at_ns = speech(model, time_of(model->bits, model->spec->rate_bps));
	else
		at_ns = time_of(model->bits, model->spec->rate_bps);
	*payload = draw_payload(model);
	model->bits += (uint64_t)*payload * 8;
	return at_ns;
}
