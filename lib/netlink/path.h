/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The steps of ktrxer_path_resolve(), one file each. Each fills `err` when it fails. */
#ifndef KTRXER_LIB_PATH_H
#define KTRXER_LIB_PATH_H

#include "error.h"
#include "rtnl.h"

/* device.c: further properties of a device on which frames and paths depend. */
struct device_more {
	uint32_t mtu6; /* of IPv6 where it is smaller (router advertisements); 0: not known */
	bool no_link;  /* frames of a kind that ktrxer does not know; device->link is 0 */
	uint16_t type; /* ARPHRD_ */
	bool vrf;      /* a routing domain: its traffic leaves by other devices */
};

/* One message of RTM_NEWLINK. 0, or -EBADMSG. */
int ktrxer_device_parse(struct ktrxer_device *device, struct device_more *more, struct bytes body);
int ktrxer_device_by_name(struct rtnl *rtnl, struct ktrxer_device *device, struct device_more *more, const char *name,
			  struct ktrxer_error *err);
int ktrxer_device_by_index(struct rtnl *rtnl, struct ktrxer_device *device, struct device_more *more, uint32_t index,
			   struct ktrxer_error *err);
int ktrxer_device_odd_link(const struct ktrxer_device *device, const struct device_more *more,
			   struct ktrxer_error *err);

struct route {
	uint8_t type;               /* RTN_ */
	uint32_t table;             /* 0: no table had a route */
	uint32_t device;            /* index */
	uint32_t mtu;               /* 0: the device's */
	bool encapsulates;          /* MPLS, segment routing...: the kernel puts more around it */
	struct ktrxer_addr source;  /* family 0: none was found */
	struct ktrxer_addr gateway; /* family 0: on the link */
};

int ktrxer_route_parse(struct route *route, struct bytes body);
/* The kernel's choice for a packet to `to`; `from` (NULL: any) must be an address of this host, `device` 0: any. */
int ktrxer_route_get(struct rtnl *rtnl, struct route *route, const struct ktrxer_addr *to,
		     const struct ktrxer_addr *from, uint32_t device, struct ktrxer_error *err);
/* Is it an address of this host (as seen from `device`, 0: from anywhere)? */
bool ktrxer_route_is_own(struct rtnl *rtnl, const struct ktrxer_addr *addr, uint32_t device);

struct neighbour {
	struct ktrxer_addr addr;
	uint32_t device;
	uint16_t state; /* NUD_; 0: there is no entry */
	bool has_mac;
	uint8_t mac[6];
};

/* One message of RTM_NEWNEIGH. 0, or -EBADMSG. */
int ktrxer_neighbour_parse(struct neighbour *neighbour, struct bytes body);
int ktrxer_neighbour_resolve(struct rtnl *rtnl, uint8_t mac[6], const struct ktrxer_device *device,
			     const struct ktrxer_addr *addr, uint32_t timeout_ms, struct ktrxer_error *err);

#endif
