/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_law.h"

#include "bytes.h"
#include "limiter.h"

void flow_law_begin(struct flow_law_state *law, const struct flow_spec *spec, uint64_t start_ns, const uint8_t seed[16])
{
	memset(law, 0, sizeof *law);
	law->spec = spec;
	law->start_ns = start_ns;
	ktrxer_poisson_init(&law->poisson, seed);
	law->random = load_be64(seed);
	/* (min + max) / 2 bytes, 8 bits each */
	law->mean_gap_ns = ((uint64_t)spec->payload_min + spec->payload_max) * 4 * (uint64_t)KTRXER_NS_PER_S / spec->rate_bps;
}

/* An exponential deviate of 32.32 bits times a mean. */
static uint64_t deviate(struct flow_law_state *law, uint64_t mean_ns)
{
	const uint64_t x = ktrxer_poisson_next(&law->poisson);

	return (x >> 32) * mean_ns + (((x & UINT32_MAX) * (mean_ns & UINT32_MAX)) >> 32) + (x & UINT32_MAX) * (mean_ns >> 32);
}

static uint32_t draw_payload(struct flow_law_state *law)
{
	const uint32_t low = law->spec->payload_min, span = law->spec->payload_max - low + 1u;

	if (span == 1)
		return low;
	law->random += 0x9e3779b97f4a7c15ULL;
	/* A product instead of a remainder: no size is preferred by more than one part in 2^16. */
	return low + (uint32_t)((limiter_mix(law->random) >> 32) * span >> 32);
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

/* At the start the speaker talks. */
static uint64_t speech(struct flow_law_state *law, uint64_t spent_ns)
{
	if (!law->bits)
		law->talk_ns = deviate(law, FLOW_TALK_NS);
	while (spent_ns >= law->talk_ns) {
		law->moved_ns += deviate(law, FLOW_PAUSE_NS);
		law->talk_ns += deviate(law, FLOW_TALK_NS) + 1;
	}
	return spent_ns + law->moved_ns;
}

uint64_t flow_law_next(struct flow_law_state *law, uint32_t *payload)
{
	uint64_t at_ns;

	if (law->spec->law == FLOW_POISSON)
		at_ns = law->moved_ns += deviate(law, law->mean_gap_ns);
	else if (law->spec->law == FLOW_VOIP)
		at_ns = speech(law, time_of(law->bits, law->spec->rate_bps));
	else
		at_ns = time_of(law->bits, law->spec->rate_bps);
	*payload = draw_payload(law);
	law->bits += (uint64_t)*payload * 8;
	return law->start_ns + at_ns;
}
