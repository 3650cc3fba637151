/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Times without a byte, from made counts of both ends; and flows that have none by themselves. */
#include "cm.h"
#include "flow_series.h"

#include <stdlib.h>
#include <string.h>

#define S 1000000000LL
#define MS 1000000LL
enum { SAMPLES = 51, SEGMENT = 1448 };

/* Both ends each 200 ms for 10 s. */
struct made {
	struct byte_count arrived[SAMPLES];
	struct byte_sender sender[SAMPLES];
	size_t count;
	struct byte_plan plan;
	struct byte_outage found[BYTE_OUTAGES_MOST];
};

/* 1 Mbit/s, without anything from `from` to `to` milliseconds. */
static void make(struct made *m, bool udp, int64_t from, int64_t to)
{
	int64_t packets = 0;

	memset(m, 0, sizeof *m);
	m->plan = (struct byte_plan){
		.udp = udp, .sample_ns = 200 * MS, .rtt_ns = 20 * MS, .packet_bytes = udp ? 1200 : 1500
	};
	for (int64_t at = 0; m->count < SAMPLES; at += 200) {
		packets += at && (at <= from || at > to) ? 20 : 0;
		m->arrived[m->count] = (struct byte_count){ at * MS, packets * (udp ? 1200 : SEGMENT) };
		m->sender[m->count++] = (struct byte_sender){
			.time_ns = at * MS, .moved = udp ? at / 10 * 1200 : packets, .rtt_ns = 20 * MS, .pending = 1
		};
	}
}

static int find(struct made *m)
{
	const struct byte_flows one = {
		.arrived = m->arrived, .arrived_count = m->count, .sender = m->sender, .sender_count = m->count
	};

	return byte_outages(&one, 1, &m->plan, m->found);
}

static void dead_is(const struct byte_outage *o, int64_t from, int64_t to, int64_t most, bool to_end)
{
	assert_int_equal(o->from_ns, from * MS);
	assert_int_equal(o->to_ns, to * MS);
	assert_int_equal(o->at_least_ns, (to - from) * MS);
	assert_int_equal(o->at_most_ns, most * MS);
	assert_true(o->to_end == to_end);
}

TEST(a_stall_has_bounds)
{
	for (int udp = 0; udp < 2; udp++) {
		struct made m;

		make(&m, udp, 4000, 6000);
		assert_int_equal(find(&m), 1);
		dead_is(&m.found[0], 4000, 6000, 2400, false);
		make(&m, udp, 8000, 10000);
		assert_int_equal(find(&m), 1);
		dead_is(&m.found[0], 8000, 10000, 2200, true);
		make(&m, udp, 0, 1000);
		assert_int_equal(find(&m), 1);
		dead_is(&m.found[0], 0, 1000, 1200, false);
		make(&m, udp, 20000, 30000);
		assert_int_equal(find(&m), 0);
	}
}

TEST(without_the_sender_a_stall_is_found)
{
	struct made m;

	for (int udp = 0; udp < 2; udp++) {
		make(&m, udp, 4000, 6000);
		assert_int_equal(byte_outages(&(struct byte_flows){ .arrived = m.arrived, .arrived_count = m.count }, 1,
					      &m.plan, m.found),
				 1);
	}
	assert_int_equal(byte_outages(NULL, 0, &m.plan, m.found), 0);
	assert_int_equal(byte_outages(&(struct byte_flows){ 0 }, 1, &m.plan, m.found), 0);
}

TEST(a_sender_without_data_makes_no_outage)
{
	struct made m;

	make(&m, false, 4000, 6000);
	for (size_t i = 0; i < m.count; i++)
		m.sender[i].pending = m.sender[i].time_ns <= 4000 * MS || m.sender[i].time_ns > 6000 * MS;
	m.sender[20].pending = 0;
	assert_int_equal(find(&m), 0);
	make(&m, true, 4000, 6000); /* it sent nothing, as in a pause of a call */
	for (size_t i = 0; i < m.count; i++)
		m.sender[i].moved = m.arrived[i].bytes;
	assert_int_equal(find(&m), 0);
}

/* Neither end says anything of this time. */
TEST(a_stopped_process_makes_no_outage)
{
	struct made m;

	make(&m, false, 4000, 6000);
	memmove(&m.sender[20], &m.sender[31], 20 * sizeof *m.sender);
	assert_int_equal(byte_outages(&(struct byte_flows){ m.arrived, m.count, m.sender, m.count - 11 }, 1, &m.plan,
				      m.found),
			 0);
	make(&m, true, 4000, 6000);
	memmove(&m.arrived[21], &m.arrived[31], 20 * sizeof *m.arrived);
	assert_int_equal(byte_outages(&(struct byte_flows){ m.arrived, m.count - 10, m.sender, m.count }, 1, &m.plan,
				      m.found),
			 0);
}

/* The receiver reads nothing behind a lost segment, and the sender's kernel counts what arrives. */
TEST(bytes_behind_a_lost_segment_have_arrived)
{
	struct made m;

	make(&m, false, 4000, 6000);
	for (size_t i = 0; i < m.count; i++)
		m.sender[i].moved = (int64_t)i * 20;
	assert_int_equal(find(&m), 0);
}

TEST(round_trips_and_time_outs_are_no_outage)
{
	struct made m;

	make(&m, false, 4000, 5000);
	assert_int_equal(find(&m), 1);
	for (size_t i = 0; i < m.count; i++)
		m.sender[i].rtt_ns = 600 * MS;
	assert_int_equal(find(&m), 0);
	make(&m, false, 4000, 4200);
	assert_int_equal(find(&m), 0);
}

/* Three time-outs one after the other are no chance on a path that loses 1 % of the segments, and are one at 30 %. */
TEST(losses_of_the_same_segment_are_no_outage)
{
	struct made m;

	for (int lost = 0; lost < 2; lost++) {
		make(&m, false, 4000, 6000);
		for (size_t i = 0; i < m.count; i++)
			m.sender[i].again = m.sender[i].moved * (lost ? 3 : 1) / (lost ? 7 : 99);
		assert_int_equal(find(&m), !lost);
	}
}

TEST(slow_flows_have_time_between_their_packets)
{
	struct made m;

	/* Each 800 ms a packet. */
	for (int udp = 0; udp < 2; udp++) {
		make(&m, udp, 0, 0);
		for (size_t i = 0; i < m.count; i++) {
			m.arrived[i].bytes = (int64_t)(i / 4) * 1200;
			m.sender[i].moved = udp ? m.arrived[i].bytes : (int64_t)(i / 4);
		}
		assert_int_equal(find(&m), 0);
	}
}

/* 19 of 20 packets are lost all the time, and 100 in a row by chance. */
TEST(losses_by_chance_are_no_outage)
{
	struct made m;

	make(&m, true, 0, 0);
	for (size_t i = 0; i < m.count; i++)
		m.arrived[i].bytes = (int64_t)(i < 21 ? i : i < 26 ? 20 : i - 5) * 1200;
	assert_int_equal(find(&m), 0);
}

TEST(a_flow_that_goes_on_ends_the_outage_of_the_others)
{
	struct made a, b;

	make(&a, false, 4000, 8000);
	make(&b, false, 5000, 9000);
	{
		const struct byte_flows both[] = { { a.arrived, a.count, a.sender, a.count },
						   { b.arrived, b.count, b.sender, b.count } };

		assert_int_equal(byte_outages(both, 2, &a.plan, a.found), 1);
		dead_is(&a.found[0], 5000, 8000, 3400, false);
	}
	make(&b, false, 20000, 20000);
	{
		const struct byte_flows both[] = { { a.arrived, a.count, a.sender, a.count },
						   { b.arrived, b.count, b.sender, b.count } };

		assert_int_equal(byte_outages(both, 2, &a.plan, a.found), 0);
	}
}

TEST(the_longest_ones_are_kept)
{
	enum { MANY = 40, EACH = 10 };
	struct byte_count *counts = calloc(MANY * EACH + 1, sizeof *counts);
	struct byte_outage found[BYTE_OUTAGES_MOST];
	const struct byte_plan plan = { .sample_ns = 200 * MS, .packet_bytes = 1500 };
	int64_t bytes = 0;
	int made;

	assert_non_null(counts);
	for (int i = 1; i <= MANY * EACH; i++) {
		bytes += i % EACH < 3 ? 1000000 : 0;
		counts[i] = (struct byte_count){ i * 200 * MS, bytes };
	}
	made = byte_outages(&(struct byte_flows){ .arrived = counts, .arrived_count = MANY * EACH + 1 }, 1, &plan,
			    found);
	assert_int_equal(made, BYTE_OUTAGES_MOST);
	for (int i = 1; i < made; i++)
		assert_true(found[i].from_ns > found[i - 1].from_ns);
	free(counts);
}

static const struct flow_plan PLAN = {
	.start_ns = 1000 * S, .sample_ns = 200 * MS, .for_ns = 10 * S, .rtt_ns = 20 * MS
};

/*
 * Samples of `flows` flows down of 4 Mbit/s each until `seconds`; none, or only flow `still` not, has a byte from
 * `from` to `to` milliseconds.
 */
enum { ALL = 4 };
static void run_with(struct flow_findings *f, uint32_t flows, int64_t seconds, int64_t from, int64_t to, uint32_t still)
{
	struct flow_spec specs[4] = { { .down = true }, { .down = true }, { .down = true }, { .down = true } };
	struct flow_record records[4] = { 0 };
	struct flow_result results[4];
	struct flow_plan plan = PLAN;
	struct flow_ends ends = { 0 }, each[4] = { 0 };
	int64_t sums[4] = { 0 };

	plan.for_ns = (uint64_t)(seconds * S);
	flow_series_begin(&ends, plan.start_ns, plan.sample_ns, 1);
	for (uint32_t i = 0; i < flows; i++)
		flow_series_begin(&each[i], plan.start_ns, plan.sample_ns, flows);
	for (int64_t at = 200; at <= 1000 * seconds; at += 200) {
		for (uint32_t i = 0; i < flows; i++) {
			const bool moves = at <= from || at > to || (still != ALL && still != i);
			const int64_t bytes = sums[i] += moves ? 100000 : 0;
			struct flow_sample s = { .time_ns = (uint64_t)(1000 * S + at * MS + i * 1000),
						 .bytes = (uint64_t)bytes };

			flow_series_add(&ends, &specs[i], &records[i], false, &s);
			flow_series_add(&each[i], &specs[i], &records[i], false, &s);
			flow_record_sample(&records[i], &specs[i], false, &s);
			s.kind = FLOW_TCP;
			s.values[FLOW_DELIVERED] = (uint64_t)bytes / SEGMENT;
			s.values[FLOW_UNACKED] = 10;
			s.values[FLOW_RTT_US] = 20000;
			flow_series_add(&ends, &specs[i], &records[i], true, &s);
			flow_series_add(&each[i], &specs[i], &records[i], true, &s);
			flow_record_sample(&records[i], &specs[i], true, &s);
		}
	}
	for (uint32_t i = 0; i < flows; i++) {
		const struct flow_end end = { .reason = FLOW_PLANNED,
					      .time_ns = plan.start_ns + plan.for_ns,
					      .bytes = (uint64_t)sums[i] };

		flow_record_end(&records[i], false, &end);
		flow_record_end(&records[i], true, &end);
		flow_result(&results[i], &specs[i], &records[i], &plan);
	}
	assert_int_equal(flow_find(f, &ends, true, flows, specs, results, &plan), 0);
	assert_int_equal(flow_find_stalls(f, each, true, flows, specs, results, &plan), 0);
	flow_series_free(&ends);
	for (uint32_t i = 0; i < flows; i++)
		flow_series_free(&each[i]);
}

static void run(struct flow_findings *f, uint32_t flows, int64_t seconds, int64_t from, int64_t to)
{
	run_with(f, flows, seconds, from, to, ALL);
}

TEST(one_flow_of_four_stands_still)
{
	struct flow_findings f;

	run_with(&f, 4, 12, 4000, 8000, 2);
	assert_int_equal(f.outage_count, 0);
	assert_int_equal(f.stall_count, 1);
	assert_int_equal(f.stalls[0].flow, 2);
	assert_in_range(f.stalls[0].outage.at_least_ns, 4000 * MS - 4000, 4000 * MS + 4000);
	assert_in_range(f.stalls[0].outage.at_most_ns, 4400 * MS - 4000, 4400 * MS + 4000);
	run_with(&f, 4, 12, 8000, 12000, 0);
	assert_int_equal(f.stall_count, 1);
	assert_true(f.stalls[0].outage.to_end);
	run_with(&f, 4, 12, 4000, 4800, 2); /* as after some losses in a row */
	assert_int_equal(f.stall_count, 0);
	/* The grid of a flow of several is coarser sooner. */
	run_with(&f, 4, FLOW_SERIES_TICKS / 10, 400000, 460000, 3);
	assert_int_equal(f.stall_count, 1);
	assert_in_range(f.stalls[0].outage.at_least_ns, 57 * S, 60 * S);
}

/* All together: the direction has an outage, and its flows have none of their own. */
TEST(an_outage_of_the_direction_is_no_stall)
{
	struct flow_findings f;

	for (uint32_t flows = 1; flows <= 4; flows++) {
		run(&f, flows, 12, 4000, 8000);
		assert_int_equal(f.outage_count, 1);
		assert_int_equal(f.stall_count, 0);
	}
}

TEST(flows_of_one_direction_are_one_series)
{
	for (uint32_t flows = 1; flows <= 4; flows++) {
		struct flow_findings f;

		run(&f, flows, 12, 4000, 8000);
		assert_int_equal(f.outage_count, 1);
		assert_in_range(f.outages[0].at_least_ns, 4000 * MS - 4000, 4000 * MS + 4000);
		assert_in_range(f.outages[0].at_most_ns, 4400 * MS - 4000, 4400 * MS + 4000);
		assert_int_equal(f.level_count, 3);
		assert_in_range(f.levels[0].median, 3.95e6 * flows, 4.05e6 * flows);
		assert_in_range(f.levels[0].to_ns, 1003700 * MS, 1004400 * MS);
		assert_true(f.levels[1].median < 1000);
	}
}

/* The grid becomes coarser, and not longer. */
TEST(a_long_run_has_a_coarser_grid)
{
	struct flow_findings f;

	run(&f, 2, 4 * FLOW_SERIES_TICKS / 5 + 20, 4000000, 4060000);
	assert_int_equal(f.outage_count, 1);
	assert_in_range(f.outages[0].at_least_ns, 58 * S, 60 * S);
	assert_in_range(f.outages[0].at_most_ns, 60 * S, 63 * S);
	run(&f, 1, 4 * FLOW_SERIES_TICKS / 5 + 20, 0, 0);
	assert_int_equal(f.outage_count, 0);
	assert_int_equal(f.level_count, 0);
}
