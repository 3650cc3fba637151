/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices, the path to a destination, and frames. The conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_PATH_H
#define KTRXER_PATH_H

#include <ktrxer/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ktrxer_link {
	KTRXER_LINK_ETHERNET = 1, /* 14 bytes of header; also loopback */
	KTRXER_LINK_RAW_IP = 2,   /* no link header: tun, ppp, wireguard, ipip */
};

struct ktrxer_device {
	char name[16];
	uint32_t index;
	enum ktrxer_link link;
	uint8_t mac[6];
	uint32_t mtu;
	bool up;              /* administratively */
	bool running;         /* with carrier */
	bool loopback;        /* frames come back to this host */
	bool needs_neighbour; /* Ethernet that does ARP/ND */
	char kind[16];        /* rtnetlink's IFLA_INFO_KIND: "veth", "tun"...; "" for a physical device */
	char qdisc[16];
	char driver[32]; /* by ethtool; "" if ethtool reports none */
	uint32_t tx_queues;
	uint32_t reserved[8]; /* zero. This struct is a part of ktrxer_path, so new fields take the place of these */
};

/* Addresses for the headers of a frame to a destination (from rtnetlink, then ARP or ND). */
struct ktrxer_path {
	struct ktrxer_device device;
	struct ktrxer_addr source; /* address that goes into the IP header */
	struct ktrxer_addr to;
	struct ktrxer_addr next_hop; /* == to when on link */
	uint8_t next_hop_mac[6];     /* zero where the link has no addresses */
	uint32_t mtu;                /* of the route: the largest IP packet */
	bool needs_stack;            /* whole frames are lost on this path (IPv4 from this host to itself: its kernel
					drops them, unless accept_local is set); the engines of the host's stack get
					through */
};

struct ktrxer_path_options {
	size_t size;
	const char *device;      /* NULL: the route decides */
	struct ktrxer_addr from; /* family 0: the route decides; an address that this host does not own is allowed */
	struct ktrxer_addr to;
	const uint8_t *next_hop_mac; /* 6 bytes; NULL: ask ARP or ND */
	uint32_t timeout_ms;         /* for ARP/ND; 0: one second */
	bool no_link_address;        /* for engines that send by the host's stack: do not resolve next_hop_mac */
};
#define KTRXER_PATH_OPTIONS_INIT { .size = sizeof(struct ktrxer_path_options) }

/*
 * A device of this network namespace by its name or an alternative name. 0; -ENODEV: there is no such device;
 * -EOPNOTSUPP: all fields are filled, but `link` is 0, because this library cannot build frames for it.
 */
KTRXER_API int ktrxer_device_get_sized(struct ktrxer_device *device, size_t size, const char *name,
				       struct ktrxer_error *err);
static inline int ktrxer_device_get(struct ktrxer_device *device, const char *name, struct ktrxer_error *err)
{
	return ktrxer_device_get_sized(device, sizeof *device, name, err);
}

/* The names of two of a device's qdiscs, and the drops of all. */
struct ktrxer_qdiscs {
	char root[16];   /* the root qdisc; "noqueue" where there is none */
	char shaper[16]; /* one that delays packets by itself (a rate or a delay); "": none */
	/*
	 * Packets that the queues and the drivers of all devices of this network namespace have dropped so far, because
	 * one device may send by another. A small build does not count them.
	 */
	uint64_t drops;
};
/* Reads the present qdiscs by rtnetlink. 0, or a negative errno. */
KTRXER_API int ktrxer_device_qdiscs_sized(struct ktrxer_qdiscs *qdiscs, size_t size, uint32_t device_index);
static inline int ktrxer_device_qdiscs(struct ktrxer_qdiscs *qdiscs, const struct ktrxer_device *device)
{
	return ktrxer_device_qdiscs_sized(qdiscs, sizeof *qdiscs, device ? device->index : 0);
}

/*
 * The first `max` devices of this network namespace, also those with a `link` of 0. Returns the number of devices,
 * which may be larger than `max`, or a negative errno.
 */
KTRXER_API int ktrxer_device_list_sized(struct ktrxer_device *devices, size_t size, int max, struct ktrxer_error *err);
static inline int ktrxer_device_list(struct ktrxer_device *devices, int max, struct ktrxer_error *err)
{
	return ktrxer_device_list_sized(devices, sizeof *devices, max, err);
}
/*
 * The path to options->to. Waits up to timeout_ms for an answer to ARP or ND. 0; -ENODEV: there is no such device;
 * -ENETDOWN: the device is down; -ENETUNREACH: no route; -EADDRNOTAVAIL: no address to send from; -EHOSTUNREACH: no
 * answer to ARP or ND; -EOPNOTSUPP: a link header that this library cannot build.
 */
KTRXER_API int ktrxer_path_resolve_sized(struct ktrxer_path *path, size_t size,
					 const struct ktrxer_path_options *options, struct ktrxer_error *err);
static inline int ktrxer_path_resolve(struct ktrxer_path *path, const struct ktrxer_path_options *options,
				      struct ktrxer_error *err)
{
	return ktrxer_path_resolve_sized(path, sizeof *path, options, err);
}

enum ktrxer_proto { KTRXER_ICMP = 1, KTRXER_TCP = 6, KTRXER_UDP = 17, KTRXER_ICMPV6 = 58 };

enum ktrxer_tcp_flag {
	KTRXER_TCP_FIN = 1 << 0,
	KTRXER_TCP_SYN = 1 << 1,
	KTRXER_TCP_RST = 1 << 2,
	KTRXER_TCP_PSH = 1 << 3,
	KTRXER_TCP_ACK = 1 << 4,
	KTRXER_TCP_URG = 1 << 5,
	KTRXER_TCP_ECE = 1 << 6,
	KTRXER_TCP_CWR = 1 << 7,
};

#define KTRXER_TCP_OPTIONS_MAX 40

struct ktrxer_frame_spec {
	size_t size;
	const struct ktrxer_path *path;
	size_t path_size;       /* sizeof(struct ktrxer_path), which may grow */
	uint8_t proto;          /* KTRXER_UDP, KTRXER_TCP, or KTRXER_ICMP / KTRXER_ICMPV6: echo */
	uint16_t from_port;     /* ICMP: the identifier */
	uint16_t to_port;       /* ICMP: the sequence number */
	uint8_t tos;            /* DSCP << 2 | ECN */
	uint8_t ttl;            /* 0: 64 */
	bool may_fragment;      /* IPv4: clears DF */
	const uint8_t *payload; /* NULL: zero bytes */
	uint32_t payload_length;
	enum ktrxer_link link; /* the first header of the transmitter's frames (ktx_info.link); 0: the device's */
	/* TCP only */
	uint32_t tcp_sequence, tcp_acknowledgement;
	const uint8_t *tcp_options; /* as they stand in the header; filled up with zeros to a multiple of 4 bytes */
	uint8_t tcp_options_length; /* bytes, KTRXER_TCP_OPTIONS_MAX at most */
	uint8_t tcp_flags;          /* enum ktrxer_tcp_flag */
	uint16_t tcp_window;        /* as it stands in the header: not scaled */
	bool echo_reply;            /* ICMP and ICMPv6 only */
	bool vlan;                  /* Ethernet only: an 802.1Q tag with vlan_tci */
	uint16_t vlan_tci;          /* priority << 13 | drop eligible << 12 | VLAN identifier */
};
#define KTRXER_FRAME_SPEC_INIT { .size = sizeof(struct ktrxer_frame_spec), .path_size = sizeof(struct ktrxer_path) }

/*
 * Writes link, IP and transport headers, payload and checksums. The payload and the TCP options may lie within the
 * frame. Returns the length of the frame; -EMSGSIZE if it is larger than `capacity`, or the IP packet larger than the
 * path's MTU (0: no limit); -EINVAL if the spec contradicts itself: addresses of two families, ICMP over IPv6, TCP
 * flags or options for another protocol, a VLAN tag without Ethernet.
 */
KTRXER_API int ktrxer_frame_build(uint8_t *frame, uint32_t capacity, const struct ktrxer_frame_spec *spec);
/* The length of all headers is the offset of the payload. -EINVAL as for ktrxer_frame_build(). */
KTRXER_API int ktrxer_frame_header_length(const struct ktrxer_frame_spec *spec);
/*
 * Writes the transport checksum again, after payload or transport header were changed in place. 0; -EBADMSG: this is no
 * whole IP packet with UDP, TCP or ICMP, and nothing was written.
 */
KTRXER_API int ktrxer_frame_checksum(uint8_t *frame, uint32_t length, enum ktrxer_link link);

/* The headers of a frame, in the words of ktrxer_frame_spec. */
struct ktrxer_frame_view {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port; /* ICMP and ICMPv6 echo: identifier, sequence number */
	uint8_t proto;               /* IP protocol number, behind the extension headers of IPv6 */
	uint8_t tos, ttl;
	uint8_t icmp_type, icmp_code;
	uint8_t tcp_flags; /* enum ktrxer_tcp_flag */
	uint16_t tcp_window;
	uint32_t tcp_sequence, tcp_acknowledgement;
	uint32_t payload;        /* offset in the frame; for other protocols: behind the IP headers */
	uint32_t payload_length; /* bytes; without the padding of Ethernet */
	bool vlan;
	uint16_t vlan_tci;           /* of the outer tag */
	uint16_t ethertype;          /* behind the tags; 0: KTRXER_LINK_RAW_IP */
	uint16_t network, transport; /* offsets of the IP and of the transport header; transport 0: it is not there */
	uint8_t version;             /* 4 or 6; 0: this is no IP packet */
	bool ports;                  /* from_port and to_port are those of UDP, TCP, SCTP, DCCP or UDP-Lite */
	bool fragment;               /* any fragment */
	bool first_fragment;         /* the first one, or no fragment: the transport header is there */
	bool malformed;              /* a header is cut short or contradicts itself */
};
/*
 * Reads the headers of a frame, for example of a krx_packet with its `link`. Checksums are not compared. 0; -EBADMSG:
 * this is no IP packet, a header is cut short or contradicts itself, or it is a fragment: `view` has the fields that
 * were read before that.
 */
KTRXER_API int ktrxer_frame_read_sized(struct ktrxer_frame_view *view, size_t size, const uint8_t *frame,
				       uint32_t length, enum ktrxer_link link);
static inline int ktrxer_frame_read(struct ktrxer_frame_view *view, const uint8_t *frame, uint32_t length,
				    enum ktrxer_link link)
{
	return ktrxer_frame_read_sized(view, sizeof *view, frame, length, link);
}

#ifdef __cplusplus
}
#endif
#endif
