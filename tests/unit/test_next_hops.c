/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The next hops in a route message of the kernel, and in messages that are cut or false. */
#include "next_hops.h"

#include "cm.h"

#include <linux/rtnetlink.h>
#include <string.h>

struct message {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr priority;
	uint32_t value;
	struct rtattr multipath;
	struct rtnexthop hops[3];
};

static struct message three_hops(void)
{
	struct message m = { .head = { .nlmsg_len = sizeof m, .nlmsg_type = RTM_NEWROUTE },
			     .priority = { .rta_len = 8, .rta_type = RTA_PRIORITY },
			     .multipath = { .rta_len = sizeof m.multipath + sizeof m.hops,
					    .rta_type = RTA_MULTIPATH } };

	for (int i = 0; i < 3; i++)
		m.hops[i] = (struct rtnexthop){ .rtnh_len = sizeof m.hops[i], .rtnh_ifindex = 7 + i % 2 };
	return m;
}

TEST(next_hops_are_counted_by_device)
{
	struct message m = three_hops();

	assert_int_equal(next_hops_read(&m, sizeof m, 0), 3);
	assert_int_equal(next_hops_read(&m, sizeof m, 7), 2);
	assert_int_equal(next_hops_read(&m, sizeof m, 8), 1);
	assert_int_equal(next_hops_read(&m, sizeof m, 9), 1);
	m.multipath.rta_type = RTA_GATEWAY;
	assert_int_equal(next_hops_read(&m, sizeof m, 0), 1);
}

TEST(a_false_message_is_one_next_hop)
{
	struct message m = three_hops();

	for (size_t length = 0; length < sizeof m; length++)
		assert_int_equal(next_hops_read(&m, length, 0), 1);
	m.hops[1].rtnh_len = 0;
	assert_int_equal(next_hops_read(&m, sizeof m, 0), 1);
	m = three_hops();
	m.priority.rta_len = 2;
	assert_int_equal(next_hops_read(&m, sizeof m, 0), 1);
	m = three_hops();
	m.multipath.rta_len = 1000;
	assert_int_equal(next_hops_read(&m, sizeof m, 0), 1);
	m = three_hops();
	m.head.nlmsg_type = NLMSG_ERROR;
	assert_int_equal(next_hops_read(&m, sizeof m, 0), 1);
}
