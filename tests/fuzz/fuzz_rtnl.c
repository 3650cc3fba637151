/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An answer of rtnetlink, down to devices, routes and neighbours. */
#include "path.h"
#include "qdisc.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QDISCS 20

static void must_end(const char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		abort();
}

static int take(void *context, uint16_t type, struct bytes body)
{
	struct ktrxer_device device;
	struct device_more more;
	struct neighbour neighbour;
	struct route route;

	struct qdisc *qdiscs = context;
	static int used;

	switch (type) {
	case RTM_NEWQDISC: {
		struct qdisc_launch launch;
		struct ktrxer_error err;

		used = qdiscs[used].kind[0] ? (used + 1) % QDISCS : used;
		if (ktrxer_qdisc_parse(&qdiscs[used], body) < 0)
			memset(&qdiscs[used], 0, sizeof qdiscs[used]);
		must_end(qdiscs[used].kind, sizeof qdiscs[used].kind);
		if (ktrxer_qdisc_judge(&launch, qdiscs, QDISCS, "dev", &err) == 0 &&
		    launch.priority >= QDISC_PRIORITIES)
			abort();
		break;
	}
	case RTM_NEWLINK:
		ktrxer_device_parse(&device, &more, body);
		must_end(device.name, sizeof device.name);
		must_end(device.kind, sizeof device.kind);
		must_end(device.qdisc, sizeof device.qdisc);
		break;
	case RTM_NEWROUTE:
		ktrxer_route_parse(&route, body);
		break;
	case RTM_NEWNEIGH:
		ktrxer_neighbour_parse(&neighbour, body);
		break;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rtnl_answer answer = { 0 };
	struct qdisc qdiscs[QDISCS] = { 0 };
	struct nlmsghdr header;
	struct bytes first = bytes_of(data, size);
	int ret;

	/* The first message is for us, whatever its number. */
	if (bytes_copy(&first, &header, sizeof header)) {
		answer.sequence = header.nlmsg_seq;
		answer.port = header.nlmsg_pid;
	}
	answer.last = size % 4; /* of a batch, where it is not 0 */
	ret = ktrxer_rtnl_read(&answer, bytes_of(data, size), take, qdiscs);
	if (ret > 0 || answer.message > answer.last)
		abort();
	must_end(answer.text, sizeof answer.text);
	return 0;
}
