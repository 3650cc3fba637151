/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The estimators of available bandwidth on a simulated path of one link. */
#include "abw_path.h"
#include "cm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* An emulator has time for few runs. */
static int runs(void)
{
	return getenv("KTRXER_EMULATED") ? 2 : 10;
}

static double rate_most(void)
{
	return getenv("KTRXER_EMULATED") ? 20e6 : 2e9;
}

/* Runs are counted with a range that has the truth, with one that misses it by more than a tenth, and with a range. */
struct figures {
	int inside, wrong, resolved;
	double width, bytes, pathload_bytes;
};

static struct figures figures_of(struct world w, enum abw_method method)
{
	struct figures f = { 0 };

	for (int i = 0; i < runs(); i++) {
		struct outcome o;
		const struct abw_result *r = &o.result;

		w.seed = 1000 + (uint64_t)i;
		o = measured(w, method);
		f.resolved += r->reading == ABW_RESOLVED;
		f.inside += r->reading == ABW_RESOLVED && r->low_bit_s <= o.truth && o.truth <= r->high_bit_s;
		f.wrong += r->reading == ABW_RESOLVED &&
			   fmax(r->low_bit_s - o.truth, o.truth - r->high_bit_s) > o.truth / 10;
		f.width += (r->high_bit_s - r->low_bit_s) / o.capacity / runs();
		f.bytes += (double)r->bytes / runs();
		f.pathload_bytes += o.pathload_bytes / runs();
	}
	print_message("%5.0f Mbit/s, %s, load %2.0f %%, method %d: inside %d of %d, width %.1f %%, %.0f bytes\n",
		      w.links[0].rate / 1e6, cross_names[w.links[0].cross], 100 * w.links[0].load, method, f.inside,
		      f.resolved, 100 * f.width, f.bytes);
	return f;
}

static const struct world plain = { .access = 10, .noise_ns = 500, .skew = 50e-6 };

/* ------------------------------------------------------------------------------------------------------- whole runs */

TEST(test_the_truth_is_in_the_range)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10) {
		double bytes = 0, pathload_bytes = 0;

		for (int cross = 0; cross < (int)CROSS; cross++)
			for (int load = 0; load <= 90; load += 30) {
				struct world w = plain;
				struct figures f;

				w.links[0].rate = rate;
				w.links[0].load = load / 100.0;
				w.links[0].cross = (enum cross)cross;
				f = figures_of(w, ABW_AUTO);
				/* Ten sources that send 0.9 of the capacity on average fill the link for seconds. */
				assert_true(runs() - f.inside <= (cross == PARETO && load == 90 ? 2 : 1));
				assert_true(f.width <= (cross == PARETO && load >= 60 ? 0.3 : 0.15));
				bytes += f.bytes;
				pathload_bytes += figures_of(w, ABW_SLOPS).pathload_bytes;
			}
		print_message("%5.0f Mbit/s: %.0f bytes, pathload %.0f\n", rate / 1e6, bytes / 12, pathload_bytes / 12);
		assert_true(bytes * 3 < pathload_bytes * (rate < 50e6 ? 2 : 1));
	}
}

TEST(test_faults_of_the_path_and_of_the_hosts)
{
	const struct {
		const char *name;
		struct world w;
	} worlds[] = {
		{ "the sender's own link is as narrow", { .access = 1, .noise_ns = 500 } },
		{ "5 % lost", { .access = 10, .noise_ns = 500, .loss = 0.05 } },
		{ "2 % overtaken", { .access = 10, .noise_ns = 500, .held = 0.02 } },
		{ "-200 ppm", { .access = 10, .noise_ns = 500, .skew = -200e-6 } },
		{ "packets leave up to 20 us late", { .access = 10, .noise_ns = 500, .send_noise_ns = 20e3 } },
		{ "stamps with steps of 512 ns", { .access = 10, .noise_ns = 800, .step_ns = 512 } },
		{ "stamps up to 10 us late", { .access = 10, .noise_ns = 10e3 } },
	};

	for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
		print_message("%s:\n", worlds[i].name);
		for (double rate = 10e6; rate < rate_most(); rate *= 10)
			for (int load = 0; load <= 90; load += 30) {
				struct world w = worlds[i].w;
				struct figures f;

				w.links[0].rate = rate;
				w.links[0].load = load / 100.0;
				f = figures_of(w, ABW_AUTO);
				assert_true(runs() - f.inside <= 2);
				assert_true(f.width <= 0.17);
			}
	}
}

TEST(test_coalesced_arrivals)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10)
		for (int load = 0; load <= 90; load += 30) {
			struct world w = plain;
			struct figures f;

			w.links[0].rate = rate;
			w.links[0].load = load / 100.0;
			for (w.period_ns = 50e3; w.period_ns < 2e6; w.period_ns *= 5) {
				f = figures_of(w, ABW_AUTO);
				assert_true(f.wrong <= 1);
				/* Both packets of a size and of half of it come in one group. */
				if (w.period_ns > 1.1 * 8e9 * LARGE / rate)
					assert_int_equal(f.resolved, 0);
			}
		}
}

TEST(test_slops_finds_a_constant_rate)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10)
		for (int load = 0; load <= 90; load += 30) {
			struct world w = plain;

			w.links[0].rate = rate;
			w.links[0].load = load / 100.0;
			w.links[0].cross = CBR;
			assert_true(figures_of(w, ABW_SLOPS).inside + 1 >= runs());
		}
}

/* pathload takes 3 % of loss in half of the streams for a full queue, although no delay rises. */
TEST(test_slops_lowers_the_rate_after_losses)
{
	struct world w = plain;
	struct outcome o;

	w.links[0].rate = 100e6;
	w.loss = 0.01;
	w.seed = 7;
	o = measured(w, ABW_SLOPS);
	assert_int_equal(o.result.fleets_by_loss, 0);
	assert_true(o.result.high_bit_s > 0.8 * o.capacity);
	w.loss = 0.05;
	o = measured(w, ABW_SLOPS);
	assert_int_equal(o.result.reading, ABW_RESOLVED);
	assert_true(o.result.fleets > 2);
	assert_int_equal(o.result.fleets_by_loss, o.result.fleets);
	assert_true(o.result.high_bit_s < 0.1 * o.capacity);
	/* auto has no such rule: it does not take losses for a full queue. */
	assert_int_equal(measured(w, ABW_AUTO).result.fleets_by_loss, 0);
}

TEST(test_chirps_are_near_the_truth)
{
	for (int load = 30; load <= 60; load += 30) {
		struct world w = plain;
		struct outcome o;

		w.links[0].rate = 100e6;
		w.links[0].load = load / 100.0;
		w.seed = 7;
		o = measured(w, ABW_CHIRP);
		assert_int_equal(o.result.reading, ABW_RESOLVED);
		assert_int_equal(o.result.by, ABW_CHIRPS);
		assert_true(o.result.low_bit_s <= o.truth + 0.15 * o.capacity);
		assert_true(o.result.high_bit_s >= o.truth - 0.15 * o.capacity);
	}
}

/* A measurement ends its steps early where they are clear: no queue, no other traffic, nothing to be found twice. */
TEST(test_an_idle_path_takes_the_least_probes)
{
	struct world w = plain;
	struct outcome o;

	w.links[0].rate = 10e6;
	w.seed = 1;
	o = measured(w, ABW_AUTO);
	assert_int_equal(o.result.reading, ABW_RESOLVED);
	assert_true(o.result.bytes < 350000);
	w.noise_ns = 50e3; /* of a packet's 1.2 ms: small packets do not do */
	o = measured(w, ABW_AUTO);
	assert_true(o.result.bytes > 350000);
}

/* Each half of the measurement sees another link: no figure of it is that of either. */
TEST(test_a_rate_that_changes_during_the_measurement)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10)
		for (int load = 0; load <= 60; load += 30)
			for (double factor = 0.5; factor < 4; factor *= 4) {
				int changed = 0, valid = 0;

				for (int i = 0; i < runs(); i++) {
					struct world w = plain;
					struct outcome o;

					w.links[0].rate = rate;
					w.links[0].then_rate = rate * factor;
					w.links[0].change_s = 1.5;
					w.links[0].load = load / 100.0;
					w.seed = 50 + (uint64_t)i;
					o = measured(w, ABW_AUTO);
					changed += o.result.reading == ABW_CHANGED;
					valid += o.result.reading == ABW_RESOLVED;
					if (o.result.reading == ABW_CHANGED)
						assert_true(fabs(o.result.capacity_end_bit_s / o.capacity - 1) < 0.1);
				}
				print_message(
					"%5.0f Mbit/s, load %2d %%, then %.1f of it: changed %d, valid %d of %d\n",
					rate / 1e6, load, factor, changed, valid, runs());
				assert_int_equal(valid, 0);
				assert_true(runs() - changed <= 1);
			}
}

/* ------------------------------------------------------------------------------------------------------- bad input */

static enum abw_reading after(uint64_t arrival(const struct abw_plan *plan, size_t i), double send_stretch)
{
	const struct abw_options o = { .large_bytes = LARGE, .small_bytes = SMALL, .resolution_ns = 100 };
	const struct abw_plan *plan;
	struct abw abw;
	enum abw_reading reading;
	int steps = 0;

	assert_int_equal(abw_begin(&abw, &o), 0);
	for (; (plan = abw_next(&abw)); steps++) {
		const size_t count = (size_t)plan->flows * plan->trains * plan->packets;
		uint64_t *sent = calloc(count, sizeof *sent), *arrived = calloc(count, sizeof *arrived);

		assert_true(sent && arrived && steps < 100);
		for (size_t i = 0; i < count; i++) {
			sent[i] = 1000000000 + i / plan->packets * plan->period_ns +
				  (uint64_t)((double)(i % plan->packets * plan->gap_ns) * send_stretch);
			arrived[i] = arrival(plan, i);
		}
		assert_int_equal(abw_take(&abw, sent, arrived), 0);
		free(sent);
		free(arrived);
	}
	reading = abw.result.reading;
	abw_end(&abw);
	return reading;
}

static uint64_t never(const struct abw_plan *plan, size_t i)
{
	(void)plan;
	(void)i;
	return 0;
}

static uint64_t at_once(const struct abw_plan *plan, size_t i)
{
	return 2000000000 + i / plan->packets * plan->period_ns;
}

static uint64_t backwards(const struct abw_plan *plan, size_t i)
{
	return at_once(plan, i) - i * 1000;
}

static uint64_t on_a_link(const struct abw_plan *plan, size_t i)
{
	return at_once(plan, i) + i % plan->packets * (plan->gap_ns ? plan->gap_ns : plan->ip_bytes * 80ull);
}

TEST(test_arrivals_that_give_no_range)
{
	assert_int_equal(after(never, 1), ABW_LOST);
	assert_int_equal(after(backwards, 1), ABW_LOST);
	assert_int_equal(after(at_once, 1), ABW_COALESCED);
	assert_int_equal(after(on_a_link, 1), ABW_RESOLVED);
	assert_int_equal(after(on_a_link, 1.5), ABW_SENDER);
}

TEST(test_options)
{
	struct abw abw;

	assert_int_equal(abw_begin(&abw, &(struct abw_options){ .large_bytes = 100, .small_bytes = 52 }), -EINVAL);
	assert_int_equal(abw_begin(&abw, &(struct abw_options){ .large_bytes = 1500, .small_bytes = 1000 }), -EINVAL);
	assert_int_equal(abw_begin(&abw, &(struct abw_options){ .large_bytes = 1500 }), -EINVAL);
	assert_int_equal(abw_begin(&abw, &(struct abw_options){ ABW_METHODS, 1500, 52, 0, 1 }), -EINVAL);
	assert_int_equal(
		abw_begin(&abw, &(struct abw_options){ .large_bytes = 1500, .small_bytes = 52, .max_load_bit_s = 1e6 }),
		0);
	assert_true(8e9 * abw.plan.packets * abw.plan.ip_bytes / (double)abw.plan.period_ns <= 1e6);
	abw_end(&abw);
}
