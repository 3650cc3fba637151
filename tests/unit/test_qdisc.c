/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queues as the kernel describes them: which keep send times, by which clock, and what is said of those that do not. */
#include "cm.h"
#include "qdisc.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ building */

struct message {
	uint8_t data[512];
	size_t length;
	size_t nest;
};

static void put(struct message *m, const void *data, size_t length)
{
	assert_true(m->length + length + 3 <= sizeof m->data);
	memcpy(m->data + m->length, data, length);
	memset(m->data + m->length + length, 0, -length % 4);
	m->length += length + (-length % 4);
}

static void attribute(struct message *m, uint16_t type, const void *value, size_t length)
{
	struct rtattr head = { .rta_len = (uint16_t)(sizeof head + length), .rta_type = type };

	put(m, &head, sizeof head);
	put(m, value, length);
}

static void begin(struct message *m, int device, uint32_t handle, uint32_t parent, const char *kind)
{
	const struct tcmsg head = { .tcm_ifindex = device, .tcm_handle = handle, .tcm_parent = parent };

	m->length = 0;
	put(m, &head, sizeof head);
	attribute(m, TCA_KIND, kind, strlen(kind) + 1);
	m->nest = m->length;
	attribute(m, TCA_OPTIONS, "", 0);
}

static int end(struct message *m, struct qdisc *q)
{
	const uint16_t length = (uint16_t)(m->length - m->nest);

	memcpy(m->data + m->nest, &length, sizeof length);
	return ktrxer_qdisc_parse(q, bytes_of(m->data, m->length));
}

static struct qdisc plain(const char *kind, uint32_t handle, uint32_t parent)
{
	struct message m;
	struct qdisc q;

	begin(&m, 3, handle, parent, kind);
	assert_int_equal(end(&m, &q), 0);
	return q;
}

static struct qdisc fq(uint32_t parent)
{
	struct message m;
	struct qdisc q;
	const uint32_t flow_limit = 200, slack = 7000, horizon_us = 5000;

	begin(&m, 3, 0x80010000, parent, "fq");
	attribute(&m, 2, &flow_limit, sizeof flow_limit);
	attribute(&m, 13, &slack, sizeof slack);
	attribute(&m, 14, &horizon_us, sizeof horizon_us);
	assert_int_equal(end(&m, &q), 0);
	return q;
}

static struct qdisc etf(uint32_t parent, int32_t delta, int32_t clock, uint32_t flags)
{
	const struct {
		int32_t delta, clock;
		uint32_t flags;
	} parameters = { delta, clock, flags };
	struct message m;
	struct qdisc q;

	begin(&m, 3, 0x80020000, parent, "etf");
	attribute(&m, 1, &parameters, sizeof parameters);
	assert_int_equal(end(&m, &q), 0);
	return q;
}

/* num_tc 3, map 2 2 1 0 2 2 ..., queues 1@0 1@1 2@2: how the TSN guides have it, class 0 being the timed one. */
static size_t mqprio_map(uint8_t to[82])
{
	const uint16_t count[16] = { 1, 1, 2 }, offset[16] = { 0, 1, 2 };

	memset(to, 2, 82);
	to[0] = 3;
	to[3] = 1;
	to[4] = 0;
	to[17] = 0;
	memcpy(to + 18, count, sizeof count);
	memcpy(to + 50, offset, sizeof offset);
	return 82;
}

static struct qdisc mqprio(void)
{
	struct message m;
	struct qdisc q;
	uint8_t map[82];

	begin(&m, 3, 0x01000000, TC_H_ROOT, "mqprio");
	put(&m, map, mqprio_map(map));
	assert_int_equal(end(&m, &q), 0);
	return q;
}

static struct qdisc taprio(void)
{
	struct message m;
	struct qdisc q;
	uint8_t map[82];

	begin(&m, 3, 0x01000000, TC_H_ROOT, "taprio");
	attribute(&m, 1, map, mqprio_map(map));
	assert_int_equal(end(&m, &q), 0);
	return q;
}

/* ----------------------------------------------------------------------------------------------------- what is read */

TEST(options_are_read)
{
	struct qdisc q = fq(TC_H_ROOT);

	assert_string_equal(q.kind, "fq");
	assert_int_equal(q.device, 3);
	assert_int_equal(q.flow_limit, 200);
	assert_int_equal(q.slack_ns, 7000);
	assert_int_equal(q.horizon_ns, 5000000);
	q = etf(TC_H_ROOT, 500000, 11, 2);
	assert_int_equal(q.delta_ns, 500000);
	assert_int_equal(q.clock, 11);
	assert_int_equal(q.flags, 2);
	q = taprio();
	assert_true(q.has_map);
	assert_int_equal(q.classes[3], 0);
	assert_int_equal(q.classes[2], 1);
	assert_int_equal(q.count[2], 2);
	assert_int_equal(q.offset[2], 2);
}

TEST(what_is_cut_short_is_not_believed)
{
	struct message m;
	struct qdisc q;

	begin(&m, 3, 1, TC_H_ROOT, "mqprio");
	put(&m, "\3\2\2\1", 4);
	assert_int_equal(end(&m, &q), 0);
	assert_false(q.has_map);
	for (size_t length = 0; length < m.length; length++) {
		uint8_t copy[512];

		memcpy(copy, m.data, m.length);
		assert_true(ktrxer_qdisc_parse(&q, bytes_of(copy, length)) == 0 || length < m.length);
	}
	assert_int_equal(ktrxer_qdisc_parse(&q, bytes_of(m.data, sizeof(struct tcmsg))), -EBADMSG); /* no kind */
	assert_int_equal(ktrxer_qdisc_parse(&q, bytes_of(m.data, 7)), -EBADMSG);
}

/* -------------------------------------------------------------------------------------------------------- judgement */

static void taken(const struct qdisc *all, int count, struct qdisc_launch *launch)
{
	struct ktrxer_error err = { 0 };

	assert_int_equal(ktrxer_qdisc_judge(launch, all, count, "eth0", &err), 0);
}

static void refused(const struct qdisc *all, int count, const char *words)
{
	struct qdisc_launch launch;
	struct ktrxer_error err = { 0 };

	assert_int_equal(ktrxer_qdisc_judge(&launch, all, count, "eth0", &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, words));
}

TEST(roots_that_keep_times)
{
	struct qdisc_launch launch;
	struct qdisc q = fq(TC_H_ROOT);

	taken(&q, 1, &launch);
	assert_int_equal(launch.clock, CLOCK_MONOTONIC);
	assert_false(launch.etf);
	assert_int_equal(launch.flow_limit, 200);
	assert_int_equal(launch.slack_ns, 7000);
	assert_int_equal(launch.horizon_ns, 5000000);
	q = etf(TC_H_ROOT, 300000, 11, 0);
	taken(&q, 1, &launch);
	assert_int_equal(launch.clock, 11);
	assert_true(launch.etf);
	assert_false(launch.offload);
	assert_int_equal(launch.delta_ns, 300000);
	q = etf(TC_H_ROOT, 300000, 11, 2);
	taken(&q, 1, &launch);
	assert_true(launch.offload);
}

TEST(roots_that_ignore_them)
{
	static const char *const kinds[] = { "pfifo_fast", "fq_codel", "noqueue", "cake", "htb",
					     "netem",      "fq_pie",   "fqx",     "etfx" };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct qdisc q[2] = { plain(kinds[i], 0x10000, TC_H_ROOT), fq(0x10001) };

		refused(q, 1, "`tc qdisc replace dev eth0 root fq timer_slack 0`");
		refused(q, 1, kinds[i]);
		refused(q, 2, kinds[i]); /* fq in a class of a shaper keeps times, and the shaper does not */
	}
	refused(NULL, 0, "noqueue");
}

TEST(etf_must_keep_launch_times_of_tai)
{
	struct qdisc q = etf(TC_H_ROOT, 300000, 11, 1);

	refused(&q, 1, "without deadline_mode");
	q = etf(TC_H_ROOT, 300000, 1, 0);
	refused(&q, 1, "clockid CLOCK_TAI");
}

TEST(every_queue_of_a_device_must)
{
	/* The kernel's own mq has no handle. */
	struct qdisc q[4] = { plain("mq", 0, TC_H_ROOT), fq(1), fq(2), fq(3) };
	struct qdisc_launch launch;

	taken(q, 4, &launch);
	assert_int_equal(launch.clock, CLOCK_MONOTONIC);
	q[2] = plain("fq_codel", 0, 2);
	refused(q, 4, "mq");
	q[2] = etf(2, 1000, 11, 0);
	refused(q, 4, "mq");
	refused(q, 1, "mq");
	q[1] = etf(1, 1000, 11, 0);
	q[3] = etf(3, 1000, 11, 0);
	taken(q, 4, &launch);
	assert_true(launch.etf);
	q[3] = etf(3, 2000, 11, 0); /* one delta for all, or frames leave at different times */
	refused(q, 4, "mq");
}

TEST(the_priority_that_leads_to_timed_queues)
{
	struct qdisc q[5] = { mqprio(), etf(0x01000001, 200000, 11, 2), plain("fq_codel", 0, 0x01000002),
			      plain("fq_codel", 0, 0x01000003), plain("fq_codel", 0, 0x01000004) };
	struct qdisc_launch launch;

	taken(q, 5, &launch);
	assert_int_equal(launch.priority, 3);
	assert_true(launch.offload);
	q[0] = taprio();
	taken(q, 5, &launch);
	assert_int_equal(launch.priority, 3);
	q[1] = plain("fq_codel", 0, 0x01000001);
	refused(q, 5, "fq_codel");
	q[3] = etf(0x01000003, 200000, 11, 2); /* one of the two queues of its class */
	refused(q, 5, "eth0");
	q[4] = etf(0x01000004, 200000, 11, 2);
	taken(q, 5, &launch);
	assert_int_equal(launch.priority, 0);
}
