/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The back end "xdp" has the rules in front of the stack (bpf/rules.bpf.c), where each packet is classified once.
 * Captured packets come by the BPF ring buffer; packets that are captured and dropped by AF_XDP, one socket a receive
 * queue, and by the ring buffer where a queue has no socket or the packet is too long for one. Both are merged by the
 * time of arrival. Descriptors hold everything: program, maps, the link that holds the program on the device, sockets.
 * A device has one XDP program: where there is another one the back end is refused
 * (docs/decisions/0017-receive-rules.md).
 */
#include "rx.h"

#include "bytes.h"
#include "error.h"
#include "rules_program.h"
#include "rx_watch.h"
#include "xdp_attach.h"
#include "xsk_receive.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KRX_QUEUES_MAX = 64 /* receive queues that get an AF_XDP socket of their own */ };

enum { TAG_AT = 12, TAG_SIZE = 4, HELD_NOTHING = -2, HELD_RING = -1 };

struct krx_backend_state {
	struct rules_program program;
	struct xdp_attachment attachment;
	struct krx_watch watch;
	struct krx_look look;
	struct xsk_receiver *sockets;
	uint32_t socket_count, queues;
	int epoll;
	int held; /* HELD_..., or the socket whose frame the caller has */
	uint32_t device;
	enum ktrxer_link link;
	bool loopback;
	uint8_t mac[6];
	uint64_t *captured; /* by rule */
	uint8_t *scratch;   /* a packet whose tag was put back */
	char note[KRX_NOTE];
};

static bool wants_op(const struct krx_ruleset *rules, enum krx_op op)
{
	for (int i = 0; i < krx_ruleset_count(rules); i++)
		if (krx_ruleset_rule(rules, i)->op == op)
			return true;
	return false;
}

static uint32_t receive_queues(const char *device)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq request = { .ifr_data = (void *)&channels };
	uint32_t count = 1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 1;
	snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
	if (!ioctl(fd, SIOCETHTOOL, &request))
		count = channels.rx_count + channels.combined_count;
	close(fd);
	return count < 1 ? 1 : count > KRX_QUEUES_MAX ? KRX_QUEUES_MAX : count;
}

static void note_add(struct krx_backend_state *s, const char *text)
{
	const size_t used = strlen(s->note);

	if (text[0])
		snprintf(s->note + used, sizeof s->note - used, "%s%s", used ? "; " : "", text);
}

/* A queue without a socket is no failure: its packets come by the ring buffer. A note names the cause. */
static void sockets_open(struct krx_backend_state *s, const struct krx_backend_setup *setup, uint32_t chunk)
{
	const uint32_t frames = setup->options->ring_bytes / chunk / s->queues;
	struct ktrxer_error why = { 0 };
	char text[KRX_NOTE];

	s->sockets = calloc(s->queues, sizeof *s->sockets);
	for (uint32_t queue = 0; s->sockets && queue < s->queues; queue++) {
		struct xsk_receiver *xsk = &s->sockets[s->socket_count];

		if (ktrxer_xsk_receive_open(xsk, s->device, queue, chunk, frames, s->attachment.generic, &why) < 0)
			continue;
		if (ktrxer_rules_program_socket_put(&s->program, queue, xsk->fd) < 0) {
			ktrxer_xsk_receive_close(xsk);
			ktrxer_fail(&why, -EINVAL, "queue %u is not taken by the program", queue);
			continue;
		}
		s->socket_count++;
	}
	if (s->socket_count == s->queues)
		return;
	snprintf(text, sizeof text, "capture+drop by the ring buffer%s, not AF_XDP (%.120s)",
		 s->socket_count ? " for some queues" : "", s->sockets ? why.text : "no memory");
	note_add(s, text);
}

static int epoll_add(const struct krx_backend_state *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int epoll_make(struct krx_backend_state *s, struct ktrxer_error *err)
{
	int rc;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = s->epoll < 0 ? -errno : epoll_add(s, s->watch.fd);
	if (!rc)
		rc = epoll_add(s, ktrxer_rules_program_ring_fd(&s->program));
	for (uint32_t i = 0; !rc && i < s->socket_count; i++)
		rc = epoll_add(s, s->sockets[i].fd);
	return rc < 0 ? ktrxer_fail(err, rc, "receiver: epoll: %m") : 0;
}

static void xdp_close(struct krx_backend_state *s)
{
	if (!s)
		return;
	ktrxer_xdp_detach(&s->attachment); /* from here on the stack has everything again */
	for (uint32_t i = 0; i < s->socket_count; i++)
		ktrxer_xsk_receive_close(&s->sockets[i]);
	free(s->sockets);
	ktrxer_rules_program_close(&s->program);
	krx_watch_close(&s->watch);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->captured);
	free(s->scratch);
	free(s);
}

static int suits(const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	if (!setup->device)
		return ktrxer_fail(err, -EINVAL, "XDP rules sit on one device: name the device");
	if (setup->options->see_outgoing)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "XDP sees what arrives, not what this host sends: do without outgoing packets, or "
				   "use the back end 'packet'");
	return 0;
}

static int program_place(struct krx_backend_state *s, struct rules_setup *program, const struct ktrxer_device *device,
			 struct ktrxer_error *err)
{
	int rc = ktrxer_xdp_attach(&s->attachment, ktrxer_rules_program_fd(&s->program), device, false, err);

	if (rc < 0 && s->program.nic && rc != -EBUSY && rc != -EPERM) {
		/* A program that is bound to the driver is for the driver's own mode alone. */
		ktrxer_rules_program_close(&s->program);
		program->nic = 0;
		rc = ktrxer_rules_program_open(&s->program, program, err);
		if (!rc)
			rc = ktrxer_xdp_attach(&s->attachment, ktrxer_rules_program_fd(&s->program), device, false,
					       err);
	}
	return rc;
}

static int xdp_open(struct krx_backend_state **out, const struct krx_backend_setup *setup, struct ktrxer_error *err)
{
	const struct ktrxer_device *device = setup->device;
	struct rules_setup program = { .rules = setup->rules,
				       .snap = setup->options->snap_length,
				       .ring_bytes = setup->options->ring_bytes };
	const int count = krx_ruleset_count(setup->rules);
	struct krx_backend_state *s;
	uint32_t chunk;
	int rc = suits(setup, err);

	if (rc < 0)
		return rc;
	s = calloc(1, sizeof *s);
	if (!s)
		return ktrxer_fail(err, -ENOMEM, "receiver: no memory");
	s->attachment.link = s->epoll = s->watch.fd = -1;
	s->held = HELD_NOTHING;
	s->device = device->index;
	s->link = program.link = device->link;
	s->loopback = device->loopback;
	memcpy(s->mac, device->mac, sizeof s->mac);
	s->captured = calloc((size_t)count, sizeof *s->captured);
	s->scratch = malloc(RULES_DATA_MAX + TAG_SIZE);
	if (!s->captured || !s->scratch) {
		rc = ktrxer_fail(err, -ENOMEM, "receiver: no memory for %d rules", count);
		goto fail;
	}
	chunk = ktrxer_xsk_receive_chunk(device->mtu, sizeof(struct rules_stamp));
	if (wants_op(setup->rules, KRX_CAPTURE_DROP) && device->link == KTRXER_LINK_ETHERNET)
		s->queues = receive_queues(device->name);
	program.queues = s->queues;
	program.xsk_most = ktrxer_xsk_receive_most(chunk, sizeof(struct rules_stamp));
	if (!device->loopback && device->link == KTRXER_LINK_ETHERNET)
		program.nic = device->index;
	rc = krx_watch_open(&s->watch, device, setup->options->promiscuous, err);
	if (!rc)
		rc = ktrxer_rules_program_open(&s->program, &program, err);
	if (rc < 0)
		goto fail;
	rc = program_place(s, &program, device, err);
	if (rc < 0)
		goto fail;
	note_add(s, s->attachment.note);
	if (setup->nic && !s->program.nic)
		note_add(s, "the driver does not tell XDP programs the NIC's stamps");
	if (s->queues)
		sockets_open(s, setup, chunk);
	rc = epoll_make(s, err);
	if (rc < 0)
		goto fail;
	*out = s;
	return 0;
fail:
	xdp_close(s);
	return rc;
}

static int xdp_fd(const struct krx_backend_state *s)
{
	return s->epoll;
}

static void give_back(struct krx_backend_state *s)
{
	if (s->held == HELD_RING)
		ktrxer_bpf_ring_take(&s->program.ring);
	else if (s->held >= 0)
		ktrxer_xsk_receive_take(&s->sockets[s->held]);
	s->held = HELD_NOTHING;
}

/* Bits of a group address are an odd first byte; all ones is broadcast. */
static uint8_t direction_of(const struct krx_backend_state *s, const struct krx_packet *packet)
{
	static const uint8_t everybody[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	if (s->loopback || packet->link != KTRXER_LINK_ETHERNET || packet->length < sizeof everybody)
		return 0;
	if (!memcmp(packet->data, everybody, sizeof everybody))
		return 1;
	if (packet->data[0] & 1)
		return 2;
	return memcmp(packet->data, s->mac, sizeof s->mac) ? 3 : 0;
}

static void tag_restore(struct krx_backend_state *s, struct krx_packet *packet, const struct rules_stamp *stamp)
{
	if (!stamp->vlan_tpid || packet->link != KTRXER_LINK_ETHERNET || packet->length < TAG_AT ||
	    packet->length > RULES_DATA_MAX)
		return;
	memcpy(s->scratch, packet->data, TAG_AT);
	memcpy(s->scratch + TAG_AT, &stamp->vlan_tpid, 2); /* in network order already */
	store_be16(s->scratch + TAG_AT + 2, stamp->vlan_tci);
	memcpy(s->scratch + TAG_AT + TAG_SIZE, packet->data + TAG_AT, packet->length - TAG_AT);
	packet->data = s->scratch;
	packet->length += TAG_SIZE;
	packet->original_length += TAG_SIZE;
	packet->vlan_present = 1;
	packet->vlan_tci = stamp->vlan_tci;
}

static void packet_set(struct krx_backend_state *s, struct krx_packet *packet, const struct rules_stamp *stamp,
		       const uint8_t *data, uint32_t length, uint32_t original)
{
	*packet = (struct krx_packet){ .data = data,
				       .length = length,
				       .original_length = original,
				       .mono_ns = stamp->mono_ns,
				       .rule = stamp->rule,
				       .device = s->device,
				       .link = (uint8_t)s->link };
	packet->raw_ns = stamp->nic_ns ? (int64_t)stamp->nic_ns : (int64_t)stamp->mono_ns;
	packet->clock = stamp->nic_ns ? KTRXER_CLOCK_PHC : KTRXER_CLOCK_MONOTONIC;
	packet->source = KTRXER_STAMP_XDP; /* of mono_ns; rx.c knows the NIC's clock */
	packet->direction = direction_of(s, packet);
	tag_restore(s, packet, stamp);
	if (packet->rule < s->program.rules)
		s->captured[packet->rule]++;
}

static int xdp_next(struct krx_backend_state *s, struct krx_packet *packet)
{
	const struct rules_record *record = NULL;
	const uint8_t *frame = NULL, *at;
	struct rules_stamp stamp = { 0 }, other;
	uint32_t length, frame_length = 0;

	give_back(s);
	at = ktrxer_bpf_ring_look(&s->program.ring, &length);
	if (at) {
		if (length < sizeof *record ||
		    ((const struct rules_record *)(const void *)at)->kept > length - sizeof *record)
			return -EBADMSG; /* the program does not do that: the ring is not what we think it is */
		record = (const void *)at;
		stamp = record->stamp;
		s->held = HELD_RING;
	}
	for (uint32_t i = 0; i < s->socket_count; i++) {
		at = ktrxer_xsk_receive_look(&s->sockets[i], &length);
		if (!at)
			continue;
		memcpy(&other, at - sizeof other, sizeof other);
		if (s->held != HELD_NOTHING && other.mono_ns >= stamp.mono_ns)
			continue;
		stamp = other;
		s->held = (int)i;
		frame = at;
		frame_length = length;
	}
	if (s->held == HELD_NOTHING)
		return krx_watch_look(&s->look, s->watch.fd, s->device);
	s->look.empty = false;
	if (s->held == HELD_RING)
		packet_set(s, packet, &stamp, record->data, record->kept, record->length);
	else
		packet_set(s, packet, &stamp, frame, frame_length, frame_length);
	return 1;
}

static int xdp_losses(struct krx_backend_state *s, uint64_t *lost, uint64_t *clock_steps)
{
	int rc = ktrxer_rules_program_lost(&s->program, lost);

	*clock_steps = 0; /* no stamp here is of a clock that is ever set */
	for (uint32_t i = 0; !rc && i < s->socket_count; i++) {
		uint64_t more = 0;

		rc = ktrxer_xsk_receive_lost(&s->sockets[i], &more);
		*lost += more;
	}
	return rc;
}

static int xdp_rule_stats(struct krx_backend_state *s, struct krx_rule_stats *rules, int count)
{
	for (int i = 0; i < count; i++) {
		struct rules_counts counts;
		int rc = ktrxer_rules_program_counts(&s->program, (uint32_t)i, &counts);

		if (rc < 0)
			return rc;
		rules[i] = (struct krx_rule_stats){ .matched = counts.matched,
						    .captured = s->captured[i],
						    .dropped = counts.dropped };
	}
	return 0;
}

static void xdp_describe(const struct krx_backend_state *s, struct krx_stats *stats)
{
	stats->before_taps = true;
	/*
	 * Generic XDP turns merging off in the host, but what a neighbour on this machine delivers whole stays whole.
	 */
	stats->after_gro = s->attachment.generic;
	stats->mode = s->attachment.generic ? "generic" : "native";
	stats->note = s->note;
}

const struct krx_backend krx_backend_xdp = {
	.name = "xdp",
	.ops = 1u << KRX_CAPTURE | 1u << KRX_DROP | 1u << KRX_CAPTURE_DROP | 1u << KRX_FORWARD,
	.why = "a rule drops, and XDP does it before the stack sees the packet",
	.decides = true,
	.nic_stamps = true,
	.open = xdp_open,
	.close = xdp_close,
	.fd = xdp_fd,
	.next = xdp_next,
	.losses = xdp_losses,
	.rule_stats = xdp_rule_stats,
	.describe = xdp_describe,
};
