/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rates and ends of flows, from made samples whose rates are known. */
#include "cm.h"

#include "flow_result.h"

#define S 1000000000ULL
#define MS 1000000ULL
#define START (1000 * S)

static const struct flow_plan PLAN = { .start_ns = START, .sample_ns = 200 * MS, .for_ns = 10 * S },
			      SLOW = { .start_ns = START, .sample_ns = S, .for_ns = 5 * S };

static struct flow_sample sample_at(uint64_t time_ns, uint64_t bytes, uint8_t kind)
{
	return (struct flow_sample){ .time_ns = time_ns, .bytes = bytes, .kind = kind };
}

/* Samples each 200 ms of 125,000 bytes a second (1 Mbit/s), at both ends. */
static void run_for(struct flow_record *record, const struct flow_spec *spec, uint64_t span_ns)
{
	for (uint64_t at = 0; at <= span_ns; at += 200 * MS) {
		const struct flow_sample s = sample_at(START + spec->start_ns + at, at / 1000 / 8, FLOW_BYTES);

		flow_record_sample(record, spec, false, &s);
		flow_record_sample(record, spec, true, &s);
	}
}

TEST(the_rate_is_of_what_the_receiver_read)
{
	const struct flow_spec spec = { .down = true, .start_ns = 500 * MS };
	const uint64_t end_ns = START + spec.start_ns + 10 * S;
	struct flow_record record = { 0 };
	struct flow_result r;

	run_for(&record, &spec, 10 * S);
	flow_record_end(&record, false,
			&(struct flow_end){ .reason = FLOW_CLOSED, .time_ns = end_ns, .bytes = 1250000 });
	flow_record_end(&record, true,
			&(struct flow_end){ .reason = FLOW_PLANNED, .time_ns = end_ns, .bytes = 1300000 });
	flow_result(&r, &spec, &record, &PLAN);
	assert_true(r.receiver == &record.local && r.sender == &record.remote && r.decider == r.sender && r.as_planned);
	assert_true(r.bytes == 1250000 && r.rate_bps == 1000000 && r.duration_ns == 10 * S && r.lasted_ns == 10 * S);
	assert_true(r.received_known && r.received_bytes == 1250000 && r.acked_known && r.acked_bytes == 1300000);
	assert_true(r.samples == 102 && r.missing_samples == 0 && r.start_ns == START + 500 * MS);
}

TEST(without_its_receiver_a_flow_counts_by_its_sender)
{
	const struct flow_spec spec = { 0 };
	struct flow_record record = { 0 };
	const struct flow_sample s = sample_at(START + 2 * S, 250000, FLOW_TCP);
	struct flow_result r;

	flow_record_sample(&record, &spec, false, &s);
	flow_result(&r, &spec, &record, &PLAN);
	assert_true(r.bytes == 250000 && r.rate_bps == 1000000 && !r.received_known && r.acked_known && !r.as_planned);
	assert_true(r.decider == r.receiver); /* the sender's end is not known */
}

TEST(samples_that_are_missing_are_counted)
{
	const struct flow_spec spec = { 0 };
	struct flow_record record = { 0 };
	struct flow_result r;

	for (uint64_t at = 0; at <= 10 * S; at += 400 * MS) { /* every second one */
		const struct flow_sample s = sample_at(START + at, at, FLOW_BYTES);

		flow_record_sample(&record, &spec, true, &s);
	}
	flow_result(&r, &spec, &record, &PLAN);
	assert_true(r.samples == 26 && r.missing_samples == 24);
}

/* It takes no samples meanwhile but the last one: the wait is as long as the queue needs. */
TEST(a_receiver_that_waits_for_late_packets_misses_no_sample)
{
	const struct flow_spec spec = { .udp = true };
	const struct flow_sample last = sample_at(START + 12 * S, 1, FLOW_UDP);
	struct flow_record record = { 0 };
	struct flow_result r;

	run_for(&record, &spec, 10 * S);
	flow_record_sample(&record, &spec, true, &last);
	flow_record_end(&record, false, &(struct flow_end){ .reason = FLOW_PLANNED, .time_ns = START + 10 * S });
	flow_record_end(&record, true, &(struct flow_end){ .reason = FLOW_PLANNED, .time_ns = START + 12 * S });
	flow_result(&r, &spec, &record, &PLAN);
	assert_int_equal(r.missing_samples, 0);
}

TEST(a_flow_without_any_report)
{
	const struct flow_spec spec = { .down = true };
	const struct flow_record record = { 0 };
	struct flow_result r;

	flow_result(&r, &spec, &record, &PLAN);
	assert_true(!r.bytes && !r.rate_bps && !r.duration_ns && !r.lasted_ns && !r.samples && !r.missing_samples &&
		    !r.as_planned);
	assert_true(!r.received_known && !r.acked_known);
}

/* A TCP sender's values count wherever it is, of a UDP flow the receiver's alone. */
TEST(values_are_those_of_the_end_that_has_them)
{
	const struct flow_spec tcp = { 0 }, udp = { .udp = true };
	struct flow_record record = { 0 };
	struct flow_sample s = sample_at(START, 1, FLOW_TCP);

	assert_true(flow_value(&record, FLOW_RETRANSMITS) == UINT64_MAX);
	s.values[FLOW_RETRANSMITS] = 7;
	flow_record_sample(&record, &tcp, false, &s);
	assert_true(flow_value(&record, FLOW_RETRANSMITS) == 7);
	record = (struct flow_record){ 0 };
	s = sample_at(START, 1, FLOW_UDP);
	s.values[FLOW_UDP_LOST] = 3;
	flow_record_sample(&record, &udp, false, &s); /* the sender */
	assert_true(flow_value(&record, FLOW_UDP_LOST) == UINT64_MAX);
	flow_record_sample(&record, &udp, true, &s);
	assert_true(flow_value(&record, FLOW_UDP_LOST) == UINT64_MAX); /* the last packets may be lost, too */
	record.local.ended = record.remote.ended = true;
	assert_true(flow_value(&record, FLOW_UDP_LOST) == 3);
}

/* The same with round trips of `rtt_us`, and with 50 ms in the first `clear` samples. */
static bool limited_with(uint64_t unacked, uint64_t cwnd, uint64_t thousandths, uint64_t window, int first,
			 uint64_t rtt_us, int clear)
{
	const struct flow_spec spec = { 0 };
	struct flow_record record = { 0 };
	struct flow_result r;

	for (int i = 0; i < 10; i++) {
		const uint64_t bytes = (uint64_t)(i + 1) * 4 * (20 * 1448) * thousandths / 1000;
		struct flow_sample s = sample_at(START + (uint64_t)(i + 1) * 200 * MS, bytes, FLOW_TCP);

		s.values[FLOW_UNACKED] = i < first ? 1 : unacked;
		s.values[FLOW_CWND] = cwnd;
		s.values[FLOW_MSS] = 1448;
		s.values[FLOW_RTT_US] = i < clear ? 50000 : rtt_us;
		s.values[FLOW_MIN_RTT_US] = 50000;
		s.values[FLOW_RCV_WINDOW] = window;
		flow_record_sample(&record, &spec, false, &s);
	}
	flow_result(&r, &spec, &record, &PLAN);
	return r.receiver_limited;
}

/* The window is full from sample `first` of ten on, and so many thousandths of it arrive in a round trip. */
static bool limited(uint64_t unacked, uint64_t cwnd, uint64_t thousandths, uint64_t window, int first)
{
	return limited_with(unacked, cwnd, thousandths, window, first, 50400, 0);
}

TEST(a_sender_without_unacknowledged_data_limits_a_flow)
{
	const uint32_t thousandths[] = { 0, 100, 101, 1000, UINT32_MAX };
	const struct flow_spec tcp = { 0 }, udp = { .udp = true };

	for (int i = 0; i < 5; i++) {
		struct flow_record record = { .local = { .samples = 9, .ended = true } };
		struct flow_result r;

		record.local.end = (struct flow_end){ .time_ns = START + 2 * S, .idle = thousandths[i] };
		flow_result(&r, &tcp, &record, &PLAN);
		assert_int_equal(r.sender_idle, i == 2 || i == 3);
		record.local.samples = 10;
		flow_result(&r, &tcp, &record, &PLAN);
		assert_false(r.sender_idle);
		record.local.samples = 9;
		flow_result(&r, &udp, &record, &PLAN);
		assert_false(r.sender_idle);
	}
}

TEST(a_full_window_of_the_receiver_limits_a_flow_through_an_empty_path)
{
	const uint64_t window = 20 * 1448;

	assert_true(limited(20, 60, 1000, window, 0));
	assert_true(limited(20, 60, 960, window, 3));
	assert_true(limited(20, 60, 1000, window + 1447, 0)); /* no room for a whole segment */
	assert_false(limited(18, 60, 1000, window, 0));       /* never full */
	assert_false(limited(20, 60, 1000, window, 6));       /* less than half of the time */
	assert_false(limited(20, 20, 1000, window, 0));       /* the congestion window is full, too */
	assert_false(limited(20, 60, 900, window, 0));        /* a queue in the path, or losses */
	assert_false(limited(20, 60, 1000, UINT64_MAX, 0));   /* Linux before 5.4 */
}

/* 20 segments: 3 % of the round trip is 0.6 of a segment. 1000 segments: 30 of them. */
TEST(a_window_that_keeps_a_queue_in_the_path_does_not_limit_a_flow)
{
	const uint64_t small = 20 * 1448, large = 1000 * 1448;

	assert_true(limited_with(20, 60, 1000, small, 0, 53750, 0)); /* acknowledgements of two segments */
	assert_false(limited_with(20, 60, 1000, small, 0, 53800, 0));
	assert_true(limited_with(1000, 2000, 50000, large, 0, 50750, 0));
	assert_false(limited_with(1000, 2000, 50000, large, 0, 51500, 0)); /* 1.03 times what the path holds */
	assert_false(limited_with(1000, 2000, 50000, large, 0, 51500, 2)); /* the window becomes full */
	assert_true(limited_with(1000, 2000, 50000, large, 0, 51500, 4));  /* other traffic for a part of the time */
	assert_false(limited_with(1000, 2000, 50000, large, 0, UINT64_MAX, 0));
}

#ifndef KTRXER_SMALL
/* Two flows, of which the first has all its data sent in `of_ten` of ten samples. True: its send buffer limits it. */
static bool buffer_limited(int of_ten, uint64_t rtt_us, uint64_t delivery_bps, uint64_t window)
{
	const struct flow_spec specs[2] = { 0 };
	struct flow_record records[2] = { 0 };
	struct flow_result results[2];

	for (int i = 0; i < 2; i++) {
		for (int n = 1; n <= 10; n++) {
			const uint64_t bytes = 9000000 / 10 * (uint64_t)n; /* 36 Mbit/s, so 72 together */
			struct flow_sample s = sample_at(START + (uint64_t)n * 200 * MS, bytes, FLOW_TCP);

			s.values[FLOW_UNACKED] = 20;
			s.values[FLOW_CWND] = 60;
			s.values[FLOW_MSS] = 1448;
			s.values[FLOW_RTT_US] = rtt_us;
			s.values[FLOW_MIN_RTT_US] = 48000;
			s.values[FLOW_RCV_WINDOW] = window;
			s.values[FLOW_DELIVERY_BPS] = delivery_bps;
			s.values[FLOW_NOTSENT] = i || n > of_ten ? 1448 : 0;
			flow_record_sample(&records[i], &specs[i], false, &s);
		}
		flow_result(&results[i], &specs[i], &records[i], &PLAN);
	}
	flow_find_buffer_limits(true, 2, specs, records, results);
	assert_false(results[0].sender_limited);
	flow_find_buffer_limits(false, 2, specs, records, results);
	assert_false(results[1].sender_limited);
	return results[0].sender_limited;
}

TEST(a_send_buffer_limits_a_flow_where_the_path_delivers_more)
{
	const uint64_t window = 100 * 1448, full = 80000000, more = 82000000;

	assert_true(buffer_limited(10, 90000, more, window));
	assert_true(buffer_limited(10, 51000, full, window));
	assert_true(buffer_limited(5, 51000, full, window));
	assert_false(buffer_limited(10, 90000, full, window));       /* the path is full */
	assert_false(buffer_limited(10, 90000, UINT64_MAX, window)); /* Linux before 4.9 */
	assert_false(buffer_limited(4, 90000, more, window));        /* too few samples */
	assert_false(buffer_limited(10, 51000, more, 21 * 1448));    /* the receiver's window is full */
	assert_false(buffer_limited(10, 51000, more, UINT64_MAX));   /* Linux before 5.4: not known */
}
#endif

/* Two flows up, the second one 5 s later; one down that does not count there. */
TEST(a_direction_is_from_the_first_start_to_the_last_end)
{
	const struct flow_spec specs[3] = { { .udp = true },
					    { .udp = true, .start_ns = 5 * S },
					    { .udp = true, .down = true } };
	struct flow_record records[3] = { 0 };
	struct flow_result results[3];
	struct flow_total total;

	for (int i = 0; i < 3; i++) {
		struct flow_sample s = sample_at(START + specs[i].start_ns + 5 * S, 0, FLOW_UDP);

		s.values[FLOW_UDP_LOST] = 2;
		flow_record_sample(&records[i], &specs[i], !specs[i].down, &s);
		flow_record_end(&records[i], !specs[i].down,
				&(struct flow_end){
					.reason = FLOW_PLANNED, .time_ns = s.time_ns, .bytes = i ? 1250000 : 625000 });
		flow_record_end(&records[i], specs[i].down,
				&(struct flow_end){ .reason = FLOW_PLANNED, .time_ns = s.time_ns, .packets = 100 });
		flow_result(&results[i], &specs[i], &records[i], &SLOW);
	}
	flow_total(&total, false, 3, specs, records, results);
	assert_true(total.flows == 2 && total.bytes == 1875000 && total.rate_bps == 1500000); /* over 10 s */
	assert_true(total.slowest_bps == 1000000 && total.fastest_bps == 2000000 && total.lost == 4 &&
		    total.sent == 200);
	flow_total(&total, true, 3, specs, records, results);
	assert_true(total.flows == 1 && total.rate_bps == 2000000 && total.lost == 2);
}
