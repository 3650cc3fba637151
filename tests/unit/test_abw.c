/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The estimators of available bandwidth on a simulated path: one FIFO link with cross traffic, stamps with noise,
 * two clocks.
 */
#include "abw.h"
#include "cm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { LARGE = 1500, SMALL = 52, FRAME = 14, SOURCES = 10 };
#define BEGINS_NS 1.2e9 /* of the measurement: cross traffic has begun by then */

enum cross { POISSON, PARETO, CBR, CROSS };
static const char *const cross_names[CROSS] = { "Poisson", "Pareto on/off", "CBR" };

struct source {
	double next_ns, until_ns; /* the next packet; the end of the burst */
};

struct world {
	double rate, load; /* bit/s of frames; share that cross traffic takes */
	enum cross cross;
	double access;    /* of the sender's own link, in rates of the path's */
	double second;    /* load of a second link of the same rate; 0: none */
	double then_rate; /* of the link from change_s seconds after the beginning on; 0: its rate does not change */
	double change_s;
	double skew;          /* of the receiver's clock */
	double noise_ns;      /* stamps are later by up to so much */
	double step_ns;       /* of the receiver's clock; 0: 1 ns */
	double period_ns;     /* the receiver delivers in groups on this grid; 0: never */
	double loss, held;    /* shares of packets: lost; held up for up to 300 us, so that others overtake them */
	double send_noise_ns; /* packets leave later than planned by up to so much */
	double bucket_bits;   /* the link is a token bucket, which passes so much at once; 0: it is none */
	uint64_t seed;
};

struct path {
	double free_ns, access_ns, tokens_ns;
	struct source sources[SOURCES];
	double cross_bits; /* that came so far */
	double now_ns;
};

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double pareto(uint64_t *seed, double mean)
{
	return mean / 3 * pow(uniform(seed), -1 / 1.5);
}

/* Bytes of the next cross packet of a source, and the time of the one after it. */
static double cross_packet(struct world *w, struct source *s)
{
	double bytes = 1000, gap;

	if (w->cross == POISSON) {
		bytes = uniform(&w->seed) < 0.5 ? LARGE : 64 + (LARGE - 64) * uniform(&w->seed);
		gap = -log(uniform(&w->seed)) * (0.5 * LARGE + 0.25 * (LARGE + 64) + FRAME) * 8e9 / w->rate / w->load;
	} else if (w->cross == CBR) {
		gap = (bytes + FRAME) * 8e9 / w->rate / w->load;
	} else {
		gap = (bytes + FRAME) * 8e9 / w->rate / w->load * SOURCES / 2;
		if (s->next_ns + gap > s->until_ns) {
			gap += pareto(&w->seed, 20e6);
			s->until_ns = s->next_ns + gap + pareto(&w->seed, 20e6);
		}
	}
	s->next_ns += gap;
	return bytes + FRAME;
}

static double serve(const struct world *w, struct path *p, double at, double bits)
{
	const double lasts = bits * 1e9 / w->rate;

	if (w->bucket_bits <= 0)
		return p->free_ns = fmax(p->free_ns, at) + lasts;
	/* tokens_ns: when the bucket would be full again */
	p->tokens_ns = fmax(p->tokens_ns, at) + lasts;
	return p->free_ns = fmax(at, p->tokens_ns - w->bucket_bits * 1e9 / w->rate);
}

static double through(struct world *w, struct path *p, double at, double bytes)
{
	const uint32_t sources = w->cross == PARETO ? SOURCES : 1;

	while (w->load > 0) {
		struct source *first = &p->sources[0];
		double came;

		for (uint32_t i = 1; i < sources; i++)
			if (p->sources[i].next_ns < first->next_ns)
				first = &p->sources[i];
		came = first->next_ns;
		if (came > at)
			break;
		const double bits = 8 * cross_packet(w, first);

		p->cross_bits += bits;
		serve(w, p, came, bits);
	}
	return serve(w, p, at, 8 * (bytes + FRAME));
}

struct probe {
	double at_ns;
	size_t index;
};

static int by_time(const void *a, const void *b)
{
	const double x = ((const struct probe *)a)->at_ns, y = ((const struct probe *)b)->at_ns;

	return (x > y) - (x < y);
}

static double link_passed(struct world *w, struct path *p, struct path *other, double leaves, uint32_t bytes)
{
	struct world second = *w;
	double came;

	p->access_ns = fmax(p->access_ns, leaves) + 8e9 * (bytes + FRAME) / w->rate / w->access;
	came = through(w, p, p->access_ns, bytes);
	if (w->second > 0) { /* less than the first one's */
		second.load = w->second;
		came = through(&second, other, came, bytes);
		w->seed = second.seed;
	}
	return came;
}

/* All trains of a plan; their packets pass the path in the order of their times. */
static void send_trains(struct world *w, struct path *path, struct path *other, const struct abw_plan *plan,
			uint64_t *sent, uint64_t *arrived)
{
	const size_t count = (size_t)plan->flows * plan->trains * plan->packets;
	struct probe *probes = calloc(count, sizeof *probes);

	assert_non_null(probes);
	for (size_t train = 0; train < (size_t)plan->flows * plan->trains; train++) {
		const size_t flow = train / plan->trains;
		double at = path->now_ns + (double)plan->period_ns * ((double)(train % plan->trains) +
								      (double)flow / 2 + uniform(&w->seed) / 8),
		       gap = (double)plan->gap_ns, before = 0;

		for (uint32_t i = 0; i < plan->packets; i++) {
			const size_t index = train * plan->packets + i;

			before = fmax(before, at + w->send_noise_ns * uniform(&w->seed));
			probes[index] = (struct probe){ before, index };
			at += gap;
			if (plan->shrink)
				gap = gap / 65536 * plan->shrink;
		}
	}
	qsort(probes, count, sizeof *probes, by_time);
	for (size_t i = 0; i < count; i++) {
		const size_t index = probes[i].index;

		if (w->then_rate > 0 && probes[i].at_ns > BEGINS_NS + w->change_s * 1e9)
			w->rate = w->then_rate;

		double came =
			link_passed(w, path, other, probes[i].at_ns, plan->ip_bytes) + w->noise_ns * uniform(&w->seed);

		if (uniform(&w->seed) < w->held)
			came += 300e3 * uniform(&w->seed);
		if (w->period_ns > 0)
			came = ceil(came / w->period_ns) * w->period_ns + 300.0 * (double)(index % plan->packets);
		if (w->step_ns > 0)
			came = floor(came / w->step_ns) * w->step_ns;
		sent[index] = (uint64_t)probes[i].at_ns;
		arrived[index] = uniform(&w->seed) < w->loss ? 0 : (uint64_t)(came * (1 + w->skew) + 5e12);
	}
	path->now_ns += (double)plan->period_ns * (plan->trains + 1) + 1e7;
	through(w, path, path->now_ns, 0);
	free(probes);
}

struct outcome {
	struct abw_result result;
	double truth, capacity;
	double pathload_bytes; /* what pathload 1.3.3 sends for the same fleets */
	double lasted_s;
};

/* pathload's packets: a gap of 80 us, and 200 bytes at least. */
static double pathload_bytes(double rate)
{
	return 12 * 100 * fmin(fmax(rate * 80e-6 / 8, 200), LARGE);
}

static struct outcome measured(struct world w, enum abw_method method)
{
	const struct abw_options o = {
		.method = method, .large_bytes = LARGE, .small_bytes = SMALL, .resolution_ns = 100
	};
	double bits[ABW_STEPS] = { 0 }, lasted[ABW_STEPS] = { 0 };
	const struct abw_plan *plan;
	struct path path = { 0 }, other = { 0 };
	struct outcome out = { 0 };
	struct abw abw;

	w.access = w.access > 0 ? w.access : 1;
	for (int i = 0; i < SOURCES; i++)
		path.sources[i].next_ns = other.sources[i].next_ns = 1e9 + 2e7 * uniform(&w.seed);
	path.now_ns = BEGINS_NS;
	through(&w, &path, path.now_ns, 0);
	assert_int_equal(abw_begin(&abw, &o), 0);
	while ((plan = abw_next(&abw))) {
		const size_t count = (size_t)plan->flows * plan->trains * plan->packets;
		uint64_t *sent = calloc(count, sizeof *sent), *arrived = calloc(count, sizeof *arrived);
		const double began = path.now_ns, cross = path.cross_bits;
		const enum abw_step step = plan->step;

		assert_true(sent && arrived);
		if (step == ABW_FLEET)
			out.pathload_bytes += pathload_bytes(8e9 * plan->ip_bytes / (double)plan->gap_ns);
		send_trains(&w, &path, &other, plan, sent, arrived);
		bits[step] += path.cross_bits - cross;
		lasted[step] += (path.now_ns - began) / 1e9;
		assert_int_equal(abw_take(&abw, sent, arrived), 0);
		free(sent);
		free(arrived);
	}
	out.lasted_s = (path.now_ns - BEGINS_NS) / 1e9;
	out.capacity = w.rate * LARGE / (LARGE + FRAME);
	out.result = abw.result;
	/* The truth of the time in which the probes of the range were sent. */
	if (lasted[abw.result.by] > 0)
		out.truth = fmax(w.rate - bits[abw.result.by] / lasted[abw.result.by], 0) * LARGE / (LARGE + FRAME);
	abw_end(&abw);
	return out;
}

/* An emulator has time for few runs. */
static int runs(void)
{
	return getenv("KTRXER_EMULATED") ? 2 : 10;
}

static double rate_most(void)
{
	return getenv("KTRXER_EMULATED") ? 20e6 : 2e9;
}

/* Runs are counted with a range that has the truth, with a range that does not have it, and with a range at all. */
struct figures {
	int inside, outside, resolved;
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
		f.width += (r->high_bit_s - r->low_bit_s) / o.capacity / runs();
		f.bytes += (double)r->bytes / runs();
		f.pathload_bytes += o.pathload_bytes / runs();
	}
	f.outside = f.resolved - f.inside;
	print_message("%5.0f Mbit/s, %s, load %2.0f %%, method %d: inside %d of %d, width %.1f %%, %.0f bytes\n",
		      w.rate / 1e6, cross_names[w.cross], 100 * w.load, method, f.inside, f.resolved, 100 * f.width,
		      f.bytes);
	return f;
}

static const struct world plain = { .access = 10, .noise_ns = 500, .skew = 50e-6, .cross = POISSON };

/* ------------------------------------------------------------------------------------------------------- whole runs */

TEST(test_the_truth_is_in_the_range)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10) {
		double bytes = 0, pathload_bytes = 0;

		for (int cross = 0; cross < (int)CROSS; cross++)
			for (int load = 0; load <= 90; load += 30) {
				struct world w = plain;
				struct figures f;

				w.rate = rate;
				w.load = load / 100.0;
				w.cross = (enum cross)cross;
				f = figures_of(w, ABW_AUTO);
				/* Ten sources that send 0.9 of the capacity on average fill the link for seconds. */
				assert_true(runs() - f.inside <= (cross == PARETO && load == 90 ? 2 : 1));
				assert_true(f.width <= 0.15);
				bytes += f.bytes;
				pathload_bytes += figures_of(w, ABW_SLOPS).pathload_bytes;
			}
		print_message("%5.0f Mbit/s: %.0f bytes, pathload %.0f\n", rate / 1e6, bytes / 12, pathload_bytes / 12);
		assert_true(bytes * 10 < pathload_bytes);
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

				w.rate = rate;
				w.load = load / 100.0;
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

			w.rate = rate;
			w.load = load / 100.0;
			for (w.period_ns = 50e3; w.period_ns < 2e6; w.period_ns *= 5) {
				f = figures_of(w, ABW_AUTO);
				assert_true(f.outside <= 2);
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

			w.rate = rate;
			w.load = load / 100.0;
			w.cross = CBR;
			assert_int_equal(figures_of(w, ABW_SLOPS).inside, runs());
		}
}

/* pathload takes 3 % of loss in half of the streams for a full queue, although no delay rises. */
TEST(test_slops_lowers_the_rate_after_losses)
{
	struct world w = plain;
	struct outcome o;

	w.rate = 100e6;
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

		w.rate = 100e6;
		w.load = load / 100.0;
		w.seed = 7;
		o = measured(w, ABW_CHIRP);
		assert_int_equal(o.result.reading, ABW_RESOLVED);
		assert_int_equal(o.result.by, ABW_CHIRPS);
		assert_true(o.result.low_bit_s <= o.truth + 0.15 * o.capacity);
		assert_true(o.result.high_bit_s >= o.truth - 0.15 * o.capacity);
	}
}

static bool inside(const struct outcome *o)
{
	return o->result.low_bit_s <= o->truth && o->truth <= o->result.high_bit_s;
}

static bool without_doubt(const struct outcome *o)
{
	return o->result.reading == ABW_RESOLVED && o->result.by == ABW_IDLE && !o->result.several;
}

/*
 * Two loaded links: a probe must find both queues empty, so the range of the empty queue is too low. Cross traffic of
 * the second link comes between packets that the first one sent back to back.
 */
TEST(test_a_second_loaded_link_is_noticed)
{
	const double loads[][2] = { { 0.6, 0.3 }, { 0.3, 0.6 }, { 0.3, 0.3 }, { 0.5, 0.5 }, { 0.6, 0.6 } };

	for (double rate = 10e6; rate < rate_most(); rate *= 10)
		for (size_t l = 0; l < sizeof loads / sizeof *loads; l++)
			for (int cross = 0; cross < (int)CROSS; cross++) {
				int false_valid = 0, noticed = 0;

				for (int i = 0; i < runs(); i++) {
					struct world w = plain;
					struct outcome o;

					w.rate = rate;
					w.load = loads[l][0];
					w.second = loads[l][1];
					w.cross = (enum cross)cross;
					w.seed = 300 + (uint64_t)i;
					o = measured(w, ABW_AUTO);
					noticed += o.result.several;
					false_valid += without_doubt(&o) && !inside(&o);
				}
				print_message("%5.0f Mbit/s, loads %.0f and %.0f %%, %s: noticed %d, false without "
					      "notice %d of %d\n",
					      rate / 1e6, 100 * loads[l][0], 100 * loads[l][1], cross_names[cross],
					      noticed, false_valid, runs());
				assert_true(false_valid <= 1);
			}
}

/* One loaded link behind a faster one: the gaps of packets sent back to back are nearly those of the link. */
TEST(test_one_loaded_link_is_not_taken_for_several)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10)
		for (int cross = 0; cross < (int)CROSS; cross++)
			for (int load = 0; load <= 90; load += 30) {
				int several = 0;

				for (int i = 0; i < runs(); i++) {
					struct world w = plain;

					w.rate = rate;
					w.load = load / 100.0;
					w.cross = (enum cross)cross;
					w.seed = 300 + (uint64_t)i;
					several += measured(w, ABW_AUTO).result.several;
				}
				print_message("%5.0f Mbit/s, load %d %%, %s: several %d of %d\n", rate / 1e6, load,
					      cross_names[cross], several, runs());
				assert_true(several <= 1);
			}
}

/* Packets sent back to back and small probes pass a bucket at once; a train beside the range empties it. */
TEST(test_a_token_bucket_contradicts)
{
	for (double rate = 10e6; rate < rate_most(); rate *= 10)
		for (int i = 0; i < runs(); i++) {
			struct world w = plain;
			struct outcome o;

			w.rate = rate;
			w.bucket_bits = 8 * 10 * (LARGE + FRAME);
			w.seed = 900 + (uint64_t)i;
			o = measured(w, ABW_AUTO);
			assert_false(without_doubt(&o) && !inside(&o));
			assert_true(o.result.contradicted || o.result.by == ABW_FLEET);
		}
}

/* A measurement ends its steps early where they are clear: no queue, no other traffic, nothing to be found twice. */
TEST(test_an_idle_path_takes_the_least_probes)
{
	struct world w = plain;
	struct outcome o;

	w.rate = 10e6;
	w.seed = 1;
	o = measured(w, ABW_AUTO);
	assert_int_equal(o.result.reading, ABW_RESOLVED);
	assert_true(o.result.bytes < 90000);
	w.noise_ns = 50e3; /* of a packet's 1.2 ms: small packets do not do */
	o = measured(w, ABW_AUTO);
	assert_true(o.result.bytes > 150000);
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

					w.rate = rate;
					w.then_rate = rate * factor;
					w.change_s = 1.5;
					w.load = load / 100.0;
					w.seed = 50 + (uint64_t)i;
					o = measured(w, ABW_AUTO);
					changed += o.result.reading == ABW_CHANGED;
					valid += o.result.reading == ABW_RESOLVED && !o.result.contradicted;
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

static int late_checks; /* so many trains of the checks leave at other times */

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
		const bool late = (plan->step == ABW_CHECK_ABOVE || plan->step == ABW_CHECK_BELOW) && late_checks-- > 0;

		assert_true(sent && arrived && steps < 100);
		for (size_t i = 0; i < count; i++) {
			sent[i] = 1000000000 + i / plan->packets * plan->period_ns +
				  (uint64_t)((double)(i % plan->packets * plan->gap_ns) * (late ? 1.5 : send_stretch));
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
	late_checks = 2;
	assert_int_equal(after(on_a_link, 1), ABW_RESOLVED);
	late_checks = 3;
	assert_int_equal(after(on_a_link, 1), ABW_SENDER);
	late_checks = 0;
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
