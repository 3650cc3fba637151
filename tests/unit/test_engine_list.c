/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The engines of this build, by name and as they are listed. */
#include "cm.h"

#include <ktrxer.h>

#include <string.h>

enum { ENGINES_MOST = 16 };

TEST(those_that_need_a_device_say_so)
{
	struct ktx_engine_info engines[ENGINES_MOST];
	const int n = ktx_engines(engines, ENGINES_MOST, NULL);
	int free_of_it = 0;

	assert_in_range(n, 5, ENGINES_MOST);
	for (int i = 0; i < n; i++) {
		const bool asks = strncmp(engines[i].reason, "needs a device", 14) == 0;

		if (engines[i].features & KTX_CAN_HOST_STACK)
			assert_false(asks);
		assert_int_equal(ktx_engine_by_stack(engines[i].name, false),
				 (engines[i].features & KTX_CAN_HOST_STACK) != 0);
		assert_int_equal(ktx_engine_by_stack(engines[i].name, true),
				 (engines[i].features & KTX_CAN_HOST_STACK) != 0);
		free_of_it += !asks;
	}
	assert_in_range(free_of_it, 2, n); /* udp and raw; and engines that this build leaves out */
	assert_true(ktx_engine_by_stack("udp", false));
	assert_false(ktx_engine_by_stack("packet", true));
	assert_false(ktx_engine_by_stack("no such engine", true));
	/* The choice is free: as the path needs it. */
	for (int i = 0; i < 3; i++) {
		const char *const free_choice[] = { "auto", "", NULL };

		assert_true(ktx_engine_by_stack(free_choice[i], true));
		assert_false(ktx_engine_by_stack(free_choice[i], false));
	}
}
