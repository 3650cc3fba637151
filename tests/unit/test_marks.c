/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The marks of packets, sent against received. */
#include "marks.h"

#include "cm.h"

enum { NOT = 0, ECT1 = 1, ECT0 = 2, CE = 3, EF = 46 << 2, CS1 = 8 << 2 };

static struct marks_changed compare(uint8_t sent, const uint8_t *tos, size_t count)
{
	struct marks_changed c;
	struct marks m = { 0 };

	for (size_t i = 0; i < count; i++)
		marks_count(&m, tos[i]);
	marks_compare(&c, &m, sent);
	assert_int_equal(c.received, count);
	return c;
}

#define COMPARE(sent, ...) compare(sent, (const uint8_t[]){ __VA_ARGS__ }, sizeof(const uint8_t[]){ __VA_ARGS__ })

TEST(a_path_that_keeps_marks_or_sets_ce_changes_nothing)
{
	struct marks_changed c = COMPARE(NOT, 0, 0);

	assert_true(!c.dscp && !c.ecn);
	c = COMPARE(EF | ECT0, EF | ECT0, EF | CE, EF | CE);
	assert_true(!c.dscp && !c.ecn);
	c = COMPARE(ECT1, CE, ECT1);
	assert_true(!c.dscp && !c.ecn);
}

TEST(changes_of_each_field_are_counted)
{
	struct marks_changed c = COMPARE(EF | ECT0, CS1 | ECT0, CS1, CS1, CE, EF | ECT0);

	assert_true(c.dscp == 4 && c.new_dscp == 8 && c.ecn == 2 && c.new_ecn == NOT);
	c = COMPARE(ECT0, ECT1, ECT1, NOT);
	assert_true(!c.dscp && c.ecn == 3 && c.new_ecn == ECT1);
	/* A router may set CE on packets that are capable of ECN only. */
	c = COMPARE(NOT, CE, NOT);
	assert_true(c.ecn == 1 && c.new_ecn == CE);
}

TEST(kinds_are_bounded_and_no_packet_is_left_out)
{
	struct marks_changed c;
	struct marks m = { 0 }, sum = { 0 };

	for (int tos = 0; tos < 256; tos++)
		marks_count(&m, (uint8_t)tos);
	assert_int_equal(m.other, 256 - MARKS_KINDS);
	marks_add(&sum, &m);
	marks_add(&sum, &m);
	assert_true(sum.packets[0] == 2 && sum.other == 2 * m.other);
	marks_compare(&c, &sum, 0);
	assert_int_equal(c.received, 512);
}
