/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "qdisc.h"

#include "options.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

/*
 * From linux/pkt_sched.h, by number: the headers of an old toolchain know neither etf nor taprio, nor the later options
 * of fq.
 */
enum {
	FQ_FLOW_LIMIT = 2,
	FQ_TIMER_SLACK = 13,       /* ns; Linux 5.9 */
	FQ_HORIZON = 14,           /* us; Linux 5.8 */
	FQ_SLACK_USUAL_NS = 10000, /* before it could be set */
	ETF_PARAMETERS = 1,
	ETF_DEADLINE = 1 << 0,
	ETF_OFFLOAD = 1 << 1,
	TAPRIO_MAP = 1,
};
#define MAJOR 0xffff0000u
#define CLOCK_OF_ETF 11 /* CLOCK_TAI */

/* struct tc_mqprio_qopt, in mqprio's options as such and in taprio's as an attribute. */
static void parse_map(struct qdisc *q, struct bytes b)
{
	uint8_t classes, hardware;

	bytes_copy(&b, &classes, 1);
	bytes_copy(&b, q->classes, sizeof q->classes);
	bytes_copy(&b, &hardware, 1);
	bytes_copy(&b, q->count, sizeof q->count);
	q->has_map = bytes_copy(&b, q->offset, sizeof q->offset);
}

static void parse_options(struct qdisc *q, struct bytes options)
{
	const bool fq = !strcmp(q->kind, "fq"), etf = !strcmp(q->kind, "etf"), taprio = !strcmp(q->kind, "taprio");
	struct bytes value;
	uint16_t type;

	if (!strcmp(q->kind, "mqprio"))
		parse_map(q, options);
	if (!fq && !etf && !taprio)
		return;
	while (ktrxer_rtnl_next(&options, &type, &value)) {
		if (fq && type == FQ_FLOW_LIMIT)
			q->flow_limit = ktrxer_rtnl_u32(value);
		else if (fq && type == FQ_TIMER_SLACK)
			q->slack_ns = ktrxer_rtnl_u32(value);
		else if (fq && type == FQ_HORIZON)
			q->horizon_ns = ktrxer_rtnl_u32(value) * 1000ull;
		else if (etf && type == ETF_PARAMETERS) {
			bytes_copy(&value, &q->delta_ns, sizeof q->delta_ns);
			bytes_copy(&value, &q->clock, sizeof q->clock);
			bytes_copy(&value, &q->flags, sizeof q->flags);
		} else if (taprio && type == TAPRIO_MAP) {
			parse_map(q, value);
		}
	}
}

#ifndef KTRXER_SMALL
static void parse_statistics(struct qdisc *q, struct bytes statistics)
{
	struct bytes value;
	struct gnet_stats_queue queue;
	uint16_t type;

	while (ktrxer_rtnl_next(&statistics, &type, &value))
		if (type == TCA_STATS_QUEUE && bytes_copy(&value, &queue, sizeof queue))
			q->drops = queue.drops;
}
#endif

int ktrxer_qdisc_parse(struct qdisc *q, struct bytes body)
{
	struct tcmsg head;
	struct bytes value, options = bytes_of("", 0);
	uint16_t type;

	memset(q, 0, sizeof *q);
	q->slack_ns = FQ_SLACK_USUAL_NS;
	if (!bytes_copy(&body, &head, sizeof head))
		return -EBADMSG;
	q->device = (uint32_t)head.tcm_ifindex;
	q->handle = head.tcm_handle;
	q->parent = head.tcm_parent;
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		if (type == TCA_KIND)
			ktrxer_rtnl_string(value, q->kind, sizeof q->kind);
		else if (type == TCA_OPTIONS)
			options = value;
#ifndef KTRXER_SMALL
		else if (type == TCA_STATS2)
			parse_statistics(q, value);
#endif
	}
	parse_options(q, options);
	return body.ok && q->kind[0] ? 0 : -EBADMSG;
}

static bool same(const struct qdisc *a, const struct qdisc *b)
{
	return !strcmp(a->kind, b->kind) && a->delta_ns == b->delta_ns && a->flags == b->flags;
}

static bool keeps_times(const struct qdisc *q)
{
	return q && (!strcmp(q->kind, "fq") ||
		     (!strcmp(q->kind, "etf") && q->clock == CLOCK_OF_ETF && !(q->flags & ETF_DEADLINE)));
}

static void take(struct qdisc_launch *launch, const struct qdisc *q, int priority)
{
	const bool etf = q->kind[0] == 'e';

	*launch = (struct qdisc_launch){
		.clock = etf ? CLOCK_OF_ETF : CLOCK_MONOTONIC,
		.etf = etf,
		.offload = etf && q->flags & ETF_OFFLOAD,
		.delta_ns = etf && q->delta_ns > 0 ? (uint32_t)q->delta_ns : 0,
		.slack_ns = etf ? 0 : q->slack_ns,
		.flow_limit = q->flow_limit,
		.horizon_ns = q->horizon_ns,
		.priority = priority,
	};
}

static const struct qdisc *leaf(const struct qdisc *all, int count, const struct qdisc *root, uint32_t queue)
{
	for (int i = 0; i < count; i++)
		if (all[i].parent == ((root->handle & MAJOR) | (queue + 1)))
			return &all[i];
	return NULL;
}

/* NULL when the queues differ, or there is none. */
static const struct qdisc *common(const struct qdisc *all, int count, const struct qdisc *root, uint32_t first,
				  uint32_t queues)
{
	const struct qdisc *q = leaf(all, count, root, first);

	for (uint32_t i = 1; q && i < queues; i++) {
		const struct qdisc *other = leaf(all, count, root, first + i);

		if (!other || !same(q, other))
			return NULL;
	}
	return q;
}

static uint32_t queues_below(const struct qdisc *all, int count, const struct qdisc *root)
{
	uint32_t n = 0;

	while (leaf(all, count, root, n))
		n++;
	return n;
}

static int refuse(const char *device, const struct qdisc *q, const char *kind, struct ktrxer_error *err)
{
	if (q && q->kind[0] == 'e' && !strcmp(q->kind, "etf"))
		return ktrxer_fail(err, -EOPNOTSUPP, "the etf qdisc of '%s' %s", device,
				   q->flags & ETF_DEADLINE
					   ? "sends as early as it can: set it up without deadline_mode"
					   : "goes by another clock: set it up with `clockid CLOCK_TAI`");
	return ktrxer_fail(err, -EOPNOTSUPP,
			   "the qdisc of '%s', %s, ignores send times: `tc qdisc replace dev %s root fq timer_slack 0`",
			   device, kind, device);
}

int ktrxer_qdisc_judge(struct qdisc_launch *launch, const struct qdisc *all, int count, const char *device,
		       struct ktrxer_error *err)
{
	const struct qdisc *root = NULL, *below = NULL;

	for (int i = 0; i < count; i++)
		if (all[i].parent == TC_H_ROOT)
			root = &all[i];
	if (!root)
		return refuse(device, NULL, "noqueue", err);
	if (keeps_times(root)) {
		take(launch, root, 0);
		return 0;
	}
	if (!strcmp(root->kind, "mq")) {
		below = common(all, count, root, 0, queues_below(all, count, root));
		if (keeps_times(below)) {
			take(launch, below, 0);
			return 0;
		}
	}
	/* The lowest priority that leads to queues which all keep times. */
	for (int p = 0; root->has_map && p < QDISC_PRIORITIES; p++) {
		const uint8_t class = root->classes[p] % QDISC_PRIORITIES;

		below = common(all, count, root, root->offset[class], root->count[class]);
		if (keeps_times(below)) {
			take(launch, below, p);
			return 0;
		}
	}
	return refuse(device, below ? below : root, below ? below->kind : root->kind, err);
}

enum { QDISCS_MAX = 512 }; /* of one device: one a queue */

struct qdisc_list {
	struct qdisc *all;
	uint32_t device;
	int count;
	uint64_t drops; /* of the queues of all devices: one device may send by another */
};

static int list_take(void *context, uint16_t type, struct bytes body)
{
	struct qdisc_list *list = context;
	struct qdisc q;

	if (type != RTM_NEWQDISC || ktrxer_qdisc_parse(&q, body) < 0)
		return 0; /* one that we do not understand is none of those that we look for */
	if (q.parent == TC_H_ROOT)
		list->drops += q.drops;
	if (q.device != list->device || list->count == QDISCS_MAX)
		return 0;
	list->all[list->count++] = q;
	return 0;
}

static void list_restart(void *context)
{
	struct qdisc_list *list = context;

	list->count = 0;
	list->drops = 0;
}

#ifndef KTRXER_SMALL
static void device_drops_restart(void *context)
{
	*(uint64_t *)context = 0;
}

/* Drivers with a queue of their own count what they drop. */
static int device_drops_take(void *context, uint16_t type, struct bytes body)
{
	struct rtnl_link_stats64 statistics;
	uint64_t *drops = context;
	struct bytes value;

	if (type != RTM_NEWLINK || !bytes_skip(&body, sizeof(struct ifinfomsg)))
		return 0;
	while (ktrxer_rtnl_next(&body, &type, &value))
		if (type == IFLA_STATS64 &&
		    bytes_copy(&value, &statistics, offsetof(struct rtnl_link_stats64, multicast)))
			*drops += statistics.tx_dropped;
	return 0;
}

static uint64_t device_drops(void)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	struct rtnl_request request;
	struct rtnl *rtnl;
	uint64_t drops = 0;

	if (ktrxer_rtnl_open(&rtnl) < 0)
		return 0;
	ktrxer_rtnl_request_begin(&request, RTM_GETLINK, NLM_F_DUMP, &head, sizeof head);
	(void)ktrxer_rtnl_dump(rtnl, &request, device_drops_restart, device_drops_take, &drops);
	ktrxer_rtnl_close(rtnl);
	return drops;
}
#endif

/* list->all is to be freed in any case. */
static int list_read(struct qdisc_list *list)
{
	struct tcmsg head = { .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)list->device };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int rc;

	list->all = malloc(QDISCS_MAX * sizeof *list->all);
	rc = list->all ? ktrxer_rtnl_open(&rtnl) : -ENOMEM;
	if (rc < 0)
		return rc;
	ktrxer_rtnl_request_begin(&request, RTM_GETQDISC, NLM_F_DUMP, &head, sizeof head);
	rc = ktrxer_rtnl_dump(rtnl, &request, list_restart, list_take, list);
	ktrxer_rtnl_close(rtnl);
	return rc;
}

int ktrxer_device_qdiscs_sized(struct ktrxer_qdiscs *to, size_t size, uint32_t device_index)
{
	static const char *const shapers[] = {
		"tbf", "htb", "hfsc", "cbq", "cake", "cake_mq", "netem", "taprio", "etf"
	};
	struct ktrxer_qdiscs qdiscs = { .root = "noqueue" };
	struct qdisc_list list = { .device = device_index };
	int rc;

	if (!to || !size || !device_index)
		return -EINVAL;
	rc = list_read(&list);
	for (int i = 0; rc == 0 && i < list.count; i++) {
		if (list.all[i].parent == TC_H_ROOT)
			memcpy(qdiscs.root, list.all[i].kind, sizeof qdiscs.root);
		for (size_t j = 0; j < sizeof shapers / sizeof *shapers; j++)
			if (!strcmp(list.all[i].kind, shapers[j]))
				memcpy(qdiscs.shaper, list.all[i].kind, sizeof qdiscs.shaper);
	}
#ifndef KTRXER_SMALL
	qdiscs.drops = list.drops + device_drops();
#endif
	free(list.all);
	ktrxer_result_write(to, size, &qdiscs, sizeof qdiscs);
	return rc;
}

int ktrxer_qdisc_launch(struct qdisc_launch *launch, uint32_t device, const char *name, struct ktrxer_error *err)
{
	struct qdisc_list list = { .device = device };
	int rc = list_read(&list);

	if (rc < 0)
		ktrxer_fail(err, rc, "rtnetlink does not tell the qdisc of '%s': %m", name);
	else
		rc = ktrxer_qdisc_judge(launch, list.all, list.count, name, err);
	free(list.all);
	return rc;
}
