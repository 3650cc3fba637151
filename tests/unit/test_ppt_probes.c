/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ppt_probes_estimate() in simulated worlds: a sender that may be slow, an end link, and a receiver. */
#include "cm.h"
#include "ppt_probes.h"
#include "random_here.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 50, HEADING = 1502, SMALL = 78, LARGE = 232 };

struct world {
	double rate, rate_later; /* of the end link, bit/s; rate_later: from probe change_at on, 0: the same */
	int change_at;
	double step_ns; /* of the receiver's clock; 0: 1 ns */
	bool in_phase;  /* the heading packet arrives at a step, and each stamp is that of the next step */
	double delta_ns, noise_ns, send_gap_ns;
	double send_noise_ns; /* the send gap is longer by up to this */
	double slow_share;    /* so many probes are sent with slow_gap_ns instead */
	double slow_gap_ns;
	int slow_from, slow_to; /* only these probes; 0, 0: all */
	double cross_share;     /* so many trailing packets wait behind a packet of 1526 bytes */
	double service_ns;      /* the receiver needs so long for each packet */
	double loss;            /* of a packet */
	double reordered;       /* probes whose packets change places */
	double together;        /* probes whose packets get one stamp */
	double interrupt_ns;    /* packets wait for the next interrupt, one every so long, and have its time */
};

static struct pair_times times[2][PROBES];

static struct pair_times probe_of(const struct world *w, int number, uint32_t size)
{
	const double rate = w->rate_later > 0 && number >= w->change_at ? w->rate_later : w->rate;
	const bool here = !w->slow_to || (number >= w->slow_from && number < w->slow_to);
	const double sent = 1e9 + number * 2e8 + 1e7 * random_uniform(),
		     gap = random_uniform() < w->slow_share && here ? w->slow_gap_ns
			   : w->send_noise_ns > 0 ? w->send_gap_ns + w->send_noise_ns * random_uniform()
						  : w->send_gap_ns;
	const double first = sent + (8.0 * HEADING + 96) * 1e9 / rate;
	double second = fmax(first, sent + gap);
	struct pair_times p = { .sent_ns = { (uint64_t)sent, (uint64_t)(sent + gap) } };

	if (random_uniform() < w->cross_share)
		second += 8 * 1538e9 / rate;
	second = fmax(second + (8.0 * size + 96) * 1e9 / rate + w->delta_ns, first + w->service_ns);
	p.arrived_ns[0] = 7000000000000ull + (uint64_t)first;
	p.arrived_ns[1] = 7000000000000ull + (uint64_t)(second + w->noise_ns * random_normal());
	if (w->in_phase) {
		p.arrived_ns[1] -= p.arrived_ns[0] % (uint64_t)w->step_ns - (uint64_t)w->step_ns + 1;
		p.arrived_ns[0] -= p.arrived_ns[0] % (uint64_t)w->step_ns;
	}
	for (int half = 0; half < 2 && w->step_ns > 0; half++)
		p.arrived_ns[half] -= p.arrived_ns[half] % (uint64_t)w->step_ns;
	for (int half = 0; half < 2 && w->interrupt_ns > 0; half++)
		p.arrived_ns[half] += (uint64_t)w->interrupt_ns - p.arrived_ns[half] % (uint64_t)w->interrupt_ns;
	if (random_uniform() < w->reordered) {
		const uint64_t late = p.arrived_ns[0];

		p.arrived_ns[0] = p.arrived_ns[1];
		p.arrived_ns[1] = late;
	}
	if (random_uniform() < w->together)
		p.arrived_ns[1] = p.arrived_ns[0];
	for (int half = 0; half < 2; half++)
		if (random_uniform() < w->loss)
			p.arrived_ns[half] = 0;
	return p;
}

static struct ppt_result estimated(const struct world *w, struct ppt_probes sets[2])
{
	struct ktrxer_error err = { 0 };
	struct ppt_result r;

	for (int i = 0; i < PROBES; i++) {
		times[0][i] = probe_of(w, i, LARGE);
		times[1][i] = probe_of(w, i, SMALL);
	}
	sets[0] = (struct ppt_probes){ .probes = times[0], .count = PROBES, .size_bytes = LARGE };
	sets[1] = (struct ppt_probes){ .probes = times[1], .count = PROBES, .size_bytes = SMALL };
	if (ppt_probes_estimate(sets, HEADING, 100, &r, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sets[0].size_bytes, SMALL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sets[i].outcomes[PAIR_LOST] + sets[i].outcomes[PAIR_UNSENT] +
					 sets[i].outcomes[PAIR_REORDERED] + sets[i].outcomes[PAIR_TOGETHER] +
					 sets[i].outcomes[PAIR_SPREAD] + sets[i].outcomes[PAIR_USABLE],
				 PROBES);
	return r;
}

static void close_to(double value, double truth, double share)
{
	if (!(fabs(value / truth - 1) <= share))
		fail_msg("%.9g is not within %.3g of %.9g", value, share, truth);
}

/* Within 3 % in each of 50 worlds (an emulator has time for 10), and the truth in both intervals in 95 % of them. */
static void check(const struct world *w)
{
	struct ppt_probes sets[2];
	const bool emulated = getenv("KTRXER_EMULATED");
	const int worlds = emulated ? 10 : 50, least = emulated ? 8 : 44; /* 95 % less two standard deviations */
	int capacity = 0, delta = 0;

	for (int i = 0; i < worlds; i++) {
		struct ppt_result r = estimated(w, sets);

		assert_int_equal(r.reading, PPT_RESOLVED);
		close_to(r.capacity_bit_s, w->rate, 0.03);
		capacity += r.capacity.low <= w->rate && w->rate <= r.capacity.high;
		delta += r.delta.low <= w->delta_ns && w->delta_ns <= r.delta.high;
	}
	print_message("%.0f Mbit/s: capacity in %d, dPPT in %d of %d\n", w->rate / 1e6, capacity, delta, worlds);
	assert_true(capacity >= least && delta >= least);
}

TEST(links_of_10_and_100_mbit)
{
	random_state = 1;
	check(&(struct world){ .rate = 10e6, .delta_ns = 3000, .noise_ns = 1000, .send_gap_ns = 4000 });
	check(&(struct world){ .rate = 100e6, .delta_ns = -1500, .noise_ns = 200, .send_gap_ns = 4000 });
	check(&(struct world){
		.rate = 100e6, .delta_ns = 2000, .noise_ns = 200, .send_gap_ns = 4000, .cross_share = 0.2 });
}

/* A sender that was descheduled between both packets of some probes: these are left out. */
TEST(probes_that_were_not_back_to_back)
{
	const struct world w = { .rate = 100e6,
				 .delta_ns = 2000,
				 .noise_ns = 200,
				 .send_gap_ns = 4000,
				 .slow_share = 0.2,
				 .slow_gap_ns = 150000 };
	struct ppt_probes sets[2];
	struct ppt_result r;

	random_state = 1;
	r = estimated(&w, sets);
	assert_int_equal(r.reading, PPT_RESOLVED);
	assert_in_range(sets[0].outcomes[PAIR_SPREAD] + sets[1].outcomes[PAIR_SPREAD], 10, 30);
	close_to((double)sets[0].send_gap_ns, 4000, 0.01);
	close_to(r.capacity_bit_s, 100e6, 0.03);
}

/* The sender needs longer than the link: the gaps are its own, and grow with the size all the same. */
TEST(a_sender_slower_than_the_link)
{
	struct world w = { .rate = 100e6, .noise_ns = 200, .send_gap_ns = 150000 };
	struct ppt_probes sets[2];

	random_state = 1;
	assert_int_equal(estimated(&w, sets).reading, PPT_SPREAD);
	w.rate = 100e9; /* the gaps do not depend on the size: without send times this would be a service time */
	assert_int_equal(estimated(&w, sets).reading, PPT_SPREAD);
}

TEST(a_receiver_slower_than_the_link)
{
	const struct world w = { .rate = 10e9, .noise_ns = 300, .send_gap_ns = 800, .service_ns = 40000 };
	struct ppt_probes sets[2];
	struct ppt_result r;

	random_state = 1;
	r = estimated(&w, sets);
	assert_int_equal(r.reading, PPT_SERVICE_TIME);
	close_to(r.service_ns, 40000, 0.01);
}

TEST(one_stamp_for_both_packets)
{
	const struct world w = { .rate = 100e6, .noise_ns = 200, .send_gap_ns = 4000, .together = 0.3 };
	struct ppt_probes sets[2];
	struct ppt_result r;

	random_state = 1;
	r = estimated(&w, sets);
	assert_int_equal(r.reading, PPT_COALESCED);
	assert_int_equal(r.together, sets[0].outcomes[PAIR_TOGETHER] + sets[1].outcomes[PAIR_TOGETHER]);
	assert_true(r.together >= 15);
	assert_true(r.coalescing_ns == 0); /* the gaps of the others are the link's: they differ with the size */
}

TEST(the_period_of_interrupts)
{
	struct world w = { .rate = 100e6, .noise_ns = 200, .send_gap_ns = 4000 };
	struct ppt_probes sets[2];

	for (w.interrupt_ns = 30000; w.interrupt_ns <= 120000; w.interrupt_ns += 30000) {
		const struct ppt_result r = estimated(&w, sets);

		assert_int_equal(r.reading, PPT_COALESCED);
		close_to(r.coalescing_ns, w.interrupt_ns, 0.02);
	}
}

/* Where no link is slower than the sender, the gaps are the sender's own, and differ from train to train. */
TEST(gaps_of_the_sender)
{
	struct world w = { .rate = 40e9, .noise_ns = 300, .send_gap_ns = 14000, .send_noise_ns = 20000 };
	const int worlds = getenv("KTRXER_EMULATED") ? 10 : 200;
	struct ppt_probes sets[2];

	random_state = 1;
	for (int i = 0; i < worlds; i++)
		assert_int_equal(estimated(&w, sets).reading, PPT_SPREAD);
	w.rate = 100e6; /* here each packet waits for the one before */
	for (int i = 0; i < worlds; i++)
		assert_int_equal(estimated(&w, sets).reading, PPT_RESOLVED);
}

/* A sender that is slow for a part of the run is no change of the path. */
TEST(a_sender_that_is_slow_for_a_part_of_the_run)
{
	struct world w = { .rate = 100e6, .noise_ns = 200, .send_gap_ns = 4000, .slow_share = 1, .slow_gap_ns = 400e3 };
	const int step = getenv("KTRXER_EMULATED") ? 15 : 5;
	struct ppt_probes sets[2];

	random_state = 1;
	for (w.slow_to = 5; w.slow_to <= PROBES; w.slow_to += step)
		assert_int_equal(estimated(&w, sets).reading, w.slow_to < PROBES / 2 ? PPT_RESOLVED : PPT_SPREAD);
	w.slow_to = PROBES;
	for (w.slow_from = 5; w.slow_from < PROBES; w.slow_from += step)
		assert_int_equal(estimated(&w, sets).reading, w.slow_from > PROBES / 2 ? PPT_RESOLVED : PPT_SPREAD);
}

TEST(a_link_that_changes_its_rate)
{
	struct world w = { .rate = 100e6, .rate_later = 80e6, .noise_ns = 200, .send_gap_ns = 4000 };
	struct ppt_probes sets[2];

	random_state = 1;
	for (w.change_at = 9; w.change_at <= 41; w.change_at += 8)
		assert_int_equal(estimated(&w, sets).reading, PPT_CHANGED);
	w.change_at = 25;
	w.rate_later = 400e6;
	assert_int_equal(estimated(&w, sets).reading, PPT_CHANGED);
	w.rate_later = 0;
	w.cross_share = 0.3;
	for (int i = 0; i < 50; i++)
		assert_int_not_equal(estimated(&w, sets).reading, PPT_CHANGED);
}

/* A clock with steps of 256 ns, as that of a guest in virtual time, and a link without noise. */
TEST(a_clock_with_steps)
{
	const struct world w = { .rate = 10e6, .delta_ns = -700, .send_gap_ns = 2304, .step_ns = 256 };
	struct ppt_probes sets[2];
	struct ppt_result r;

	for (int i = 0; i < 20; i++) {
		r = estimated(&w, sets);
		assert_int_equal(r.reading, PPT_RESOLVED);
		assert_true(r.capacity.low <= 10e6 && 10e6 <= r.capacity.high);
		assert_true(r.delta.low <= -700 && -700 <= r.delta.high);
		assert_int_equal(r.gaps[0].bin_ns % 256, 0);
	}
}

/*
 * netem in virtual time does this: its timer fires at the next step, so all probes have the same error of up to a step.
 */
TEST(a_clock_whose_steps_are_in_phase)
{
	struct world w = { .rate = 100e6, .send_gap_ns = 2304, .noise_ns = 150, .step_ns = 256, .in_phase = true };
	struct ppt_probes sets[2];

	for (w.delta_ns = -2000; w.delta_ns < 0; w.delta_ns += getenv("KTRXER_EMULATED") ? 185 : 37) {
		const struct ppt_result r = estimated(&w, sets);

		assert_int_equal(r.reading, PPT_RESOLVED);
		assert_true(r.capacity.low <= 100e6 && 100e6 <= r.capacity.high);
		assert_true(r.delta.low <= w.delta_ns && w.delta_ns <= r.delta.high);
	}
}

TEST(losses_and_reordering)
{
	struct world w = { .rate = 100e6, .noise_ns = 200, .send_gap_ns = 4000, .loss = 0.1, .reordered = 0.1 };
	struct ppt_probes sets[2];
	struct ppt_result r;

	random_state = 1;
	r = estimated(&w, sets);
	assert_in_range(sets[0].outcomes[PAIR_LOST], 3, 20);
	assert_in_range(sets[0].outcomes[PAIR_REORDERED], 1, 12);
	assert_int_equal(r.reading, PPT_RESOLVED);
	close_to(r.capacity_bit_s, 100e6, 0.03);
	w.loss = 0.9;
	assert_int_equal(estimated(&w, sets).reading, PPT_TOO_FEW);
	w.loss = 1;
	assert_int_equal(estimated(&w, sets).reading, PPT_TOO_FEW);
}

TEST(trains_that_are_none)
{
	struct pair_times none[6] = { { { 0 }, { 0 } } };
	struct ppt_probes sets[2] = { { .probes = none, .size_bytes = SMALL },
				      { .probes = none, .size_bytes = LARGE } };
	struct ktrxer_error err = { 0 };
	struct ppt_result r;

	assert_int_equal(ppt_probes_estimate(sets, HEADING, 100, &r, &err), 0);
	assert_int_equal(r.reading, PPT_TOO_FEW);
	for (int i = 0; i < 6; i++) { /* arrivals whose send times are not known */
		none[i].arrived_ns[0] = 1000 + (uint64_t)i * 1000000;
		none[i].arrived_ns[1] = none[i].arrived_ns[0] + 9000;
	}
	sets[0].count = sets[1].count = 6;
	assert_int_equal(ppt_probes_estimate(sets, HEADING, 100, &r, &err), 0);
	assert_int_equal(r.reading, PPT_TOO_FEW);
	assert_int_equal(sets[0].outcomes[PAIR_UNSENT], 6);
	sets[1].size_bytes = SMALL;
	assert_int_equal(ppt_probes_estimate(sets, HEADING, 100, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "of 78 bytes"));
}

/* Below 2 % of a link of 10 Mbit/s at 100 ms, and of 100 Mbit/s at 10 ms (P6). */
TEST(the_load)
{
	const double bits = (ppt_probe_bits(HEADING, SMALL) + ppt_probe_bits(HEADING, LARGE)) / 2;

	close_to(bits * 10, 134480, 1e-9);
	assert_true(bits * 100 < 0.02 * 100e6);
}
