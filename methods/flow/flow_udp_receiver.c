/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The receiver of a UDP flow: its socket, or packets from a socket that flows share. */
#include "flow_udp_state.h"

#include "error.h"
#include "flow_witness.h"
#include "message.h"
#include "name.h"
#include "path_witness.h"
#include "txstamp.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BATCH = 32,
	ROUNDS = 8,
	RECEIVE_BYTES = 4 << 20,
	SILENT_GAPS = 4, /* a slow flow has times without a packet */
};
#define CLOCK_AGE_NS ((uint64_t)KTRXER_NS_PER_S / 10)

/* When packet 0 would have come, if this one is the first. */
static uint64_t first_ns(const struct flow *flow, uint64_t number, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns > flow->start_ns ? now_ns - flow->start_ns : 0;
	const double before_ns = (double)number * (double)flow_udp_gap_ns(&flow->spec);

	return before_ns < (double)since_ns ? now_ns - (uint64_t)before_ns : flow->start_ns;
}

bool flow_udp_packet(struct flow *flow, const uint8_t *data, uint32_t length, uint8_t tos, uint64_t now_ns,
		     int64_t real_ns)
{
	struct flow_udp *u = flow->udp;
	struct bytes b = bytes_of(data, length < FLOW_PACKET_HEAD ? length : FLOW_PACKET_HEAD);
	const uint8_t *tag = bytes_take(&b, sizeof u->tag);
	const uint64_t number = bytes_be64(&b);

	bytes_be64(&b);
	if (!b.ok || !secret_equal(tag, u->tag, sizeof u->tag))
		return false;
	if (flow->end.reason)
		return true;
	flow_count_packet(&u->count, number, length, tos);
	if (!flow->end.first_ns)
		flow->end.first_ns = first_ns(flow, number, now_ns);
	u->gap_ns = u->last_ns ? now_ns - u->last_ns : 0;
	u->last_ns = now_ns;
	if (flow->spec.model == FLOW_TRAIN && real_ns) {
		ktrxer_clock_map_refresh(&u->clock, now_ns, CLOCK_AGE_NS);
		flow_udp_say_packet(u, FLOW_PACKET_ARRIVED, number, ktrxer_clock_map_mono(&u->clock, real_ns));
	}
	if (u->reported && u->count.packets >= u->reported_packets && flow->state == FLOW_GOING)
		flow_finish(flow, FLOW_PLANNED, 0);
	return true;
}

uint64_t flow_udp_tag(const uint8_t *data, uint32_t length)
{
	return length < FLOW_PACKET_HEAD ? 0 : load_be64(data);
}

bool flow_udp_moves(struct flow *flow, const uint8_t *data, uint32_t length)
{
	struct flow_udp *u = flow->udp;

	if (!u || flow->sends || flow->state == FLOW_IDLE || flow->end.reason || length < FLOW_PACKET_HEAD ||
	    !secret_equal(data, u->tag, sizeof u->tag))
		return false;
	if (load_be64(data + sizeof u->tag) - u->count.next >= FLOW_COUNT_LEAP)
		return false;
	flow->end.moves++;
	return true;
}

static void received(struct flow *flow, struct msghdr *message, uint32_t length, const union ktrxer_name *from)
{
	struct flow_udp *u = flow->udp;
	struct ktrxer_message m;
	struct ktrxer_addr addr;

	ktrxer_name_read(from, &addr);
	addr.scope_id = u->peer.scope_id;
	if (!ktrxer_addr_equal(&addr, &u->peer))
		return;
	ktrxer_message_read(&m, message);
	if (flow_set_options(flow->set)->witness)
		path_witness_arrived(flow_set_options(flow->set)->witness, m.ifindex);
	flow_udp_packet(flow, message->msg_iov->iov_base, length, m.tos, ktrxer_now_ns(), m.real_ns);
}

static void udp_ready(struct loop_source *source, uint32_t events)
{
	struct flow *flow = (struct flow *)source;
	_Alignas(struct cmsghdr) char control[BATCH][KTRXER_MESSAGE_CONTROL];
	uint8_t data[BATCH][FLOW_PACKET_HEAD];
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];
	union ktrxer_name from[BATCH];

	if (events & EPOLLERR)
		(void)flow_witness_take(flow, source->fd);
	for (int round = 0; round < ROUNDS && flow->source.fd >= 0; round++) {
		int n;

		for (int i = 0; i < BATCH; i++) {
			vectors[i] = (struct iovec){ data[i], sizeof data[i] };
			messages[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
							       .msg_namelen = sizeof from[i],
							       .msg_iov = &vectors[i],
							       .msg_iovlen = 1,
							       .msg_control = control[i],
							       .msg_controllen = sizeof control[i] };
		}
		/* MSG_TRUNC: the length is that of the packet; only its head is read. */
		n = recvmmsg(source->fd, messages, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		if (n <= 0)
			return;
		for (int i = 0; i < n; i++)
			received(flow, &messages[i].msg_hdr, messages[i].msg_len, &from[i]);
		if (n < BATCH)
			return;
	}
}

int flow_udp_open_receiver(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE], const struct flow_udp_route *route,
			   struct ktrxer_error *err)
{
	const int room = RECEIVE_BYTES;
	struct ktrxer_addr any = { .family = route->to.family };
	union ktrxer_name name;
	socklen_t length = ktrxer_name_make(&name, route->from.family ? &route->from : &any, 0);
	int rc = flow_udp_new(flow, cookie), fd;

	if (rc < 0)
		return ktrxer_fail(err, rc, "no memory for a UDP flow");
	fd = socket(route->to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, &name.sa, length) != 0) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return ktrxer_fail(err, rc, "UDP socket: %m");
	}
	ktrxer_message_enable(fd, route->to.family);
	ktrxer_message_enable_device(fd, route->to.family);
	if (flow->spec.model == FLOW_TRAIN)
		ktrxer_rxstamp_enable(fd);
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	flow->udp->peer = route->to;
	flow->unwatched = route->device; /* it is of the flows up: this socket sends by the route */
	flow->udp->socket = fd;
	flow->source = (struct loop_source){ .fd = fd, .ready = udp_ready };
	return loop_watch(flow->udp->loop, &flow->source, EPOLLIN);
}

int flow_udp_open_counter(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE])
{
	return flow_udp_new(flow, cookie);
}

void flow_udp_call(struct flow *flow, uint16_t to_port, const uint8_t preface[CONTROL_PREFACE])
{
	union ktrxer_name name;
	const socklen_t length = ktrxer_name_make(&name, &flow->udp->peer, to_port);

	flow_witness_begin(flow, flow->source.fd);
	(void)!sendto(flow->source.fd, preface, CONTROL_PREFACE, MSG_DONTWAIT, &name.sa, length);
	flow_witness_end(flow, flow->source.fd);
}

bool flow_udp_is_silent(const struct flow *flow, uint64_t now_ns, uint64_t for_ns)
{
	const struct flow_udp *u = flow->udp;
	const uint64_t planned_ns = flow_udp_gap_ns(&flow->spec), gap_ns = flow_udp_arrival_gap_ns(flow),
		       longer_ns = gap_ns > planned_ns ? gap_ns : planned_ns;

	if (SILENT_GAPS * longer_ns > for_ns)
		for_ns = SILENT_GAPS * longer_ns;
	return now_ns >= (u->last_ns ? u->last_ns : flow->start_ns) + for_ns;
}

void flow_udp_shared(struct flow *flow, int fd, uint64_t overflows)
{
	struct flow_udp *u = flow->udp;

	if (u->socket >= 0)
		return;
	u->socket = fd;
	u->overflow_seen = (uint32_t)overflows;
}
