/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_path.h"

#include "cm.h"

#include <math.h>
#include <stdlib.h>

#define BEGINS_NS 1.2e9 /* of the measurement: cross traffic has begun by then */
#define WALK_STEP_NS 100e6

const char *const cross_names[CROSS] = { "Poisson", "Pareto on/off", "CBR" };

struct source {
	double next_ns, until_ns; /* the next packet; the end of the burst */
};

struct state {
	double rate, free_ns, tokens_ns, walk_ns;
	struct source sources[SOURCES];
	double cross_bits, room_bits, at_ns; /* that came so far; that could have passed until at_ns */
};

struct path {
	struct world *w;
	struct state links[LINKS];
	double access_ns, now_ns;
};

double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double pareto(uint64_t *seed, double mean)
{
	return mean / 3 * pow(uniform(seed), -1 / 1.5);
}

/* Bytes of the next cross packet of a source, and the time of the one after it. */
static double cross_packet(uint64_t *seed, const struct sim_link *l, struct source *s)
{
	double bytes = 1000, gap;

	if (l->cross == POISSON) {
		bytes = uniform(seed) < 0.5 ? LARGE : 64 + (LARGE - 64) * uniform(seed);
		gap = -log(uniform(seed)) * (0.5 * LARGE + 0.25 * (LARGE + 64) + FRAME) * 8e9 / l->rate / l->load;
	} else if (l->cross == CBR) {
		gap = (bytes + FRAME) * 8e9 / l->rate / l->load;
	} else {
		gap = (bytes + FRAME) * 8e9 / l->rate / l->load * SOURCES / 2;
		if (s->next_ns + gap > s->until_ns) {
			gap += pareto(seed, 20e6);
			s->until_ns = s->next_ns + gap + pareto(seed, 20e6);
		}
	}
	s->next_ns += gap;
	return bytes + FRAME;
}

/* The rate of the link at this time. */
static void advance(struct path *p, int n, double at)
{
	const struct sim_link *l = &p->w->links[n];
	struct state *s = &p->links[n];

	for (; l->walk > 0 && s->walk_ns <= at; s->walk_ns += WALK_STEP_NS)
		s->rate = fmin(fmax(s->rate * exp(l->walk * (2 * uniform(&p->w->seed) - 1)), l->rate / 4), l->rate * 4);
	if (l->then_rate > 0 && at > BEGINS_NS + l->change_s * 1e9)
		s->rate = l->then_rate;
	if (at > s->at_ns) {
		s->room_bits += s->rate * (at - s->at_ns) / 1e9;
		s->at_ns = at;
	}
}

static double serve(struct path *p, int n, double at, double bits)
{
	struct state *s = &p->links[n];
	double lasts;

	advance(p, n, at);
	lasts = bits * 1e9 / s->rate;
	if (p->w->links[n].bucket_bits <= 0)
		return s->free_ns = fmax(s->free_ns, at) + lasts;
	/* tokens_ns: when the bucket would be full again */
	s->tokens_ns = fmax(s->tokens_ns, at) + lasts;
	return s->free_ns = fmax(at, s->tokens_ns - p->w->links[n].bucket_bits * 1e9 / s->rate);
}

static double through(struct path *p, int n, double at, double bytes)
{
	const struct sim_link *l = &p->w->links[n];
	struct state *s = &p->links[n];
	const uint32_t sources = l->cross == PARETO ? SOURCES : 1;

	while (l->load > 0) {
		struct source *first = &s->sources[0];
		double came, bits;

		for (uint32_t i = 1; i < sources; i++)
			if (s->sources[i].next_ns < first->next_ns)
				first = &s->sources[i];
		came = first->next_ns;
		if (came > at)
			break;
		bits = 8 * cross_packet(&p->w->seed, l, first);
		s->cross_bits += bits;
		serve(p, n, came, bits);
	}
	return serve(p, n, at, 8 * (bytes + FRAME));
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

/* All trains of a plan; their packets pass the path in the order of their times. */
static void send_trains(struct path *path, const struct abw_plan *plan, uint64_t *sent, uint64_t *arrived)
{
	const size_t count = (size_t)plan->flows * plan->trains * plan->packets;
	struct probe *probes = calloc(count, sizeof *probes);
	struct world *w = path->w;

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
		double came = probes[i].at_ns;

		path->access_ns =
			fmax(path->access_ns, came) + 8e9 * (plan->ip_bytes + FRAME) / w->links[0].rate / w->access;
		came = path->access_ns;
		for (int n = 0; n < LINKS && w->links[n].rate > 0; n++)
			came = through(path, n, came, plan->ip_bytes);
		came += w->noise_ns * uniform(&w->seed);
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
	free(probes);
}

/* pathload's packets: a gap of 80 us, and 200 bytes at least. */
static double pathload_bytes(double rate)
{
	return 12 * 100 * fmin(fmax(rate * 80e-6 / 8, 200), LARGE);
}

/* The counts of the cross traffic until now. */
static void count(struct path *p)
{
	for (int n = 0; n < LINKS && p->w->links[n].rate > 0; n++)
		through(p, n, p->now_ns, -FRAME);
}

struct outcome measured(struct world w, enum abw_method method)
{
	const struct abw_options o = {
		.method = method, .large_bytes = LARGE, .small_bytes = SMALL, .resolution_ns = 100
	};
	const double ip = (double)LARGE / (LARGE + FRAME);
	struct path path = { .w = &w, .now_ns = BEGINS_NS };
	struct state before[LINKS];
	struct outcome out = { .truth = INFINITY, .capacity = INFINITY };
	const struct abw_plan *plan;
	struct abw abw;

	w.access = w.access > 0 ? w.access : 1;
	for (int n = 0; n < LINKS; n++) {
		path.links[n].rate = w.links[n].rate;
		path.links[n].walk_ns = BEGINS_NS;
		for (int i = 0; i < SOURCES; i++)
			path.links[n].sources[i].next_ns = 1e9 + 2e7 * uniform(&w.seed);
	}
	count(&path);
	for (int n = 0; n < LINKS; n++)
		before[n] = path.links[n];
	assert_int_equal(abw_begin(&abw, &o), 0);
	while ((plan = abw_next(&abw))) {
		const size_t packets = (size_t)plan->flows * plan->trains * plan->packets;
		uint64_t *sent = calloc(packets, sizeof *sent), *arrived = calloc(packets, sizeof *arrived);

		assert_true(sent && arrived);
		if (plan->step == ABW_FLEET)
			out.pathload_bytes += pathload_bytes(8e9 * plan->ip_bytes / (double)plan->gap_ns);
		send_trains(&path, plan, sent, arrived);
		assert_int_equal(abw_take(&abw, sent, arrived), 0);
		free(sent);
		free(arrived);
	}
	count(&path);
	out.lasted_s = (path.now_ns - BEGINS_NS) / 1e9;
	for (int n = 0; n < LINKS && w.links[n].rate > 0; n++) {
		const struct state *s = &path.links[n];
		const double free_bits = s->room_bits - before[n].room_bits - (s->cross_bits - before[n].cross_bits);

		out.truth = fmin(out.truth, fmax(free_bits / out.lasted_s, 0) * ip);
		out.capacity = fmin(out.capacity, s->rate * ip);
	}
	out.result = abw.result;
	abw_end(&abw);
	return out;
}
