/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The direction of each loss, from made sessions whose losses are known. */
#include "cm.h"

#include "loss_directions.h"

enum { PROBES = 60 };

/* A session in which the reflector counts: `up` and `down` end with -1, and name the lost probes. */
static void session(struct loss_probe probes[PROBES], const int *up, const int *down)
{
	int64_t count = 0;

	for (int i = 0; i < PROBES; i++)
		probes[i] = (struct loss_probe){ .number = i, .state = LOSS_ANSWERED };
	for (; *up >= 0; up++)
		probes[*up].state = LOSS_UP;
	for (; *down >= 0; down++)
		probes[*down].state = LOSS_DOWN;
	for (int i = 0; i < PROBES; i++) {
		probes[i].count = probes[i].state == LOSS_ANSWERED ? count : -1;
		count += probes[i].state != LOSS_UP;
		if (probes[i].state != LOSS_ANSWERED)
			probes[i].state = LOSS_LOST;
	}
}

static int number_of(const struct loss_probe probes[PROBES], enum loss_state state)
{
	int found = 0;

	for (int i = 0; i < PROBES; i++)
		found += probes[i].state == state;
	return found;
}

static const int none[] = { -1 }, early[] = { 5, 6, 7, -1 }, later[] = { 30, 41, 42, -1 };

TEST(each_loss_gets_its_direction)
{
	struct loss_probe probes[PROBES];
	const struct loss_evidence counts = { .reflector = LOSS_COUNTS };

	session(probes, early, later);
	assert_int_equal(loss_directions(probes, PROBES, &counts), 0);
	for (const int *at = early; *at >= 0; at++)
		assert_int_equal(probes[*at].state, LOSS_UP);
	for (const int *at = later; *at >= 0; at++)
		assert_int_equal(probes[*at].state, LOSS_DOWN);
	assert_int_equal(number_of(probes, LOSS_ANSWERED), PROBES - 6);
}

/* The last answer has nothing behind it, so only the session knows the direction of the losses there. */
TEST(the_last_losses_need_the_session)
{
	static const int last[] = { 57, 58, 59, -1 };
	struct loss_probe probes[PROBES];
	struct loss_evidence e = { .reflector = LOSS_COUNTS };

	session(probes, last, later);
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 3);
	assert_int_equal(number_of(probes, LOSS_DOWN), 3);
	e.split = true;
	e.up = e.down = 3;
	session(probes, last, later);
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_UP), 3);
	e.unknown = 1; /* the session does not know either */
	session(probes, last, later);
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 3);
}

TEST(losses_in_both_directions_between_two_answers_stay_unknown)
{
	static const int both[] = { 20, -1 }, other[] = { 21, -1 };
	struct loss_probe probes[PROBES];
	const struct loss_evidence counts = { .reflector = LOSS_COUNTS };

	session(probes, both, other);
	assert_int_equal(loss_directions(probes, PROBES, &counts), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 2);
}

/* A missing count may be that of a copy of the probe: it is no evidence of a loss down. */
TEST(copies_take_the_evidence_of_losses_down)
{
	struct loss_probe probes[PROBES];
	const struct loss_evidence copied = { .reflector = LOSS_COUNTS, .copied_up = true };

	session(probes, early, later);
	assert_int_equal(loss_directions(probes, PROBES, &copied), 0);
	assert_int_equal(number_of(probes, LOSS_UP), 3);
	assert_int_equal(number_of(probes, LOSS_LOST), 3);
}

/* Near a probe that was overtaken a count may be that of another probe. */
TEST(overtaken_probes_leave_their_surroundings_unknown)
{
	struct loss_probe probes[PROBES];
	const struct loss_evidence counts = { .reflector = LOSS_COUNTS };
	int64_t count;

	session(probes, early, none);
	count = probes[10].count;
	probes[10].count = probes[11].count;
	probes[11].count = count;
	assert_int_equal(loss_directions(probes, PROBES, &counts), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 3);
}

/* A stateless reflector copies the number of the probe: only a count that differs shows that it counts. */
TEST(a_reflector_that_copies_the_number_gives_no_direction)
{
	struct loss_probe probes[PROBES];
	struct loss_evidence e = { .reflector = LOSS_MAY_COUNT };

	session(probes, none, early); /* without losses up the count is the number */
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 3);
	session(probes, early, later);
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_UP), 3);
	e.reflector = LOSS_COUNTS_NOT;
	session(probes, early, later);
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 6);
}

/* More losses of a direction than the session reported are withdrawn. */
TEST(a_contradiction_is_withdrawn)
{
	struct loss_probe probes[PROBES];
	const struct loss_evidence e = {
		.reflector = LOSS_COUNTS, .split = true, .withdraw = true, .up = 2, .down = 3, .unknown = 1
	};

	session(probes, early, later);
	assert_int_equal(loss_directions(probes, PROBES, &e), 0);
	assert_int_equal(number_of(probes, LOSS_LOST), 3);
	assert_int_equal(number_of(probes, LOSS_DOWN), 3);
}

/* Unsent and late probes are no losses; an empty session has none. */
TEST(other_states_stay)
{
	struct loss_probe probes[PROBES];
	const struct loss_evidence counts = { .reflector = LOSS_COUNTS };

	session(probes, early, none);
	probes[40].state = LOSS_TOO_LATE;
	probes[0].state = LOSS_FAILED;
	probes[0].count = -1;
	assert_int_equal(loss_directions(probes, PROBES, &counts), 0);
	assert_int_equal(probes[40].state, LOSS_TOO_LATE);
	assert_int_equal(probes[0].state, LOSS_FAILED);
	assert_int_equal(loss_directions(probes, 0, &counts), 0);
}
