/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The largest packet that gets through to a host, found by bisection: the size of the next probe depends on the last
 * answer. Echo requests that may not be fragmented, by the host's own sockets: no privilege is needed where
 * net.ipv4.ping_group_range allows it.
 *
 *     path_mtu ADDRESS
 */
#include <ktrxer.h>

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

struct search {
	struct ktx *tx;
	struct ktrxer_frame_spec spec;
	int headers; /* of IP and ICMP */
	struct ktrxer_error err;
};

/* True if an answer of this number has come in. A raw socket has the IPv4 header before it. */
static bool answer_read(int fd, uint16_t number)
{
	uint8_t p[128];
	ssize_t n;

	while ((n = recv(fd, p, sizeof p, MSG_DONTWAIT)) > 0) {
		const uint8_t *icmp = p[0] >> 4 == 4 ? p + 4 * (p[0] & 15) : p;

		if (icmp + 8 <= p + n && (icmp[0] == 0 || icmp[0] == 129) && (icmp[6] << 8 | icmp[7]) == number)
			return true;
	}
	return false;
}

/* 1: an answer came; 0: none, or a router said no; negative: it could not be sent. */
static int probe(struct search *s, int size)
{
	const uint64_t until = ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS;
	struct ktx_probe probe = { .id = ++s->spec.to_port };
	struct ktx_network_error error;
	struct ktx_report report;
	struct ktx_slot slot;
	int rc;

	s->spec.payload_length = (uint32_t)(size - s->headers);
	if ((rc = ktx_reserve(s->tx, &slot)) < 0 || (rc = ktrxer_frame_build(slot.frame, slot.capacity, &s->spec)) < 0)
		return rc;
	probe.length = (uint32_t)rc;
	if ((rc = ktx_commit(s->tx, &probe, &s->err)) < 0)
		return rc;
	while (ktrxer_now_ns() < until) {
		struct pollfd ready[2] = { { .fd = ktx_fd(s->tx), .events = POLLIN },
					   { .fd = ktx_reply_fd(s->tx), .events = POLLIN } };

		poll(ready, 2, 100);
		if (answer_read(ready[1].fd, s->spec.to_port))
			return 1;
		if (ktx_reports(s->tx, &report, 1) == 1 && report.status != KTX_SENT)
			return 0;
		if (ktx_network_errors(s->tx, &error, 1) == 1)
			return 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct search s = { .spec = KTRXER_FRAME_SPEC_INIT };
	struct ktrxer_path_options where = KTRXER_PATH_OPTIONS_INIT;
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktrxer_path path;
	struct ktx_info info;
	int low, high, rc = 0;

	if (argc != 2 || ktrxer_addr_parse(&where.to, argv[1]) < 0) {
		fprintf(stderr, "usage: path_mtu ADDRESS\n");
		return 2;
	}
	options.engine = "udp";
	where.no_link_address = true;
	if (ktrxer_path_resolve(&path, &where, &s.err) < 0)
		goto fail;
	options.frame_size = path.mtu;
	if (ktx_open(&s.tx, &options, &s.err) < 0)
		goto fail;
	ktx_info(s.tx, &info);
	s.spec.path = &path;
	s.spec.link = info.link; /* no device was named to the engine: its frames begin with the IP header */
	s.spec.proto = where.to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP;
	s.spec.from_port = (uint16_t)(ktrxer_now_ns() >> 10);
	s.headers = ktrxer_frame_header_length(&s.spec);
	low = where.to.family == AF_INET6 ? 1280 : 68; /* what every link must carry */
	high = (int)path.mtu;
	if (probe(&s, low) != 1) {
		fprintf(stderr, "path_mtu: %s does not even answer %d bytes %s\n", argv[1], low, s.err.text);
		ktx_close(s.tx);
		return 1;
	}
	while (low < high && rc >= 0) {
		int middle = (low + high + 1) / 2;

		rc = probe(&s, middle);
		printf("%5d bytes: %s\n", middle, rc == 1 ? "answered" : rc == 0 ? "no" : "cannot be sent");
		*(rc == 1 ? &low : &high) = rc == 1 ? middle : middle - 1;
	}
	printf("path MTU to %s: %d\n", argv[1], low);
	ktx_close(s.tx);
	return rc < 0;

fail:
	fprintf(stderr, "path_mtu: %s\n", s.err.text);
	ktx_close(s.tx);
	return 1;
}
