/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A TCP connection opened by hand: SYN, the answer, ACK. The host knows nothing of it, and would reset it at the answer; the rule
 * keeps the answer from the host.
 *
 *     handshake ADDRESS PORT [OPERATION]        capture+drop unless said otherwise
 *
 * It holds the connection until its input ends.
 */
#include <ktrxer.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { OWN_PORT = 50123, TCP_HEADER = 20, UDP_HEADER = 8, FIN = 1, SYN = 2, RST = 4, ACK = 16 };

struct connection {
	struct ktrxer_path path;
	struct ktx *tx;
	struct krx *rx;
	uint16_t port;
	uint32_t next, acknowledged; /* sequence numbers: ours, the peer's */
};

static void put(uint8_t *at, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint32_t get(const uint8_t *at, int bytes)
{
	uint32_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* Where TCP begins in our frames and, as there are neither options nor tags, in the answers. */
static uint32_t tcp_at(const struct connection *c)
{
	return (c->path.device.link == KTRXER_LINK_ETHERNET ? 14 : 0) + (c->path.to.family == AF_INET6 ? 40 : 20);
}

/* The library writes UDP: the headers below are the same, and what follows is written over. */
static int segment_send(struct connection *c, uint8_t flags, struct ktrxer_error *err)
{
	static const uint8_t room[TCP_HEADER - UDP_HEADER];
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	const uint32_t at = tcp_at(c), ip = c->path.to.family == AF_INET6 ? at - 40 : at - 20;
	struct ktx_probe probe = { 0 };
	struct ktx_slot slot;
	uint8_t *tcp;
	int rc;

	spec.path = &c->path;
	spec.proto = KTRXER_UDP;
	spec.payload = room;
	spec.payload_length = sizeof room;
	if ((rc = ktx_reserve(c->tx, &slot)) < 0)
		return rc;
	probe.length = (uint32_t)ktrxer_frame_build(slot.frame, slot.capacity, &spec);
	if (c->path.to.family == AF_INET6) {
		slot.frame[ip + 6] = KTRXER_TCP;
	} else { /* 17 becomes 6: the header's checksum grows by as much */
		uint32_t sum = get(slot.frame + ip + 10, 2) + KTRXER_UDP - KTRXER_TCP;

		slot.frame[ip + 9] = KTRXER_TCP;
		put(slot.frame + ip + 10, (sum & 0xffff) + (sum >> 16), 2);
	}
	tcp = slot.frame + at;
	memset(tcp, 0, TCP_HEADER);
	put(tcp, OWN_PORT, 2);
	put(tcp + 2, c->port, 2);
	put(tcp + 4, c->next, 4);
	put(tcp + 8, flags & ACK ? c->acknowledged : 0, 4);
	tcp[12] = TCP_HEADER / 4 << 4;
	tcp[13] = flags;
	put(tcp + 14, 65535, 2);
	rc = ktrxer_frame_checksum(slot.frame, probe.length, c->path.device.link);
	return rc < 0 ? rc : ktx_commit(c->tx, &probe, err);
}

/* Waits for SYN and ACK. 0: they came, and acknowledge ours. */
static int answer_wait(struct connection *c)
{
	struct pollfd ready = { .fd = krx_fd(c->rx), .events = POLLIN };
	const uint64_t end = ktrxer_now_ns() + 2 * KTRXER_NS_PER_S;
	struct krx_packet packet;

	while (ktrxer_now_ns() < end) {
		int rc = krx_next(c->rx, &packet);
		const uint8_t *tcp;

		if (rc < 0)
			return rc;
		if (rc == 0) {
			poll(&ready, 1, 100);
			continue;
		}
		if (packet.length < tcp_at(c) + TCP_HEADER)
			continue;
		tcp = packet.data + tcp_at(c);
		if (tcp[13] & RST)
			return -1;
		if ((tcp[13] & (SYN | ACK)) != (SYN | ACK) || get(tcp + 8, 4) != c->next + 1)
			continue;
		c->acknowledged = get(tcp + 4, 4) + 1;
		c->next++;
		return 0;
	}
	return -1;
}

static int rule_make(struct krx_rule *rule, const struct connection *c, const char *operation, struct ktrxer_error *err)
{
	char text[KRX_RULE_TEXT], to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];
	const bool six = c->path.to.family == AF_INET6;

	ktrxer_addr_format(&c->path.to, to);
	ktrxer_addr_format(&c->path.source, from);
	snprintf(text, sizeof text, six ? "%s tcp from [%s]:%u to [%s]:%d" : "%s tcp from %s:%u to %s:%d", operation, to, c->port, from, OWN_PORT);
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

	if ((argc != 3 && argc != 4) || ktrxer_addr_parse(&where.to, argv[1]) < 0 || atoi(argv[2]) < 1 || atoi(argv[2]) > 65535) {
		fprintf(stderr, "usage: handshake ADDRESS PORT [OPERATION]\n");
		return 2;
	}
	c.port = (uint16_t)atoi(argv[2]);
	if (ktrxer_path_resolve(&c.path, &where, &err) < 0 || rule_make(&rule, &c, argc == 4 ? argv[3] : "capture+drop", &err) < 0)
		goto fail;
	tx.device = rx.device = c.path.device.name;
	tx.engine = "packet"; /* whole frames, on any device */
	if (krx_open(&c.rx, &rx, &rule, 1, &err) < 0 || ktx_open(&c.tx, &tx, &err) < 0)
		goto fail;
	krx_stats(c.rx, &stats, NULL, 0);
	printf("answers come by %s\n", stats.backend);
	if (segment_send(&c, SYN, &err) < 0)
		goto fail;
	if (answer_wait(&c) < 0) {
		snprintf(err.text, sizeof err.text, "nobody listens at %s port %u, or the way there loses packets", argv[1], c.port);
		goto fail;
	}
	if (segment_send(&c, ACK, &err) < 0)
		goto fail;
	printf("established\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	if (segment_send(&c, FIN | ACK, &err) < 0)
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
