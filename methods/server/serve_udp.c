/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_udp.h"

#include "base_limits.h"
#include "clock.h"
#include "error.h"
#include "message.h"
#include "name.h"
#include "reflector.h"
#include "server_socket.h"
#include "stampmap.h"
#include "txstamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KTRXER_SERVE_BATCH = 64 /* packets of one recvmmsg */ };

enum {
	BATCHES = 16, /* in a row, before other sources get their turn */
	CONTROL_OUT = CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(uint32_t)),
	MAP_SIZE = 4096,
	SOCKET_BYTES = 4 << 20,
};

struct incoming {
	union ktrxer_name from;
	_Alignas(struct cmsghdr) char control[KTRXER_MESSAGE_CONTROL];
	struct reflector_arrival arrival;
	struct reflector_answer answer;
	struct ktrxer_addr local; /* that the answer comes from */
	uint32_t ifindex;
};

struct outgoing {
	_Alignas(struct cmsghdr) char control[CONTROL_OUT];
	struct incoming *of;
};

struct serve_udp {
	struct loop_source source; /* first */
	struct loop *loop;
	struct serve_udp_options options;
	bool v6, has_send_stamps; /* when answers leave */
	struct ktrxer_clock_map clock;
	struct clock_adjust adjusted; /* read after the packets of the batch came */
	struct stampmap map;
	uint64_t stamps_requested, stamps_reported; /* stamps */
	int came, looked_at;                        /* of the batch: packets, and those that have their answers */
	struct loop_timer timer;                    /* goes on with a batch whose packets took more than their share */
	uint32_t overflow_seen;
	struct serve_udp_counts counts;
	struct mmsghdr in[KTRXER_SERVE_BATCH], out[KTRXER_SERVE_BATCH];
	struct iovec in_data[KTRXER_SERVE_BATCH], out_data[KTRXER_SERVE_BATCH];
	struct incoming incoming[KTRXER_SERVE_BATCH];
	struct outgoing outgoing[KTRXER_SERVE_BATCH];
	/* One byte more than is answered, so that what is cut is seen to be. */
	uint8_t data[KTRXER_SERVE_BATCH][KTRXER_REFLECTOR_PACKET_MAX + 8];
};

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value) ? -errno : 0;
}

static int socket_make(struct serve_udp *udp, struct ktrxer_error *err)
{
	const struct serve_udp_options *o = &udp->options;
	const bool passed = KTRXER_SERVER_EXTRAS && o->passed_fd;
	int fd = passed ? o->passed_fd : socket(o->bind.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "UDP socket: %m");
	}
	if (udp->v6) {
		rc = set(fd, SOL_IPV6, IPV6_RECVPKTINFO, 1);
		/*
		 * An answer is fragmented as its request was: the server does no discovery of the path MTU to its
		 * clients.
		 */
		set(fd, SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	} else {
		rc = set(fd, SOL_IP, IP_PKTINFO, 1);
		set(fd, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	}
	if (rc < 0) {
		ktrxer_fail(err, rc, "this kernel does not tell which address a datagram was sent to (IP_PKTINFO)");
		goto fail;
	}
	ktrxer_message_enable(fd, o->bind.family);
	for (int i = 0; i < 2; i++) {
		/* Without privileges a passed socket keeps its buffers, which may be above the limit of SO_RCVBUF. */
		if (set(fd, SOL_SOCKET, i ? SO_SNDBUFFORCE : SO_RCVBUFFORCE, SOCKET_BYTES) < 0 && !passed)
			set(fd, SOL_SOCKET, i ? SO_SNDBUF : SO_RCVBUF, SOCKET_BYTES);
	}
	udp->has_send_stamps = ktrxer_replystamp_enable(fd) == 0;
	if (!udp->has_send_stamps)
		ktrxer_rxstamp_enable(fd);
	rc = passed ? 0 : server_socket_bind(fd, &o->bind, o->port, err);
	if (rc == 0)
		return fd;
fail:
	close(fd);
	return rc;
}

static void udp_ready(struct loop_source *source, uint32_t events);
static void udp_due(struct loop_timer *timer, uint64_t now_ns);

int serve_udp_open(struct serve_udp **out, struct loop *loop, const struct serve_udp_options *options,
		   struct ktrxer_error *err)
{
	struct serve_udp *udp = calloc(1, sizeof *udp);
	int rc;

	*out = NULL;
	if (!udp || ktrxer_stampmap_init(&udp->map, MAP_SIZE, 0) < 0) {
		free(udp);
		return ktrxer_fail(err, -ENOMEM, "no memory for a socket's buffers");
	}
	udp->options = *options;
	udp->loop = loop;
	udp->v6 = options->bind.family == AF_INET6;
	ktrxer_clock_map_init(&udp->clock);
	for (int i = 0; i < KTRXER_SERVE_BATCH; i++) {
		udp->in_data[i] = (struct iovec){ .iov_base = udp->data[i], .iov_len = sizeof udp->data[i] };
		udp->in[i].msg_hdr.msg_iov = &udp->in_data[i];
		udp->out[i].msg_hdr.msg_iov = &udp->out_data[i];
		udp->in[i].msg_hdr.msg_iovlen = udp->out[i].msg_hdr.msg_iovlen = 1;
	}
	udp->source.ready = udp_ready;
	udp->source.fd = rc = socket_make(udp, err);
	if (rc < 0)
		goto no_socket;
	rc = loop_watch(loop, &udp->source, EPOLLIN);
	if (rc < 0) {
		ktrxer_fail(err, rc, "the event loop does not take a socket");
		goto no_watch;
	}
	udp->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = udp_due };
	loop_timer_add(loop, &udp->timer);
	*out = udp;
	return 0;

no_watch:
	close(udp->source.fd);
no_socket:
	ktrxer_stampmap_free(&udp->map);
	free(udp);
	return rc;
}

void serve_udp_close(struct serve_udp *udp)
{
	if (!udp)
		return;
	loop_unwatch(udp->loop, &udp->source);
	loop_timer_remove(udp->loop, &udp->timer);
	close(udp->source.fd);
	ktrxer_stampmap_free(&udp->map);
	free(udp);
}

void serve_udp_counts(struct serve_udp *udp, struct serve_udp_counts *counts)
{
	ktrxer_socket_drops(udp->source.fd, &udp->overflow_seen, &udp->counts.overflows);
	*counts = udp->counts;
}

static void arrival_read(struct serve_udp *udp, struct msghdr *header, struct incoming *in, uint64_t now_ns)
{
	struct ktrxer_message m;

	ktrxer_message_read(&m, header);
	ktrxer_message_drops(&m, &udp->overflow_seen, &udp->counts.overflows);
	in->arrival = (struct reflector_arrival){ .to = m.to,
						  .to_port = udp->options.port,
						  .ttl = m.ttl,
						  .tos = m.tos,
						  .received_real_ns = m.real_ns,
						  .adjusted = udp->adjusted,
						  .now_ns = now_ns,
						  .overflows = udp->counts.overflows };
	in->arrival.from_port = ktrxer_name_read(&in->from, &in->arrival.from);
	/* A group or broadcast address in the IP header is no address of this host. */
	in->arrival.to_group = !ktrxer_addr_equal(&m.to, &m.local);
	if (udp->options.trusted)
		in->arrival.trusted = udp->options.trusted(udp->options.context, &in->arrival.from, now_ns);
	in->local = m.local;
	in->ifindex = m.ifindex;
	if (!m.real_ns) {
		in->arrival.received_real_ns = ktrxer_real_now_ns();
		udp->counts.user_stamps++;
	}
}

static void answer_prepare(struct serve_udp *udp, int i, struct incoming *in, uint32_t length)
{
	struct msghdr *message = &udp->out[i].msg_hdr;
	const int tos = in->answer.tos;

	udp->outgoing[i].of = in;
	udp->out_data[i] = (struct iovec){ .iov_base = udp->data[in - udp->incoming], .iov_len = length };
	message->msg_name = &in->from;
	message->msg_namelen = udp->v6 ? sizeof in->from.v6 : sizeof in->from.v4;
	message->msg_control = udp->outgoing[i].control;
	message->msg_controllen = 0;
	ktrxer_message_add_source(message, &in->local, in->ifindex);
	if (tos)
		ktrxer_message_add(message, udp->v6 ? SOL_IPV6 : SOL_IP, udp->v6 ? IPV6_TCLASS : IP_TOS, &tos,
				   sizeof tos);
	in->answer.follow &= udp->has_send_stamps;
	if (in->answer.follow) {
		const uint32_t flags = KTRXER_TXSTAMP_ONE;

		ktrxer_message_add(message, SOL_SOCKET, KTRXER_TXSTAMP_CONTROL, &flags, sizeof flags);
	}
}

static void taken(struct serve_udp *udp, int from, int to, uint64_t call_ns)
{
	for (int i = from; i < to; i++) {
		const struct reflector_answer *answer = &udp->outgoing[i].of->answer;

		udp->counts.sent++;
		if (!answer->follow)
			continue;
		ktrxer_stampmap_sent(&udp->map, (uint64_t)answer->session << 32 | answer->seq, call_ns);
		udp->stamps_requested++;
	}
}

static void refused(struct serve_udp *udp, int i, int error)
{
	struct incoming *in = udp->outgoing[i].of;

	udp->counts.refused++;
	if (!in->answer.follow)
		return;
	/*
	 * A kernel before 4.6 knows no stamps for single datagrams: answers are worth more than the time that they
	 * left.
	 */
	if (error == EINVAL)
		udp->has_send_stamps = false;
	ktrxer_stampmap_ambiguous(&udp->map);
}

static void answers_send(struct serve_udp *udp, int count)
{
	int at = 0;

	for (int i = 0; i < count; i++)
		reflector_finish(udp->options.reflector, udp->out_data[i].iov_base, &udp->outgoing[i].of->answer,
				 ktrxer_real_now_ns());
	while (at < count) {
		const uint64_t call_ns = ktrxer_now_ns();
		int n;

		if (count - at == 1)
			n = sendmsg(udp->source.fd, &udp->out[at].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
		else
			n = sendmmsg(udp->source.fd, udp->out + at, (unsigned)(count - at), MSG_DONTWAIT);
		if (n <= 0) {
			refused(udp, at, errno);
			at++;
			continue;
		}
		taken(udp, at, at + n, call_ns);
		at += n;
	}
}

static void left(void *context, uint32_t key, int64_t real_ns, enum ktx_departure_source source, bool nic_clock)
{
	struct serve_udp *udp = context;
	const uint64_t mono = nic_clock ? KTRXER_NEVER : ktrxer_clock_map_mono(&udp->clock, real_ns);
	uint64_t slot;

	(void)source;
	udp->stamps_reported++;
	if (!ktrxer_stampmap_find(&udp->map, key,
				  ktrxer_clock_map_stepped(&udp->clock, ktrxer_now_ns()) ? KTRXER_NEVER : mono,
				  ktrxer_clock_map_bound(&udp->clock), &slot))
		return;
	if (nic_clock) /* of another clock than T2: of no use to the sender */
		return;
	udp->counts.left_stamps++;
	reflector_sent(udp->options.reflector, (uint32_t)(slot >> 32), (uint32_t)slot, real_ns, false);
}

static void leaving_reap(struct serve_udp *udp)
{
	const struct ktx_completions completions = { .stamp = left, .context = udp };

	ktrxer_clock_map_refresh(&udp->clock, ktrxer_now_ns(), KTRXER_NS_PER_MS);
	ktrxer_txstamp_reap(udp->source.fd, &completions);
	if (ktrxer_stampmap_wants_reset(&udp->map)) {
		ktrxer_replystamp_restart(udp->source.fd);
		ktrxer_stampmap_reset(&udp->map, ktrxer_now_ns());
	}
}

static int batch_receive(struct serve_udp *udp)
{
	for (int i = 0; i < KTRXER_SERVE_BATCH; i++) {
		struct msghdr *m = &udp->in[i].msg_hdr;

		m->msg_name = &udp->incoming[i].from;
		m->msg_namelen = sizeof udp->incoming[i].from;
		m->msg_control = udp->incoming[i].control;
		m->msg_controllen = KTRXER_MESSAGE_CONTROL;
		m->msg_flags = 0;
	}
	return recvmmsg(udp->source.fd, udp->in, KTRXER_SERVE_BATCH, MSG_DONTWAIT, NULL);
}

/* False: no more packets now. */
static bool batch(struct serve_udp *udp)
{
	const uint64_t now_ns = ktrxer_now_ns();
	int answers = 0;

	if (udp->looked_at == udp->came) {
		udp->came = batch_receive(udp);
		udp->looked_at = 0;
		if (udp->came <= 0) {
			udp->came = 0;
			return false;
		}
		udp->counts.received += (uint64_t)udp->came;
		clock_adjust_read(&udp->adjusted, CLOCK_REALTIME);
	}
	do {
		const int i = udp->looked_at++;
		struct incoming *in = &udp->incoming[i];
		const uint32_t cut = udp->in[i].msg_hdr.msg_flags & MSG_TRUNC ? 1 : 0;
		uint32_t length = udp->in[i].msg_len;

		arrival_read(udp, &udp->in[i].msg_hdr, in, now_ns);
		if (udp->options.claim) {
			const struct serve_datagram datagram = { udp->data[i], length, length + cut, udp->source.fd,
								 in->arrival };

			if (udp->options.claim(udp->options.context, &datagram))
				continue;
		}
		if (in->local.family && reflector_answer(udp->options.reflector, udp->data[i], length, length + cut,
							 &in->arrival, &in->answer) == REFLECTOR_ANSWER)
			answer_prepare(udp, answers++, in, length);
	} while (udp->looked_at < udp->came && !loop_share_used(udp->loop));
	answers_send(udp, answers);
	/* Most drivers, and all virtual ones, have stamped by the time that the call returns. */
	if (udp->stamps_requested > udp->stamps_reported)
		leaving_reap(udp);
	return udp->came == KTRXER_SERVE_BATCH || udp->looked_at < udp->came;
}

static void batches(struct serve_udp *udp)
{
	for (int i = 0; i < BATCHES && batch(udp) && !loop_share_used(udp->loop); i++)
		;
	/* Packets that are in our memory do not make the socket ready. */
	udp->timer.at_ns = udp->looked_at < udp->came ? 0 : KTRXER_NEVER;
}

static void udp_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	batches((struct serve_udp *)((char *)timer - offsetof(struct serve_udp, timer)));
}

static void udp_ready(struct loop_source *source, uint32_t events)
{
	struct serve_udp *udp = (struct serve_udp *)source;

	if (events & EPOLLERR)
		leaving_reap(udp);
	if (events & EPOLLIN)
		batches(udp);
}
