/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_receiver.h"

#include "clock.h"
#include "message.h"
#include "stamp_packet.h"
#include "txstamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { AT_ONCE = 64, ROOM_FIRST = 256, COPIES = 4096, SOCKET_BYTES = 4 << 20 };

static bool is_seen(const struct owamp_receiver *r, uint32_t seq)
{
	return r->seen[seq / 8] & 1 << seq % 8;
}

/* Copies never take the room of packets that have not arrived yet: these would count as lost. */
static bool room_for_one(struct owamp_receiver *r, uint32_t seq)
{
	const uint32_t room = r->room ? r->room * 2 : ROOM_FIRST;
	struct owamp_record *records;

	if (r->count >= r->most || (is_seen(r, seq) && r->most - r->count <= r->packets - r->different))
		return false;
	if (r->count < r->room)
		return true;
	records = realloc(r->records, room * sizeof *records);
	if (!records)
		return false;
	r->records = records;
	r->room = room;
	return true;
}

static void arrived(struct owamp_receiver *r, const uint8_t *data, size_t length, const struct ktrxer_message *m)
{
	struct owamp_test_packet p;
	int64_t real_ns = m->real_ns;

	if (owamp_test_read(&p, data, length) < 0 || !(p.error & 255) || p.seq >= r->packets ||
	    !room_for_one(r, p.seq)) {
		r->ignored++;
		return;
	}
	if (!real_ns) {
		real_ns = ktrxer_real_now_ns();
		r->user_stamped++;
	}
	r->records[r->count++] = (struct owamp_record){ .seq = p.seq,
							.send_error = p.error,
							.receive_error = r->error,
							.sent = p.time,
							.received = stamp_time_of_ns(real_ns, false),
							.ttl = m->ttl };
	r->after = p.seq < r->after ? r->after : p.seq + 1;
	if (r->witness)
		path_witness_arrived(r->witness, m->ifindex);
	if (is_seen(r, p.seq))
		return;
	r->seen[p.seq / 8] |= (uint8_t)(1 << p.seq % 8);
	if (++r->different == r->packets && r->complete)
		r->complete(r->context);
}

static void receiver_ready(struct loop_source *source, uint32_t events)
{
	struct owamp_receiver *r = (struct owamp_receiver *)source;

	(void)events;
	for (int i = 0; i < AT_ONCE; i++) {
		_Alignas(struct cmsghdr) char control[KTRXER_MESSAGE_CONTROL];
		uint8_t data[OWAMP_TEST_BYTES];
		struct iovec part = { data, sizeof data };
		struct msghdr header = {
			.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
		};
		struct ktrxer_message m;
		const ssize_t n = recvmsg(source->fd, &header, MSG_DONTWAIT);

		if (n < 0)
			return; /* empty, or an error of ICMP, which this call has taken */
		ktrxer_message_read(&m, &header);
		ktrxer_message_drops(&m, &r->drops_seen, &r->socket_drops);
		arrived(r, data, (size_t)n, &m);
	}
}

void owamp_receiver_drain(struct owamp_receiver *r)
{
	uint64_t seen;

	do {
		seen = r->count + r->ignored;
		receiver_ready(&r->source, 0);
	} while (r->count + r->ignored != seen);
	ktrxer_socket_drops(r->source.fd, &r->drops_seen, &r->socket_drops);
}

int owamp_receiver_begin(struct owamp_receiver *r, struct loop *loop, int fd, uint32_t packets, uint16_t error)
{
	int rc;

	*r = (struct owamp_receiver){ .source = { .fd = fd, .ready = receiver_ready },
				      .packets = packets,
				      .error = error,
				      .most = 2 * packets + COPIES };
	r->seen = calloc(packets / 8 + 1, 1);
	if (!r->seen)
		return -ENOMEM;
	rc = loop_watch(loop, &r->source, EPOLLIN);
	r->loop = rc == 0 ? loop : NULL;
	return rc;
}

void owamp_receiver_stop(struct owamp_receiver *r)
{
	if (r->loop) {
		ktrxer_socket_drops(r->source.fd, &r->drops_seen, &r->socket_drops);
		loop_unwatch(r->loop, &r->source);
	}
	r->loop = NULL;
}

void owamp_receiver_end(struct owamp_receiver *r)
{
	owamp_receiver_stop(r);
	free(r->records);
	free(r->seen);
	*r = (struct owamp_receiver){ 0 };
}

void owamp_socket_prepare(int fd, uint8_t family)
{
	const int bytes = SOCKET_BYTES;

	ktrxer_message_enable(fd, family);
	ktrxer_rxstamp_enable(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
		(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}
