/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rx_watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * A socket gets the errors of its device only while it is bound to an ethertype: this one is for experiments (IEEE
 * 802).
 */
#define NOBODYS_ETHERTYPE 0x88b5

int krx_watch_open(struct krx_watch *watch, const struct ktrxer_device *device, bool promiscuous,
		   struct ktrxer_error *err)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &nothing };
	struct packet_mreq request = { .mr_ifindex = (int)device->index, .mr_type = PACKET_MR_PROMISC };
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
				       .sll_protocol = htons(NOBODYS_ETHERTYPE),
				       .sll_ifindex = (int)device->index };
	int rc;

	watch->device = device->index;
	watch->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (watch->fd < 0 || setsockopt(watch->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ||
	    bind(watch->fd, (struct sockaddr *)&address, sizeof address) ||
	    (promiscuous && setsockopt(watch->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request))) {
		rc = -errno;
		krx_watch_close(watch);
		if (rc == -EPERM || rc == -EACCES)
			return krx_privilege_missing(err, "CAP_NET_RAW");
		return ktrxer_fail(err, rc, "%s: cannot be watched: %m", device->name);
	}
	return 0;
}

int krx_privilege_missing(struct ktrxer_error *err, const char *capability)
{
	return ktrxer_fail(
		err, -EPERM,
		"receiving by this back end needs the capability %s, which this process does not have; run it as "
		"root (sudo), or in a network namespace of your own (unshare -Urn)",
		capability);
}

void krx_watch_close(struct krx_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

int krx_watch_look(struct krx_look *look, int fd, uint32_t device)
{
	struct sockaddr_ll address;
	socklen_t length = sizeof address;
	int error = look->error;
	socklen_t error_length = sizeof error;

	if (!look->empty) {
		look->empty = true;
		return 0;
	}
	look->error = 0;
	if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length))
		return -errno;
	if (!device)
		return 0; /* others are there */
	look->down |= error != 0;
	/*
	 * The kernel reports that the device goes down. Its removal shows only in the address, whose index becomes
	 * -1.
	 */
	if (look->down && !getsockname(fd, (struct sockaddr *)&address, &length) && address.sll_ifindex != (int)device)
		return -ENODEV;
	return -error;
}
