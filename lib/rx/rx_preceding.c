/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rx_preceding.h"

#include "error.h"
#include "rtnl.h"

#include <errno.h>
#include <ktrxer/rx.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef KTRXER_SMALL
enum { QUERY_PROGRAMS = 16, TCX_INGRESS = 46 }; /* of bpf(2): BPF_PROG_QUERY, BPF_TCX_INGRESS (Linux 6.6) */

struct found {
	uint32_t xdp, mode; /* its number, 0: none; XDP_ATTACHED_... */
	uint32_t taps, filters;
};

static int link_take(void *context, uint16_t type, struct bytes body)
{
	struct found *found = context;
	struct bytes value, inner;
	uint8_t mode = 0;

	(void)type;
	if (!bytes_skip(&body, sizeof(struct ifinfomsg)))
		return -EBADMSG;
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		if (type != IFLA_XDP)
			continue;
		while (ktrxer_rtnl_next(&value, &type, &inner)) {
			if (type == IFLA_XDP_ATTACHED && bytes_copy(&inner, &mode, sizeof mode))
				found->mode = mode;
			else if (type == IFLA_XDP_PROG_ID)
				found->xdp = ktrxer_rtnl_u32(inner);
		}
	}
	return 0;
}

/* The kernel lists a filter's protocol and priority first, with the handle 0, then the filter itself. */
static int filter_take(void *context, uint16_t type, struct bytes body)
{
	struct found *found = context;
	struct tcmsg head;

	if (type == RTM_NEWTFILTER && bytes_copy(&body, &head, sizeof head) && head.tcm_handle)
		found->filters++;
	return 0;
}

static void filters_restart(void *context)
{
	((struct found *)context)->filters = 0;
}

/* Programs at tc ingress without a qdisc. An older kernel refuses the call, and has none. */
static uint32_t tcx_count(uint32_t device)
{
	struct {
		uint32_t device, place, query_flags, attach_flags;
		uint64_t ids;
		uint32_t count, pad;
		uint64_t more[4];
	} query = { .device = device, .place = TCX_INGRESS };

	return syscall(SYS_bpf, QUERY_PROGRAMS, &query, sizeof query) < 0 ? 0 : query.count;
}

static int rtnl_look(struct found *found, uint32_t device)
{
	struct ifinfomsg link = { .ifi_index = (int)device };
	struct tcmsg ingress = { .tcm_ifindex = (int)device, .tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS) };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int rc = ktrxer_rtnl_open(&rtnl);

	if (rc < 0)
		return rc;
	ktrxer_rtnl_request_begin(&request, RTM_GETLINK, 0, &link, sizeof link);
	rc = ktrxer_rtnl_talk(rtnl, &request, link_take, found, NULL);
	if (rc >= 0) {
		ktrxer_rtnl_request_begin(&request, RTM_GETTFILTER, NLM_F_DUMP, &ingress, sizeof ingress);
		/* -EINVAL: the device has neither of the qdiscs that hold such filters. */
		ktrxer_rtnl_dump(rtnl, &request, filters_restart, filter_take, found);
	}
	ktrxer_rtnl_close(rtnl);
	return rc;
}

/* Packet sockets of this namespace that get all protocols: they come first of all packet sockets. */
static int taps_count(struct found *found, uint32_t device)
{
	FILE *file = fopen("/proc/self/net/packet", "re");
	unsigned int protocol, index;
	char line[256];

	if (!file)
		return -errno;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "%*s %*s %*s %x %u", &protocol, &index) == 2 && protocol == 3 /* ETH_P_ALL */ &&
		    (!index || index == device))
			found->taps++;
	fclose(file);
	return 0;
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	used += (size_t)snprintf(text + used, size - used, "%s", used ? ", " : "");
	if (used >= size)
		return;
	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

int krx_preceding_read(char *text, size_t size, const struct ktrxer_device *device, enum krx_place place)
{
	static const char *const modes[] = { "", "native", "generic", "in the NIC", "several" };
	struct found found = { 0 };
	int rc;

	*text = '\0';
	if (place == KRX_AT_XDP)
		return 0;
	rc = rtnl_look(&found, device->index);
	if (rc >= 0)
		rc = taps_count(&found, device->index);
	if (rc < 0)
		return rc;
	if (found.mode && found.mode < sizeof modes / sizeof *modes)
		add(text, size, "XDP program %u (%s)", found.xdp, modes[found.mode]);
	if (place == KRX_AT_TAPS)
		return 0;
	if (found.taps)
		add(text, size, "%u tap%s", found.taps, found.taps == 1 ? "" : "s");
	if (found.filters)
		add(text, size, "%u tc filter%s", found.filters, found.filters == 1 ? "" : "s");
	found.filters = tcx_count(device->index);
	if (found.filters)
		add(text, size, "%u tcx program%s", found.filters, found.filters == 1 ? "" : "s");
	return 0;
}

int krx_preceding(char *text, size_t size, const char *name, struct ktrxer_error *err)
{
	struct ktrxer_device device;
	int rc;

	if (!text || !size)
		return ktrxer_fail(err, -EINVAL, "krx_preceding: no place for the text");
	rc = ktrxer_device_get(&device, name, err);
	if (rc < 0)
		return rc;
	rc = krx_preceding_read(text, size, &device, KRX_AT_INGRESS);
	return rc < 0 ? ktrxer_fail(err, rc, "the kernel does not list what precedes rules on device '%s'", name) : 0;
}
#else
int krx_preceding_read(char *text, size_t size, const struct ktrxer_device *device, enum krx_place place)
{
	(void)size;
	(void)device;
	(void)place;
	*text = '\0';
	return 0;
}

int krx_preceding(char *text, size_t size, const char *name, struct ktrxer_error *err)
{
	(void)text;
	(void)size;
	return ktrxer_fail(err, -EOPNOTSUPP, "this small program does not list what precedes rules on device '%s'",
			   name);
}
#endif
