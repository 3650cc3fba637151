/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Losses by direction over simulated paths that lose, copy and reorder packets in both directions: what the session
 * reports against the fates that the simulation has dealt out.
 */
#include "cm.h"
#include "reflector.h"
#include "stamp_packet.h"
#include "stamp_session.h"

#include <stdlib.h>
#include <sys/socket.h>

#define MS 1000000ULL
#define REAL 1795000000000000000LL

enum { PROBES = 500, CLOSING = 3, ALL = PROBES + CLOSING, PACKET = 128, COPIES = 4, EVENTS = ALL * (1 + COPIES) };

struct path {
	bool copies, overtaking, limits;
	uint64_t restart_ns; /* of the reflector; 0: never */
	bool closing_lost;   /* the first closing probe is lost up */
};

struct event {
	uint64_t at_ns;
	uint32_t number;
	bool send;
	uint8_t packet[PACKET];
	size_t length;
};

struct world {
	struct path path;
	struct event requests[EVENTS], events[EVENTS];
	uint32_t request_count, event_count;
	uint32_t arrived[ALL], indices[ALL], answers[ALL];
	uint64_t seed;
};

struct truth {
	uint64_t up, down, copies_up, copies_down;
};

static uint64_t random_below(struct world *w, uint64_t n)
{
	w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w->seed >> 33) % n;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* Probes of the end leave after all others have arrived or are given up. */
static uint64_t sent_ns(uint64_t number)
{
	return 1000 * MS + number * MS + (number >= PROBES ? 300 * MS + (number - PROBES) * 20 * MS : 0);
}

/* How many packets of one arrive, and when. */
static uint32_t carry(struct world *w, uint64_t at_ns, bool measured, uint64_t arrivals[2])
{
	const uint32_t copies = measured && w->path.copies && random_below(w, 10) == 0 ? 2 : 1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < copies; i++) {
		if (measured && random_below(w, 8) == 0)
			continue;
		arrivals[n] = at_ns + 400000 + random_below(w, 1000);
		if (measured && w->path.overtaking && random_below(w, 4) == 0)
			arrivals[n] += random_below(w, 12 * MS);
		n++;
	}
	return n;
}

static void requests_make(struct world *w)
{
	for (uint32_t i = 0; i < ALL; i++) {
		const struct stamp_probe probe = { .seq = i, .time = 0xabcd000000000000ULL + i, .error = 1, .ssid = 9 };
		struct event request = { .number = i, .length = stamp_base_length(false) };
		uint64_t arrivals[2];

		stamp_probe_write(request.packet, &probe, false);
		if (w->path.limits)
			request.length += stamp_tlv_write(request.packet + request.length, STAMP_TLV_LIMITS, 16);
		w->arrived[i] = i == PROBES && w->path.closing_lost ? 0 : carry(w, sent_ns(i), i < PROBES, arrivals);
		for (uint32_t k = 0; k < w->arrived[i]; k++) {
			request.at_ns = arrivals[k];
			w->requests[w->request_count++] = request;
		}
		w->events[w->event_count++] = (struct event){ .at_ns = sent_ns(i), .number = i, .send = true };
	}
	qsort(w->requests, w->request_count, sizeof *w->requests, by_time);
}

static struct reflector *reflector_start(void)
{
	const struct reflector_options options = { .secret = 1 };
	struct reflector *reflector;

	assert_int_equal(reflector_new(&reflector, &options), 0);
	return reflector;
}

static void answers_make(struct world *w)
{
	struct reflector *reflector = reflector_start();
	bool restarted = false;

	for (uint32_t i = 0; i < w->request_count; i++) {
		struct event answer = w->requests[i];
		const struct reflector_arrival a = { .from = { .family = AF_INET, .bytes = { 10, 1 } },
						     .to = { .family = AF_INET, .bytes = { 10, 2 } },
						     .from_port = 5,
						     .to_port = 862,
						     .now_ns = answer.at_ns,
						     .received_real_ns = REAL + (int64_t)answer.at_ns };
		struct reflector_answer about;
		uint64_t arrivals[2];
		uint32_t n;

		if (w->path.restart_ns && !restarted && answer.at_ns >= w->path.restart_ns) {
			restarted = true;
			reflector_free(reflector);
			reflector = reflector_start();
		}
		assert_int_equal(reflector_answer(reflector, answer.packet, (uint32_t)answer.length,
						  (uint32_t)answer.length, &a, &about),
				 REFLECTOR_ANSWER);
		reflector_finish(reflector, answer.packet, &about, a.received_real_ns + 1000);
		n = carry(w, answer.at_ns, answer.number < PROBES, arrivals);
		w->indices[answer.number] += n != 0;
		w->answers[answer.number] += n;
		for (uint32_t k = 0; k < n; k++) {
			answer.at_ns = arrivals[k];
			w->events[w->event_count++] = answer;
		}
	}
	reflector_free(reflector);
	qsort(w->events, w->event_count, sizeof *w->events, by_time);
}

static struct truth truth_of(const struct world *w)
{
	struct truth t = { 0 };

	for (uint32_t i = 0; i < PROBES; i++) {
		t.up += !w->arrived[i];
		t.down += w->arrived[i] && !w->answers[i];
		t.copies_up += w->indices[i] ? w->indices[i] - 1 : 0;
		t.copies_down += w->answers[i] - w->indices[i];
	}
	return t;
}

static void send_one(struct stamp_session *session, const struct event *e)
{
	const struct ktx_report report = {
		.id = e->number, .status = KTX_SENT, .sent_ns = e->at_ns, .at_ns = e->at_ns, .own_queue_ns = -1
	};
	uint64_t number;

	if (e->number >= PROBES) {
		while (stamp_session_lost(session, e->at_ns, &number))
			;
		stamp_session_close(session, PROBES);
		if (!stamp_session_unsettled(session))
			return;
	}
	assert_int_equal(stamp_session_commit(session, e->number, 0xabcd000000000000ULL + e->number), 0);
	stamp_session_report(session, &report);
}

static struct stamp_session_counts measure(struct world *w)
{
	const struct stamp_session_options options = { .window = 1024, .timeout_ns = 100 * MS, .ssid = 9 };
	struct stamp_session *session;
	struct stamp_session_counts counts;

	requests_make(w);
	answers_make(w);
	assert_int_equal(stamp_session_new(&session, &options), 0);
	for (uint32_t i = 0; i < w->event_count; i++) {
		const struct event *e = &w->events[i];
		const struct stamp_arrival a = { .received_ns = e->at_ns,
						 .real_near_ns = REAL + (int64_t)e->at_ns,
						 .source = KTRXER_STAMP_KERNEL };

		if (e->send)
			send_one(session, e);
		else
			stamp_session_reply(session, e->packet, e->length, &a);
	}
	assert_false(stamp_session_unsettled(session));
	stamp_session_counts(session, &counts);
	stamp_session_free(session);
	return counts;
}

/* Each kind of path, forty times. */
TEST(no_direction_is_wrong)
{
	struct world *w = malloc(sizeof *w);
	uint64_t unknown = 0;

	assert_non_null(w);
	for (unsigned kind = 0; kind < 16; kind++) {
		for (uint64_t round = 0; round < 40; round++) {
			struct stamp_session_counts c;
			struct truth t;

			memset(w, 0, sizeof *w);
			w->path = (struct path){
				.copies = kind & 1, .overtaking = kind & 2, .limits = kind & 4, .closing_lost = kind & 8
			};
			w->seed = 100 * kind + round;
			c = measure(w);
			t = truth_of(w);
			assert_true(c.direction_known && c.stateful);
			assert_int_equal(c.sent, PROBES);
			assert_int_equal(c.restarts, 0);
			assert_int_equal(c.lost, t.up + t.down);
			assert_int_equal(c.duplicates_up, t.copies_up);
			assert_int_equal(c.duplicates_down, t.copies_down);
			assert_int_equal(c.lost_up + c.lost_down + c.lost_unknown, c.lost);
			assert_in_range(t.up, c.lost_up, c.lost_up + c.lost_unknown);
			assert_in_range(t.down, c.lost_down, c.lost_down + c.lost_unknown);
			/*
			 * The answers that are missing may be those of copies, unless the reflector counts the copies.
			 * A lost closing probe is one loss in doubt, and so is one before the first answer if the first
			 * probes overtook each other.
			 */
			if (!w->path.copies || w->path.limits)
				assert_in_range(c.lost_unknown, 0, w->path.closing_lost + w->path.overtaking);
			unknown += c.lost_unknown;
		}
	}
	assert_true(unknown > 0);
	free(w);
}

TEST(a_restart_among_copies_and_overtaking)
{
	struct world *w = malloc(sizeof *w);

	assert_non_null(w);
	for (uint64_t round = 0; round < 160; round++) {
		struct stamp_session_counts c;
		struct truth t;

		memset(w, 0, sizeof *w);
		w->path = (struct path){ .copies = round & 1,
					 .overtaking = round & 2,
					 .limits = round & 4,
					 .restart_ns = sent_ns(20 + 2 * round) };
		w->seed = round;
		c = measure(w);
		t = truth_of(w);
		assert_int_equal(c.restarts, 1);
		assert_int_equal(c.lost, t.up + t.down);
		assert_int_equal(c.lost_up + c.lost_down + c.lost_unknown, c.lost);
		assert_in_range(t.up, c.lost_up, c.lost_up + c.lost_unknown);
		assert_in_range(t.down, c.lost_down, c.lost_down + c.lost_unknown);
	}
	free(w);
}
