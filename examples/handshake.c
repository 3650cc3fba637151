/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A TCP connection opened by hand: SYN, the answer, ACK. The host has no socket for it and would reset it when the
 * answer arrives; the rule drops the answer before the host's stack receives it.
 *
 *     handshake ADDRESS PORT [OPERATION]        capture+drop unless said otherwise
 *
 * It holds the connection until its input ends.
 */
#include <ktrxer.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { OWN_PORT = 50123 };

struct connection {
	struct ktrxer_path path;
	struct ktx *tx;
	struct krx *rx;
	uint16_t port;
	uint32_t next, acknowledged; /* sequence numbers: ours, the peer's */
};

static int segment_send(struct connection *c, uint8_t flags, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktx_probe probe = { 0 };
	struct ktx_slot slot;
	int rc;

	spec.path = &c->path;
	spec.proto = KTRXER_TCP;
	spec.from_port = OWN_PORT;
	spec.to_port = c->port;
	spec.tcp_sequence = c->next;
	spec.tcp_acknowledgement = flags & KTRXER_TCP_ACK ? c->acknowledged : 0;
	spec.tcp_flags = flags;
	spec.tcp_window = 65535;
	if ((rc = ktx_reserve(c->tx, &slot)) < 0 || (rc = ktrxer_frame_build(slot.frame, slot.capacity, &spec)) < 0)
		return rc;
	probe.length = (uint32_t)rc;
	return ktx_commit(c->tx, &probe, err);
}

/* Waits for SYN and ACK. 0: they came, and acknowledge ours. -ECONNREFUSED: a reset came; -ETIMEDOUT: nothing. */
static int answer_wait(struct connection *c)
{
	const uint8_t both = KTRXER_TCP_SYN | KTRXER_TCP_ACK;
	struct pollfd ready = { .fd = krx_fd(c->rx), .events = POLLIN };
	const uint64_t end = ktrxer_now_ns() + 2 * KTRXER_NS_PER_S;
	struct ktrxer_frame_view tcp;
	struct krx_packet packet;

	for (;;) {
		/*
		 * Compare before the packets are read: an answer that was in time is valid for a program that had no
		 * processor.
		 */
		const bool is_over = ktrxer_now_ns() >= end;
		int rc = krx_next(c->rx, &packet);

		if (rc < 0)
			return rc;
		if (rc == 0) {
			if (is_over)
				return -ETIMEDOUT;
			poll(&ready, 1, 100);
			continue;
		}
		if (ktrxer_frame_read(&tcp, packet.data, packet.length, packet.link) < 0)
			continue;
		if (tcp.tcp_flags & KTRXER_TCP_RST)
			return -ECONNREFUSED;
		if ((tcp.tcp_flags & both) != both || tcp.tcp_acknowledgement != c->next + 1)
			continue;
		c->acknowledged = tcp.tcp_sequence + 1;
		c->next++;
		return 0;
	}
}

static int rule_make(struct krx_rule *rule, const struct connection *c, const char *operation, struct ktrxer_error *err)
{
	char text[KRX_RULE_TEXT], to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];
	const bool six = c->path.to.family == AF_INET6;

	ktrxer_addr_format(&c->path.to, to);
	ktrxer_addr_format(&c->path.source, from);
	snprintf(text, sizeof text, six ? "%s tcp from [%s]:%u to [%s]:%d" : "%s tcp from %s:%u to %s:%d", operation,
		 to, c->port, from, OWN_PORT);
	return krx_rule_parse(rule, text, err);
}

int main(int argc, char **argv)
{
	struct ktrxer_path_options where = KTRXER_PATH_OPTIONS_INIT;
	struct ktx_options tx = KTX_OPTIONS_INIT;
	struct krx_options rx = KRX_OPTIONS_INIT;
	struct connection c = { .next = 1000 };
	struct ktrxer_error err = { .text = "the frame does not go" };
	struct krx_rule rule;
	struct krx_stats stats;
	int rc;

	if ((argc != 3 && argc != 4) || ktrxer_addr_parse(&where.to, argv[1]) < 0 || atoi(argv[2]) < 1 ||
	    atoi(argv[2]) > 65535) {
		fprintf(stderr, "usage: handshake ADDRESS PORT [OPERATION]\n");
		return 2;
	}
	c.port = (uint16_t)atoi(argv[2]);
	if (ktrxer_path_resolve(&c.path, &where, &err) < 0 ||
	    rule_make(&rule, &c, argc == 4 ? argv[3] : "capture+drop", &err) < 0)
		goto fail;
	tx.device = rx.device = c.path.device.name;
	tx.engine = "packet"; /* whole frames, on any device */
	if (krx_open(&c.rx, &rx, &rule, 1, &err) < 0 || ktx_open(&c.tx, &tx, &err) < 0)
		goto fail;
	krx_stats(c.rx, &stats, NULL, 0);
	printf("answers come by %s\n", stats.backend);
	if (segment_send(&c, KTRXER_TCP_SYN, &err) < 0)
		goto fail;
	if ((rc = answer_wait(&c)) < 0) {
		snprintf(err.text, sizeof err.text,
			 rc == -ECONNREFUSED ? "%s refuses the connection: no program listens on TCP port %u there"
					     : "no answer from %s port %u in 2 s: the path loses packets",
			 argv[1], c.port);
		goto fail;
	}
	if (segment_send(&c, KTRXER_TCP_ACK, &err) < 0)
		goto fail;
	printf("established\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	if (segment_send(&c, KTRXER_TCP_FIN | KTRXER_TCP_ACK, &err) < 0)
		goto fail;
	ktx_drain(c.tx, ktrxer_now_ns() + KTRXER_NS_PER_S);
	ktx_close(c.tx);
	krx_close(c.rx);
	return 0;

fail:
	fprintf(stderr, "handshake: %s\n", err.text);
	ktx_close(c.tx);
	krx_close(c.rx);
	return 1;
}
