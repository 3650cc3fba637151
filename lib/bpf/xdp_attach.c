/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "xdp_attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <unistd.h>

static int attach_as(int program, uint32_t device, uint32_t mode)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = mode);
	int fd = bpf_link_create(program, (int)device, BPF_XDP, &options);

	return fd < 0 ? -errno : fd;
}

static bool is_taken(int rc)
{
	return rc == -EBUSY || rc == -EEXIST;
}

/* The one that is there already, by its number and name. */
static void occupant(uint32_t device, char *text, size_t size)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	__u32 length = sizeof info, id = 0;
	int fd;

	snprintf(text, size, "another XDP program");
	if (bpf_xdp_query((int)device, 0, &query))
		return;
	id = query.prog_id ? query.prog_id : query.drv_prog_id ? query.drv_prog_id : query.skb_prog_id;
	if (!id)
		return;
	snprintf(text, size, "another XDP program, number %u,", id);
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &length) && info.name[0])
		snprintf(text, size, "another XDP program, '%.15s' (number %u),", info.name, id);
	close(fd);
}

static int attach_failed(int rc, const struct ktrxer_device *device, struct ktrxer_error *err)
{
	char word[96];

	if (is_taken(rc)) {
		occupant(device->index, word, sizeof word);
		return ktrxer_fail(err, -EBUSY,
				   "%s is on '%s' already: end the program that put it there, or take it off (`ip link "
				   "set dev %s xdp off`), "
				   "or use the back end 'nftables'",
				   word, device->name, device->name);
	}
	if (rc == -EPERM || rc == -EACCES)
		return ktrxer_fail(err, -EPERM,
				   "an XDP program on '%s' needs CAP_NET_ADMIN, which this process does not have: run "
				   "it as root (sudo)",
				   device->name);
	if (rc == -ENODEV)
		return ktrxer_fail(err, rc, "device '%s' is gone", device->name);
	if (rc == -EINVAL)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "this kernel puts no XDP program on '%s' by a link (Linux 5.9 does)", device->name);
	return ktrxer_fail(err, rc, "no XDP program can be put on '%s': %m", device->name);
}

int ktrxer_xdp_attach(struct xdp_attachment *attachment, int program, const struct ktrxer_device *device,
		      bool only_generic, struct ktrxer_error *err)
{
	char word[64];
	int rc = -EOPNOTSUPP;

	*attachment = (struct xdp_attachment){ .link = -1 };
	if (!only_generic)
		rc = attach_as(program, device->index, XDP_FLAGS_DRV_MODE);
	if (rc < 0 && !is_taken(rc) && rc != -EPERM && rc != -EACCES && rc != -ENODEV) {
		if (rc == -EOPNOTSUPP)
			snprintf(attachment->note, sizeof attachment->note, "generic XDP: %s",
				 only_generic ? "as asked for" : "the driver has none of its own");
		else
			snprintf(attachment->note, sizeof attachment->note,
				 "generic XDP: the driver refuses its own here (%s)",
				 ktrxer_strerror(rc, word, sizeof word));
		attachment->generic = true;
		rc = attach_as(program, device->index, XDP_FLAGS_SKB_MODE);
	}
	if (rc < 0)
		return attach_failed(rc, device, err);
	attachment->link = rc;
	return 0;
}

void ktrxer_xdp_detach(struct xdp_attachment *attachment)
{
	if (attachment->link >= 0)
		close(attachment->link);
	attachment->link = -1;
}
