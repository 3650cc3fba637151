/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clock offset estimator against simulated clocks whose truth is known. The clocks and paths are functions of a
 * true time, so nothing here reads a clock.
 */
#include "clock_offset.h"
#include "cm.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define S 1000000000.0
#define BASE 1795000000000000000LL
#define MS 1000000.0
#define US 1000.0

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static double between(double low, double high)
{
	return low + (high - low) * uniform();
}

/* Sum of three uniforms squared: positive, with a tail, hardly ever near 0. */
static double queue(double scale)
{
	double u = uniform() + uniform() + uniform();

	return scale * u * u;
}

/* ------------------------------------------------------------------------------ one clock of constant rate, by hand */

struct world {
	double skew, offset, there, back, noise, share; /* ns; share of probes that meet no queue */
	double interval;
	uint64_t t1;
	bool free_running;
};

static enum clock_offset_taken one(struct clock_offset *est, struct world *w)
{
	const double forward = w->there + (uniform() < w->share ? 0 : queue(w->noise)),
		     backward = w->back + (uniform() < w->share ? 0 : queue(w->noise));
	const uint64_t arrives = w->t1 + (uint64_t)forward, leaves = arrives + 20000;
	const struct clock_exchange x = { .t1_ns = w->t1,
					  .t2_ns = BASE + (int64_t)(w->offset + (double)arrives * (1 + w->skew)),
					  .t3_ns = BASE + (int64_t)(w->offset + (double)leaves * (1 + w->skew)),
					  .t4_ns = leaves + (uint64_t)backward,
					  .free_running = w->free_running };

	w->t1 += (uint64_t)w->interval;
	return clock_offset_add(est, &x);
}

static int64_t truth(const struct world *w, uint64_t at)
{
	return BASE + (int64_t)(w->offset + (double)at * w->skew);
}

static int64_t error_at(const struct clock_offset *est, uint64_t at, int64_t true_ns, uint64_t *bound)
{
	return llabs(clock_offset_at(est, CLOCK_OFFSET_OPEN, at, bound) - true_ns);
}

static struct clock_offset *estimator(void)
{
	struct clock_offset *est;

	assert_int_equal(clock_offset_new(&est), 0);
	return est;
}

TEST(a_skew_of_50_ppm_within_1)
{
	for (uint64_t round = 1; round <= 30; round++) {
		struct world w = { .skew = (round % 2 ? 50e-6 : -50e-6),
				   .offset = 3e6,
				   .there = 200000,
				   .back = 200000,
				   .noise = 500000,
				   .share = 0.01,
				   .interval = 0.1 * S,
				   .t1 = 1000000000,
				   .free_running = round % 3 };
		struct clock_offset *est = estimator();
		struct clock_offset_result r;
		uint64_t bound;

		seed = round;
		for (int i = 0; i < 1000; i++)
			assert_int_equal(one(est, &w), CLOCK_OFFSET_TAKEN);
		clock_offset_settle(est);
		clock_offset_result(est, CLOCK_OFFSET_LONGEST, &r);
		assert_int_equal(r.points, 1000);
		assert_true(r.skew_known && !r.drifts);
		assert_true(fabs(r.skew_ppm - w.skew * 1e6) < 1);
		assert_true(fabs(r.skew_ppm - w.skew * 1e6) <= r.skew_bound_ppm);
		assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
		for (uint64_t at = r.from_ns; at <= r.to_ns; at += 1000000000)
			assert_true(error_at(est, at, truth(&w, at), &bound) <= (int64_t)bound);
		bound = clock_offset_line_bound(est, CLOCK_OFFSET_LONGEST, r.from_ns, r.to_ns);
		for (uint64_t at = r.from_ns; at <= r.to_ns; at += 1000000000)
			assert_true(llabs(clock_offset_line(&r, at) - truth(&w, at)) <= (int64_t)bound);
		clock_offset_free(est);
	}
}

/* The uncertainty assumes no symmetry of the path: here all of the delay is up. */
TEST(an_asymmetric_path_stays_within_its_bound)
{
	struct world w = {
		.offset = -5e9, .there = 10e6, .back = 1000, .noise = 1e6, .share = 0.1, .interval = 0.01 * S, .t1 = 77
	};
	struct clock_offset *est = estimator();
	struct clock_offset_result r;

	seed = 5;
	for (int i = 0; i < 1000; i++)
		one(est, &w);
	clock_offset_result(est, CLOCK_OFFSET_LONGEST, &r);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	assert_true(r.offset_bound_ns < 5100000 && r.offset_bound_ns > 4900000); /* half the smallest round trip */
	clock_offset_free(est);
}

/*
 * A load fills a queue of two seconds, up, down or both, after three seconds of idle round trips. The estimate of that
 * moment holds, and does not follow the rate that those three seconds seemed to show.
 */
TEST(in_mid_run_over_a_filling_queue)
{
	for (uint64_t round = 1; round <= 40; round++) {
		const bool up = round % 4 < 3, down = round % 4 != 1;
		const double skew = ((double)(round % 7) - 3) * (round < 20 ? 15e-6 : 150e-6);
		struct world w = { .skew = skew,
				   .offset = -7e9,
				   .there = 5e6,
				   .back = 5e6,
				   .noise = 300000,
				   .interval = 0.25 * S,
				   .t1 = 5000000000,
				   .free_running = round % 3 == 0 };
		struct clock_offset *est = estimator();

		seed = round;
		for (int i = 0; i < 72; i++) {
			if (i >= 12) {
				const double fill = (i - 11) * 0.2 < 1 ? (i - 11) * 0.2 : 1 - 0.2 * uniform();

				w.interval = S;
				w.there = 5e6 + (up ? 2 * S * fill : 0);
				w.back = 5e6 + (down ? 2 * S * fill : 0);
			}
			one(est, &w);
			for (uint64_t at = w.t1 - 3000000000 * (i > 20); at < w.t1 + 1000000000 && i > 2;
			     at += 500000000) {
				uint64_t bound;
				const int64_t wrong = error_at(est, at, truth(&w, at), &bound);

				assert_true(wrong <= (int64_t)bound);
				/* half the idle round trip, and 600 ppm for a minute and some seconds */
				assert_true(bound < 48000000);
				assert_true(round >= 20 || wrong < 7000000); /* the same with usual rates */
			}
		}
		clock_offset_free(est);
	}
}

TEST(few_points_say_little)
{
	struct world w = { .there = 1e6, .back = 1e6, .interval = 0.01 * S, .t1 = 1000 };
	struct clock_offset *est = estimator();
	struct clock_offset_result r;

	clock_offset_settle(est);
	clock_offset_result(est, CLOCK_OFFSET_LONGEST, &r);
	assert_int_equal(r.points, 0);
	one(est, &w);
	clock_offset_settle(est);
	clock_offset_result(est, CLOCK_OFFSET_OPEN, &r);
	assert_int_equal(r.points, 1);
	assert_false(r.skew_known);
	assert_in_range(r.offset_bound_ns, 1000000, 1010000);
	clock_offset_free(est);
}

TEST(steps_begin_segments)
{
	struct world w = { .skew = 20e-6,
			   .offset = 1e6,
			   .there = 100000,
			   .back = 100000,
			   .noise = 50000,
			   .share = 0.05,
			   .interval = 0.01 * S,
			   .t1 = 1000 };
	struct clock_offset *est = estimator();
	struct clock_offset_result r;
	int64_t before;
	int steps = 0;

	seed = 9;
	for (int i = 0; i < 600; i++)
		assert_int_equal(one(est, &w), CLOCK_OFFSET_TAKEN);
	w.offset += 50e6; /* settimeofday() at the far end */
	for (int i = 0; i < 500; i++)
		steps += one(est, &w) == CLOCK_OFFSET_STEPPED;
	assert_int_equal(steps, 1);
	assert_int_equal(clock_offset_steps(est), 1);
	clock_offset_result(est, CLOCK_OFFSET_LONGEST, &r);
	assert_int_equal(r.points, 600);
	before = r.offset_ns;
	assert_true(llabs(r.offset_ns - (truth(&w, r.at_ns) - 50000000)) <= (int64_t)r.offset_bound_ns);
	clock_offset_result(est, CLOCK_OFFSET_OPEN, &r);
	assert_int_equal(r.points, 500);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	assert_true(r.offset_ns - before > 49000000);
	clock_offset_free(est);
}

TEST(wrong_stamps_do_no_harm)
{
	struct world w = { .offset = 1e6,
			   .there = 100000,
			   .back = 100000,
			   .noise = 50000,
			   .share = 0.05,
			   .interval = 0.01 * S,
			   .t1 = 1000 };
	struct clock_offset *est = estimator();
	struct clock_offset_result r;

	for (int i = 0; i < 300; i++) {
		one(est, &w);
		if (i % 50 == 20) { /* a wrong stamp, alone */
			/* clang-format off */
			const struct clock_exchange wrong[] = {
				{ .t1_ns = w.t1, .t2_ns = 0, .t3_ns = 1, .t4_ns = w.t1 + 100 },
				{ .t1_ns = w.t1 + 1, .t2_ns = INT64_MAX / 2, .t3_ns = INT64_MAX / 2,
				  .t4_ns = w.t1 + 100 },
				/* older than the last one */
				{ .t1_ns = 1, .t2_ns = BASE, .t3_ns = BASE, .t4_ns = 2 },
				/* it came before it left */
				{ .t1_ns = w.t1, .t2_ns = BASE, .t3_ns = BASE, .t4_ns = w.t1 - 1 },
				/* a round trip below 0 */
				{ .t1_ns = w.t1, .t2_ns = BASE, .t3_ns = BASE + 101, .t4_ns = w.t1 + 100 },
			};
			/* clang-format on */

			for (int k = 0; k < 5; k++)
				assert_int_equal(clock_offset_add(est, &wrong[k]),
						 k < 2 ? CLOCK_OFFSET_DOUBTED : CLOCK_OFFSET_IGNORED);
		}
	}
	assert_int_equal(clock_offset_steps(est), 0);
	clock_offset_result(est, CLOCK_OFFSET_OPEN, &r);
	assert_int_equal(r.points, 300);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	clock_offset_free(est);
}

/*
 * An oscillator does not change its rate by 50 ppm at once. If the stamps are said to be free of adjustments, they are
 * not.
 */
TEST(a_change_of_rate_contradicts_free_running_clocks)
{
	struct world w = { .skew = 0,
			   .there = 1000,
			   .back = 1000,
			   .noise = 100,
			   .share = 0.5,
			   .interval = 0.1 * S,
			   .t1 = 1000,
			   .free_running = true };
	struct clock_offset *est = estimator();
	struct clock_offset_result r;
	uint64_t bound;

	for (int i = 0; i < 600; i++) {
		one(est, &w);
		w.offset += i < 300 ? 0 : 5000; /* 50 ppm from here on */
	}
	clock_offset_settle(est);
	clock_offset_result(est, CLOCK_OFFSET_OPEN, &r);
	assert_int_equal(r.points, 600);
	assert_true(r.drifts && r.free_running);
	for (int i = 0; i < 600; i++)
		assert_true(error_at(est, 1000 + (uint64_t)i * 100000000, BASE + (i < 301 ? 0 : (i - 300) * 5000),
				     &bound) <= (int64_t)bound);
	assert_true(bound < 60000); /* the disciplined model, between two round trips */
	clock_offset_free(est);
}

TEST(long_runs_in_little_memory)
{
	struct world w = { .skew = 10e-6, .interval = 0.001 * S, .t1 = 1000, .free_running = true };
	struct clock_offset *est = estimator();
	struct clock_offset_result r;

	seed = 3;
	for (int i = 0; i < 300000; i++) {
		/* A parabola puts every point on the hull. */
		w.there = w.back = 50000 + ((double)i / 1000 - 150) * ((double)i / 1000 - 150);
		one(est, &w);
	}
	clock_offset_settle(est);
	clock_offset_result(est, CLOCK_OFFSET_OPEN, &r);
	assert_int_equal(r.points, 300000);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	assert_true(r.skew_ppm > 9 && r.skew_ppm < 11);
	clock_offset_free(est);
}

/* -------------------------------------------------------------------------------------------- many simulated clocks */

enum { CHANGES = 40 };

/* CLOCK_REALTIME of one host: an oscillator whose rate changes slowly, slews, and steps. All by the true time. */
struct simulated {
	double skew, wave, wave_length; /* wave: amplitude of the rate */
	struct {
		double from, length, rate; /* a slew */
	} slews[CHANGES];
	int slew_count;
	struct {
		double at, by;
	} steps[CHANGES];
	int step_count;
};

/* The rate is a triangular wave: it rises to `wave` in a quarter of the length. */
static double oscillator(const struct simulated *c, double x)
{
	const double length = c->wave ? c->wave_length : 4 * S, u = x - length * (double)(int64_t)(x / length),
		     change = 4 * c->wave / length;
	const double v = u - length / 4, w = length - u;

	if (v < 0)
		return x * c->skew + change * u * u / 2;
	return x * c->skew +
	       (v > length / 2 ? change * w * w / 2 : change * length * length / 32 + c->wave * v - change * v * v / 2);
}

/* The adjustment of its kernel. */
static double adjustment(const struct simulated *c, double x)
{
	double sum = 0;

	for (int i = 0; i < c->slew_count; i++) {
		const double in = x - c->slews[i].from;

		sum += c->slews[i].rate * (in < 0 ? 0 : in > c->slews[i].length ? c->slews[i].length : in);
	}
	for (int i = 0; i < c->step_count; i++)
		sum += x >= c->steps[i].at ? c->steps[i].by : 0;
	return sum;
}

static double reading(const struct simulated *c, double x, bool raw)
{
	return x + oscillator(c, x) + (raw ? 0 : adjustment(c, x));
}

struct scenario {
	struct simulated own, far;
	double length, interval, up, down, noise, load_from, load_to, load_up, load_down;
	bool raw;
};

/* Rates that the free-running model admits: both oscillators together. */
static void oscillator_make(struct simulated *c, int kind)
{
	c->skew = between(-40e-6, 40e-6);
	c->wave_length = between(60, 2000) * S;
	c->wave = kind ? between(0, CLOCK_OFFSET_DRIFT_PPM_PER_S * 1e-15 / 2 * c->wave_length / 4) : 0;
	if (c->wave > 5e-6)
		c->wave = 5e-6;
}

/* A daemon corrects the phase now and then, as chronyd (maxslewrate 500) and ntpd do, never faster than adjtime(3). */
static void slews_make(struct simulated *c, double length, double most)
{
	double at = between(0, 20) * S;

	while (at < length && c->slew_count < CHANGES) {
		const double lasts = between(0.1, 8) * S;

		c->slews[c->slew_count].from = at;
		c->slews[c->slew_count].length = lasts;
		c->slews[c->slew_count++].rate = between(-most, most);
		at += lasts + between(1, 32) * S;
	}
}

static void steps_make(struct simulated *c, double length, double least)
{
	for (double at = between(5, 30) * S; at < length && c->step_count < 3; at += between(20, 60) * S) {
		c->steps[c->step_count].at = at;
		c->steps[c->step_count++].by = (uniform() < 0.5 ? -1 : 1) * between(least, 4 * least + 2 * MS);
	}
}

static void scenario_make(struct scenario *s, int kind)
{
	const bool stepped = kind % 5 == 3;

	memset(s, 0, sizeof *s);
	s->raw = kind % 2;
	s->length = between(30, 120) * S;
	s->interval = between(0.02, 0.3) * S;
	s->up = between(0.01, 3) * MS;
	s->down = kind % 5 == 4 ? s->up * between(0.02, 0.2) : s->up * between(0.8, 1.2);
	s->noise = uniform() < 0.5 ? 0 : between(0, 1) * s->up;
	oscillator_make(&s->own, kind % 5);
	oscillator_make(&s->far, kind % 5);
	/* Stamps with adjustments: both ends together stay below what the disciplined model admits. */
	if (kind % 5 == 2 || s->raw)
		slews_make(&s->far, s->length, s->raw ? 500e-6 : 490e-6);
	if (s->raw)
		slews_make(&s->own, s->length, 500e-6);
	/* Only steps larger than the round trip are seen without the adjustments of both kernels. */
	if (stepped)
		steps_make(&s->far, s->length, s->raw ? 10 * US : 3 * (s->up + s->down + 9 * s->noise));
	if (!stepped || s->raw) {
		s->load_from = s->length * between(0.1, 0.4);
		s->load_to = s->load_from + between(5, 60) * S;
		s->load_up = uniform() < 0.7 ? between(0, 500) * MS : 0;
		s->load_down = uniform() < 0.7 ? between(0, 500) * MS : 0;
	}
}

static double loaded(const struct scenario *s, double x, double queue_ns)
{
	if (x < s->load_from || x > s->load_to)
		return 0;
	return queue_ns * (x < s->load_from + S ? (x - s->load_from) / S : between(0.7, 1));
}

/* `x` is the true time at which the probe leaves. */
static double exchange_make(const struct scenario *s, double x, struct clock_exchange *e)
{
	const double arrives = x + s->up + queue(s->noise) + loaded(s, x, s->load_up),
		     leaves = arrives + between(5, 60) * US;
	const double back = leaves + s->down + queue(s->noise) + loaded(s, leaves, s->load_down);

	*e = (struct clock_exchange){ .t1_ns = (uint64_t)reading(&s->own, x, s->raw),
				      .t2_ns = BASE + (int64_t)reading(&s->far, arrives, s->raw),
				      .t3_ns = BASE + (int64_t)reading(&s->far, leaves, s->raw),
				      .t4_ns = (uint64_t)reading(&s->own, back, s->raw),
				      .widen_ns = 1,
				      .free_running = s->raw };
	return back;
}

/* Then the offset at T1 is not the one that its stamps contain. */
static bool stepped_between(const struct simulated *c, double from, double to)
{
	for (int i = 0; i < c->step_count; i++)
		if (c->steps[i].at > from && c->steps[i].at <= to)
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	const struct clock_exchange *x = a, *y = b;

	return x->t4_ns < y->t4_ns ? -1 : x->t4_ns > y->t4_ns;
}

enum { MOST = 16384 };

struct tally {
	uint64_t samples, wrong, steps, drifts;
	double worst_error, worst_bound;
};

static void simulate(const struct scenario *s, struct tally *t)
{
	static struct clock_exchange exchanges[MOST], arrived[MOST];
	static double sent[MOST], received[MOST];
	struct clock_offset *est = estimator();
	struct clock_offset_result r;
	int n = 0;

	for (double x = S; x < s->length && n < MOST; x += s->interval, n++) {
		sent[n] = x;
		received[n] = exchange_make(s, x, &exchanges[n]);
	}
	memcpy(arrived, exchanges, (size_t)n * sizeof *arrived);
	qsort(arrived, (size_t)n, sizeof *arrived, compare);
	for (int i = 0; i < n; i++)
		clock_offset_add(est, &arrived[i]);
	clock_offset_settle(est);
	clock_offset_result(est, CLOCK_OFFSET_LONGEST, &r);
	assert_true(r.points > 0);
	t->steps += clock_offset_steps(est);
	t->drifts += r.drifts;
	for (int i = 0; i < n; i++) {
		const double own = reading(&s->own, sent[i], s->raw), true_ns = reading(&s->far, sent[i], s->raw) - own;
		const struct clock_exchange *x = &exchanges[i];
		uint64_t bound, at = (uint64_t)own;
		double error;

		if (at < r.from_ns || at > r.to_ns || (!s->raw && stepped_between(&s->far, sent[i], received[i])))
			continue;
		error = fabs((double)(clock_offset_at(est, CLOCK_OFFSET_LONGEST, at, &bound) - BASE) - true_ns);
		t->wrong += error > (double)bound + 2;
		/* With its own limits, as the delay of this probe is computed. */
		error = fabs((double)(clock_offset_within(est, CLOCK_OFFSET_LONGEST, at,
							  x->t3_ns - (int64_t)x->t4_ns -
								  (int64_t)((x->t4_ns - at) * 6 / 10000) - 2,
							  x->t2_ns - (int64_t)at + 2, &bound) -
				      BASE) -
			     true_ns);
		t->samples += 2;
		t->wrong += error > (double)bound + 2;
		t->worst_error = error > t->worst_error ? error : t->worst_error;
		t->worst_bound = (double)bound > t->worst_bound ? (double)bound : t->worst_bound;
	}
	clock_offset_free(est);
}

/* The stated level is all samples, not a share of them. */
TEST(the_truth_is_within_the_bound_in_every_sample)
{
	for (int kind = 0; kind < 200; kind++) {
		struct tally t = { 0 };
		struct scenario s;
		double hidden;

		seed = (uint64_t)kind + 1;
		scenario_make(&s, kind);
		simulate(&s, &t);
		if (t.wrong)
			fail_msg("clocks %d: %" PRIu64 " of %" PRIu64 " samples beyond the bound; error up to %.0f ns",
				 kind, t.wrong, t.samples, t.worst_error);
		assert_true(t.samples > 50);
		if (s.raw)
			assert_int_equal(t.drifts + t.steps, 0); /* neither slews nor steps are in the stamps */
		/*
		 * Useful, too: the smallest round trip, and what the clocks may do while a load hides it. Smooth rates
		 * that are known from before and after the load add nearly nothing to that.
		 */
		hidden = s.raw && s.load_from > 8 * S && s.load_to < s.length - 4 * S
				 ? 200 * US
				 : 650e-6 * (s.load_to - s.load_from + S);
		assert_true(t.worst_bound < s.up + s.down + 9 * s.noise + hidden);
	}
}

/* Rates that drift by 0.6 ppm in 600 s, a round trip of 50 us. */
TEST(a_slow_drift_over_a_long_run)
{
	for (int raw = 0; raw < 2; raw++) {
		struct scenario s = { .length = 600 * S,
				      .interval = 0.1 * S,
				      .up = 25 * US,
				      .down = 25 * US,
				      .noise = US,
				      .raw = raw,
				      .far = { .skew = 3e-6, .wave = 0.6e-6, .wave_length = 2400 * S } };
		struct tally t = { 0 };

		seed = 4;
		simulate(&s, &t);
		print_message("drift of 0.6 ppm in 600 s, %s: error up to %.1f us, bound up to %.1f us, %" PRIu64
			      " of %" PRIu64 " samples beyond\n",
			      raw ? "free running" : "disciplined", t.worst_error / US, t.worst_bound / US, t.wrong,
			      t.samples);
		assert_int_equal(t.wrong, 0);
		assert_true(t.worst_bound < (raw ? 32 : 65) * US);
	}
}

/* The far clock is slewed by 500 ppm for 4 s, while a load hides all short round trips. */
TEST(a_slew_under_load)
{
	for (int raw = 0; raw < 2; raw++) {
		struct scenario s = { .length = 30 * S,
				      .interval = 0.05 * S,
				      .up = 20 * US,
				      .down = 20 * US,
				      .noise = 2 * US,
				      .raw = raw,
				      .load_from = 8 * S,
				      .load_to = 22 * S,
				      .load_down = 5 * MS,
				      .far = { .skew = 10e-6,
					       .wave_length = S,
					       .slews = { { 12 * S, 4 * S, 500e-6 } },
					       .slew_count = 1 } };
		struct tally t = { 0 };

		seed = 4;
		simulate(&s, &t);
		print_message("slew of 500 ppm under load, %s: error up to %.1f us, bound up to %.1f us, %" PRIu64
			      " of %" PRIu64 " samples beyond\n",
			      raw ? "free running" : "disciplined", t.worst_error / US, t.worst_bound / US, t.wrong,
			      t.samples);
		assert_int_equal(t.wrong, 0);
		assert_true(t.worst_bound < (raw ? 40 * US : 6 * MS));
	}
}
