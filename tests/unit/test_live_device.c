/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Answers of the kernel's families `nlctrl` and `netdev`, taken apart: right, cut short, and lying about its lengths.
 */
#include "cm.h"
#include "live_device.h"

#include <string.h>

enum { FAMILY_ID = 1, FAMILY_NAME = 2, IFINDEX = 1, PAD = 2, XDP_FEATURES = 3 };

struct message {
	uint8_t data[256];
	size_t length;
};

static void put(struct message *m, uint16_t type, const void *value, size_t length)
{
	const uint16_t head[2] = { (uint16_t)(4 + length), type };

	memcpy(m->data + m->length, head, sizeof head);
	memcpy(m->data + m->length + 4, value, length);
	m->length += 4 + (length + 3) / 4 * 4;
}

static struct message begin(void)
{
	return (struct message){ .data = { 1, 1 }, .length = 4 };
}

static struct bytes body(const struct message *m)
{
	return bytes_of(m->data, m->length);
}

TEST(family_is_found_among_others)
{
	struct message m = begin();
	const uint16_t id = 0x1f;

	assert_int_equal(ktrxer_live_family_of(body(&m)), 0);
	put(&m, FAMILY_NAME, "netdev", 7);
	put(&m, FAMILY_ID, &id, sizeof id);
	assert_int_equal(ktrxer_live_family_of(body(&m)), id);
}

TEST(family_of_another_size_is_none)
{
	struct message m = begin();
	const uint32_t id = 0x1f;

	put(&m, FAMILY_ID, &id, sizeof id);
	assert_int_equal(ktrxer_live_family_of(body(&m)), 0);
}

static struct message features_message(uint32_t index, uint64_t features)
{
	struct message m = begin();

	put(&m, IFINDEX, &index, sizeof index);
	put(&m, PAD, "", 0);
	put(&m, XDP_FEATURES, &features, sizeof features);
	return m;
}

TEST(features_are_the_device_s)
{
	const struct message m = features_message(7, 0x27);
	uint64_t features = 0;

	assert_true(ktrxer_live_xdp_features_of(body(&m), 7, &features));
	assert_int_equal(features, 0x27);
	assert_false(ktrxer_live_xdp_features_of(body(&m), 8, &features));
}

TEST(cut_short_anywhere_gives_nothing)
{
	const struct message m = features_message(7, 0x27);
	uint64_t features;

	for (size_t n = 0; n < m.length; n++) {
		uint8_t copy[sizeof m.data];

		memcpy(copy, m.data, sizeof copy);
		assert_false(ktrxer_live_xdp_features_of(bytes_of(copy, n), 7, &features));
		(void)ktrxer_live_family_of(bytes_of(copy, n));
	}
}

TEST(lengths_that_lie_say_nothing)
{
	uint64_t features;

	for (uint16_t lie = 0; lie < 4; lie++) {
		struct message m = features_message(7, 0x27);

		memcpy(m.data + 4, &lie, sizeof lie);
		assert_false(ktrxer_live_xdp_features_of(body(&m), 7, &features));
	}
}
