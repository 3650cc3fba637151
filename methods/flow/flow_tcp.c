/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_tcp.h"

#include "flow_witness.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READ_MAX = 1 << 20,
	/*
	 * A sender's queue of unsent data is enough for one turn of the loop, and little of it is old when it leaves.
	 */
	UNSENT_MAX = 512 << 10,
	/*
	 * A receiver is woken when so much is there, and not for each packet: at 50 Mbit/s that is nine tenths of what
	 * it costs. It is little beside the smallest window (64 KiB), a full window wakes us all the same, and each
	 * sample reads what there is. The first byte wakes it, because the time of a rate begins with it.
	 */
	WAKE_AT = 16 << 10,
	/*
	 * The kernel sends the first ten segments without pacing (tcp_update_skb_after_send), at 64 kbit/s the bytes of
	 * two seconds. The sender hands these bytes over as the rate says: in parts of a tenth of a second, or of a
	 * segment. Each such flow has a timer in the loop, so sets of more flows leave it to the kernel.
	 */
	BEGIN_BYTES = 16 << 10,
	BEGIN_PART = 1448,
	BEGIN_FLOWS = 64,
};

int flow_tcp_cc(const char *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

static void pace(int fd, uint64_t bit_s)
{
	const uint64_t bytes_s = bit_s / 8 ? bit_s / 8 : 1;
	/* The kernel's rate is an unsigned long: 32 bits there are all ones for "no limit". */
	unsigned long rate = bytes_s < (unsigned long)-1 ? (unsigned long)bytes_s : (unsigned long)-2;

	if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) != 0) {
		uint32_t less = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX - 1;

		(void)!setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &less, sizeof less);
	}
}

static uint64_t lower_pace(const struct flow_spec *spec, uint64_t pace_bps)
{
	return pace_bps && (!spec->rate_bps || spec->rate_bps > pace_bps) ? pace_bps : spec->rate_bps;
}

int flow_tcp_prepare(int fd, const struct flow_spec *spec, bool sends, uint64_t pace_bps)
{
	const int tos = spec->tos & 0xfc, unsent = UNSENT_MAX;
	const uint64_t rate = lower_pace(spec, pace_bps);
	int family = AF_INET;
	socklen_t length = sizeof family;
	bool v6;

	(void)!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
	v6 = family == AF_INET6;

	if (setsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof tos) != 0)
		return -errno;
	if (!sends)
		return 0;
	if (spec->cc[0] && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, spec->cc, (socklen_t)strlen(spec->cc)) != 0)
		return -errno;
	if (rate)
		pace(fd, rate);
	(void)!setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
	return 0;
}

void flow_tcp_cc_name(int fd, char name[FLOW_CC_MAX])
{
	socklen_t length = FLOW_CC_MAX;

	memset(name, 0, FLOW_CC_MAX);
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0)
		name[0] = '\0';
	name[FLOW_CC_MAX - 1] = '\0';
}

/* Returns how much of it this kernel has; the rest is zero. */
static size_t info_read(int fd, struct tcp_info *info)
{
	socklen_t length = sizeof *info;

	memset(info, 0, sizeof *info);
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0 ? length : 0;
}

#define HAS(length, field) ((length) >= offsetof(struct tcp_info, field) + sizeof(((struct tcp_info *)0)->field))

uint64_t flow_tcp_acked(int fd)
{
	struct tcp_info info;
	const size_t length = info_read(fd, &info);

	return HAS(length, tcpi_bytes_acked) ? info.tcpi_bytes_acked : UINT64_MAX;
}

bool flow_tcp_traffic(int fd, uint64_t *up_bytes, uint64_t *down_bytes)
{
	enum { HEADERS4 = 20 + 32, HEADERS6 = 40 + 32 }; /* TCP with timestamps */
	struct tcp_info info;
	const size_t have = info_read(fd, &info);
	socklen_t length = sizeof(int);
	int family = AF_INET;
	uint64_t head;

	if (!HAS(have, tcpi_segs_in))
		return false;
	(void)!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
	head = family == AF_INET6 ? HEADERS6 : HEADERS4;
	/* Of the bytes that were sent again all times count, except in kernels before 4.19. */
	*up_bytes = HAS(have, tcpi_bytes_sent) ? info.tcpi_bytes_sent : info.tcpi_bytes_acked;
	*up_bytes += info.tcpi_segs_out * head;
	*down_bytes = info.tcpi_bytes_received + info.tcpi_segs_in * head;
	return true;
}

uint32_t flow_tcp_repeats(int fd)
{
	struct tcp_info info;

	info_read(fd, &info);
	return info.tcpi_total_retrans;
}

static uint64_t acked(const struct flow *flow, const struct tcp_info *info, size_t length)
{
	uint64_t bytes;
	int waits = 0;

	if (HAS(length, tcpi_bytes_acked) && flow->acked_base != UINT64_MAX)
		bytes = info->tcpi_bytes_acked > flow->acked_base ? info->tcpi_bytes_acked - flow->acked_base : 0;
	else if (ioctl(flow->source.fd, SIOCOUTQ, &waits) == 0 && (uint64_t)waits <= flow->bytes)
		bytes = flow->bytes - (uint64_t)waits; /* kernels before 4.1 */
	else
		bytes = 0;
	/* A FIN counts as a byte there. */
	return bytes < flow->bytes ? bytes : flow->bytes;
}

static uint64_t times8(uint64_t bytes_s)
{
	return bytes_s >= UINT32_MAX * 1024ull * 1024 ? UINT64_MAX : bytes_s * 8;
}

#define TAKE(index, field, value) \
	do { \
		if (HAS(length, field)) \
			sample->values[index] = (value); \
	} while (0)

static void count(struct flow *flow, size_t bytes)
{
	if (!flow->end.first_ns) {
		flow->end.first_ns = ktrxer_now_ns();
		(void)!setsockopt(flow->source.fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ WAKE_AT }, sizeof(int));
	}
	flow->bytes += bytes;
}

/*
 * Reads what lies below WAKE_AT. The end of the stream stays in the socket, for the source that it wakes; the socket
 * reports an error once, so it is kept.
 */
static void read_rest(struct flow *flow)
{
	ssize_t n;

	/* The first sample is of the beginning, whatever has come since. */
	if (flow->state != FLOW_GOING || flow->end.reason || !flow->sampled_ns)
		return;
	for (int i = flow_set_rounds(flow->set); i > 0; i--) {
		n = recv(flow->source.fd, NULL, READ_MAX, MSG_DONTWAIT | MSG_TRUNC);
		if (n > 0)
			count(flow, (size_t)n);
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			flow->cut_error = errno;
		if (n < READ_MAX / 4)
			return;
	}
}

/* tcpi_received_ce is the last member that older headers lack: it follows tcpi_total_rto_time. Since Linux 6.18. */
enum { RECEIVED_CE_AT = 248, INFO_BYTES = RECEIVED_CE_AT + 4 };

/*
 * The ECN marks that arrived, where both ends agreed on ECN. The time of the first CE is kept, because the last ones
 * are not reported back before the end.
 */
static void ecn_sample(struct flow *flow)
{
	_Alignas(struct tcp_info)
		uint8_t bytes[INFO_BYTES > sizeof(struct tcp_info) ? INFO_BYTES : sizeof(struct tcp_info)];
	struct tcp_info info;
	socklen_t length = sizeof bytes;

	if (flow->end.ecn_seen == FLOW_ECN_UNKNOWN && flow->sampled_ns)
		return;
	if (getsockopt(flow->source.fd, IPPROTO_TCP, TCP_INFO, bytes, &length) != 0)
		return;
	memcpy(&info, bytes, sizeof info);
	if (!(info.tcpi_options & FLOW_ECN_NEGOTIATED))
		return;
	flow->end.ecn_seen = info.tcpi_options & FLOW_ECN_ARRIVED ? FLOW_ECN_SEEN : FLOW_ECN_NONE;
	flow->end.ce_segments = UINT32_MAX;
	if (length < INFO_BYTES)
		return;
	memcpy(&flow->end.ce_segments, bytes + RECEIVED_CE_AT, sizeof flow->end.ce_segments);
	if (flow->end.ce_segments && !flow->end.ce_first_ns)
		flow->end.ce_first_ns = ktrxer_now_ns();
}

/* A receiver samples after it has read all data. */
static void tcp_sample(struct flow *flow, struct flow_sample *sample)
{
	struct tcp_info info;
	size_t length;

	(void)flow_witness_take(flow, flow->source.fd);
	if (!flow->sends) {
		read_rest(flow);
		ecn_sample(flow);
	}
	sample->kind = FLOW_BYTES;
	sample->bytes = flow->bytes;
	if (!flow->sends)
		return;
	flow_witness_due(flow);
	length = info_read(flow->source.fd, &info);
	sample->bytes = acked(flow, &info, length);
	sample->kind = FLOW_TCP;
	for (int i = 0; i < FLOW_TCP_VALUES; i++)
		sample->values[i] = UINT64_MAX;
	TAKE(FLOW_RTT_US, tcpi_rtt, info.tcpi_rtt);
	TAKE(FLOW_RTTVAR_US, tcpi_rttvar, info.tcpi_rttvar);
	TAKE(FLOW_MIN_RTT_US, tcpi_min_rtt, info.tcpi_min_rtt == UINT32_MAX ? UINT64_MAX : info.tcpi_min_rtt);
	TAKE(FLOW_CWND, tcpi_snd_cwnd, info.tcpi_snd_cwnd);
	TAKE(FLOW_SSTHRESH, tcpi_snd_ssthresh,
	     info.tcpi_snd_ssthresh >= 0x7fffffff ? UINT64_MAX : info.tcpi_snd_ssthresh);
	TAKE(FLOW_UNACKED, tcpi_unacked, info.tcpi_unacked);
	TAKE(FLOW_LOST, tcpi_lost, info.tcpi_lost);
	TAKE(FLOW_RETRANSMITS, tcpi_total_retrans, info.tcpi_total_retrans);
	TAKE(FLOW_DELIVERY_BPS, tcpi_delivery_rate, times8(info.tcpi_delivery_rate));
	TAKE(FLOW_PACING_BPS, tcpi_pacing_rate, times8(info.tcpi_pacing_rate));
	TAKE(FLOW_DELIVERED, tcpi_delivered, info.tcpi_delivered);
	TAKE(FLOW_DELIVERED_CE, tcpi_delivered_ce, info.tcpi_delivered_ce);
	TAKE(FLOW_NOTSENT, tcpi_notsent_bytes, info.tcpi_notsent_bytes);
	TAKE(FLOW_MSS, tcpi_snd_mss, info.tcpi_snd_mss);
	TAKE(FLOW_PMTU, tcpi_pmtu, info.tcpi_pmtu);
	TAKE(FLOW_RCV_WINDOW, tcpi_snd_wnd, info.tcpi_snd_wnd);
	TAKE(FLOW_REORDERING, tcpi_reordering, info.tcpi_reordering);
	TAKE(FLOW_CA_STATE, tcpi_ca_state, info.tcpi_ca_state);
	TAKE(FLOW_OPTIONS, tcpi_options, info.tcpi_options);
}

/* Zero: none. */
static int socket_error(int fd)
{
	int error = 0;
	socklen_t length = sizeof error;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

static void all_is_sent(struct flow *flow)
{
	flow->state = FLOW_SETTLING;
	flow->settle_ns = flow->end_ns;
	shutdown(flow->source.fd, SHUT_WR);
	/* The receiver closes when it has read all. */
	loop_watch(flow_set_options(flow->set)->loop, &flow->source, EPOLLIN);
}

static void begin_end(struct flow *flow)
{
	if (flow->begins)
		loop_timer_remove(flow_set_options(flow->set)->loop, &flow->begin);
	flow->begins = false;
}

static void begin_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct flow *flow = (struct flow *)((char *)timer - offsetof(struct flow, begin));

	(void)now_ns;
	timer->at_ns = KTRXER_NEVER;
	if (flow->state == FLOW_GOING)
		loop_watch(flow_set_options(flow->set)->loop, &flow->source, EPOLLOUT | EPOLLRDHUP);
}

/* Returns how many bytes the sender may hand over now; 0: `begin` goes on with it. */
static uint64_t begin_room(struct flow *flow)
{
	const double bytes_ns = (double)flow->pace_bps / 8e9;
	const uint64_t tenth = flow->pace_bps / 80 + 1, part = tenth < BEGIN_PART ? tenth : BEGIN_PART;
	const uint64_t now_ns = ktrxer_now_ns();
	const uint64_t due = now_ns > flow->start_ns ? (uint64_t)((double)(now_ns - flow->start_ns) * bytes_ns) : 0;

	if (flow->bytes >= BEGIN_BYTES) {
		begin_end(flow);
		return FLOW_BLOCK;
	}
	if (due >= flow->bytes + part)
		return due - flow->bytes;
	flow->begin.at_ns = flow->start_ns + (uint64_t)((double)(flow->bytes + part) / bytes_ns) + 1;
	loop_watch(flow_set_options(flow->set)->loop, &flow->source, EPOLLRDHUP);
	return 0;
}

static void move_out(struct flow *flow)
{
	const struct flow_set_options *o = flow_set_options(flow->set);

	for (int i = flow_set_rounds(flow->set); i > 0; i--) {
		const uint64_t room = flow->begins ? begin_room(flow) : FLOW_BLOCK;
		uint64_t left = o->bytes ? o->bytes - flow->bytes : FLOW_BLOCK;
		ssize_t n;

		if (!room)
			return;
		left = left < room ? left : room;
		if (flow->stamp_due)
			flow_witness_begin(flow, flow->source.fd);
		n = send(flow->source.fd, flow_set_block(flow->set), left < FLOW_BLOCK ? (size_t)left : FLOW_BLOCK,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		flow_witness_end(flow, flow->source.fd);
		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
			return;
		if (n < 0) {
			flow_finish(flow, FLOW_BROKEN, errno);
			return;
		}
		flow->bytes += (uint64_t)n;
		if (o->bytes && flow->bytes == o->bytes) {
			all_is_sent(flow);
			return;
		}
		if (n < FLOW_BLOCK || loop_share_used(o->loop))
			return;
	}
}

/* Nothing is counted once the flow has ended. */
static void move_in(struct flow *flow)
{
	const struct flow_set_options *o = flow_set_options(flow->set);
	const bool counts = !flow->end.reason;

	for (int i = flow_set_rounds(flow->set); i > 0; i--) {
		/* MSG_TRUNC: the bytes are counted and let go where they are, not copied to here. */
		ssize_t n = recv(flow->source.fd, NULL, READ_MAX, MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			const int error = n < 0 ? errno : flow->cut_error;
			const bool all =
				flow->sends ? flow->state == FLOW_SETTLING : o->bytes && flow->bytes == o->bytes;

			if (!flow->sends && flow->state == FLOW_GOING && !flow->end.reason &&
			    flow->end_ns != KTRXER_NEVER && !all)
				flow_cut(flow, error);
			else
				flow_finish(flow, error ? FLOW_BROKEN : all ? FLOW_PLANNED : FLOW_CLOSED, error);
			return;
		}
		if (counts && !flow->sends)
			count(flow, (size_t)n);
		if (n < READ_MAX / 4 || loop_share_used(o->loop))
			return;
	}
}

static void tcp_ready(struct loop_source *source, uint32_t events)
{
	struct flow *flow = (struct flow *)source;

	/* A stamp makes the descriptor readable as an error does; an error of the connection stays, and comes again. */
	if (events & EPOLLERR && flow_witness_take(flow, source->fd)) {
		events &= ~(uint32_t)EPOLLERR;
		if (!events)
			return;
	}
	if (flow->sends && flow->state == FLOW_GOING) {
		/* The receiver of a sender that is behind waits KTRXER_FLOW_SETTLE_S, and then closes. */
		if (flow->end_ns <= ktrxer_now_ns()) {
			flow_finish(flow, FLOW_PLANNED, 0);
		} else if (events & (EPOLLERR | EPOLLHUP)) {
			const int error = socket_error(source->fd);

			flow_finish(flow, error ? FLOW_BROKEN : FLOW_CLOSED, error);
		} else if (events & EPOLLOUT) {
			move_out(flow);
		} else if (events & EPOLLRDHUP) {
			flow_finish(flow, FLOW_CLOSED, 0);
		}
		return;
	}
	if (flow->state == FLOW_ATTACHED) { /* nothing was asked for but errors */
		const int error = socket_error(source->fd);

		flow_finish(flow, error ? FLOW_BROKEN : FLOW_CLOSED, error);
		return;
	}
	move_in(flow);
}

static void tcp_begin(struct flow *flow)
{
	struct loop *loop = flow_set_options(flow->set)->loop;

	flow->source.ready = tcp_ready;
	if (flow->state == FLOW_ATTACHED)
		loop_watch(loop, &flow->source, 0);
	else
		loop_watch(loop, &flow->source, flow->sends ? EPOLLOUT | EPOLLRDHUP : EPOLLIN);
	if (flow->state != FLOW_GOING || !flow->sends || !flow->pace_bps || flow_set_count(flow->set) > BEGIN_FLOWS)
		return;
	flow->begins = true;
	flow->begin = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = begin_due };
	loop_timer_add(loop, &flow->begin);
}

/*
 * After the end of a sender before its time nothing more comes: the count is of the time of the last data, and not of
 * that of the report.
 */
static uint64_t tcp_last_ns(const struct flow *flow)
{
	struct tcp_info info;
	uint64_t last_ns;

	if (!flow->reported || flow->reported == FLOW_PLANNED || !flow->end.first_ns ||
	    !info_read(flow->source.fd, &info))
		return 0;
	last_ns = ktrxer_now_ns() - info.tcpi_last_data_recv * (uint64_t)KTRXER_NS_PER_MS;
	return last_ns > flow->end.first_ns ? last_ns : flow->end.first_ns;
}

static void tcp_settle(struct flow *flow)
{
	loop_watch(flow_set_options(flow->set)->loop, &flow->source, EPOLLIN);
}

static void tcp_close(struct flow *flow, bool gently)
{
	static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	begin_end(flow);
	if (flow->source.fd < 0)
		return;
	loop_unwatch(flow_set_options(flow->set)->loop, &flow->source);
	if (!gently)
		(void)!setsockopt(flow->source.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(flow->source.fd);
	flow->source.fd = -1;
}

static int tcp_attach(struct flow *flow, int fd, uint64_t pace_bps)
{
	flow->pace_bps = lower_pace(&flow->spec, pace_bps);
	return flow_tcp_prepare(fd, &flow->spec, flow->sends, pace_bps);
}

#ifndef KTRXER_SMALL
static uint32_t idle_share(const struct flow *flow)
{
	const uint64_t now_ns = ktrxer_now_ns();
	struct tcp_info info;
	uint64_t busy_ns;

	/* The sender waits for the receiver after the planned bytes. */
	if (flow_set_options(flow->set)->bytes || now_ns <= flow->began_ns ||
	    !HAS(info_read(flow->source.fd, &info), tcpi_busy_time))
		return UINT32_MAX;
	busy_ns = info.tcpi_busy_time * (uint64_t)KTRXER_NS_PER_US;
	if (busy_ns > now_ns - flow->began_ns)
		return 0;
	return (uint32_t)((now_ns - flow->began_ns - busy_ns) / ((now_ns - flow->began_ns) / 1000 + 1));
}
#endif

static void tcp_account(struct flow *flow, struct flow_end *end)
{
	if (flow->source.fd < 0)
		return;
	flow_tcp_cc_name(flow->source.fd, end->cc);
#ifndef KTRXER_SMALL
	end->idle = idle_share(flow);
#endif
}

const struct flow_ops flow_tcp_ops = {
	.attach = tcp_attach,
	.begin = tcp_begin,
	.sample = tcp_sample,
	.last_ns = tcp_last_ns,
	.settle = tcp_settle,
	.account = tcp_account,
	.close = tcp_close,
};
