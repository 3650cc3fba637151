/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * raw_rate FROM TO PORT SECONDS PAYLOAD
 *
 * As many UDP probes as sendmmsg() takes from a raw socket with IP_HDRINCL, 64 a call: the baseline of the papers. No
 * UDP checksum. Prints {"sent": N, "duration_ns": N}. Frozen: see meson.build.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64 };

struct probe {
	struct iphdr ip;
	struct udphdr udp;
	uint8_t payload[2048];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	static struct probe probes[BATCH];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	uint64_t sent = 0, start, end, now;
	uint16_t port;
	long length;
	int fd;

	if (argc != 6 || inet_pton(AF_INET, argv[1], &from.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &to.sin_addr) != 1 ||
	    (length = atol(argv[5])) < 8 || length > 2048) {
		fprintf(stderr, "usage: raw_rate FROM TO PORT SECONDS PAYLOAD (8 to 2048)\n");
		return 2;
	}
	port = htons((uint16_t)atoi(argv[3]));
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
		perror("raw_rate: socket");
		return 1;
	}
	memset(messages, 0, sizeof messages);
	for (int i = 0; i < BATCH; i++) {
		probes[i].ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
					       .tot_len = htons((uint16_t)(28 + length)), .frag_off = htons(IP_DF),
					       .saddr = from.sin_addr.s_addr, .daddr = to.sin_addr.s_addr };
		probes[i].udp = (struct udphdr){ .source = htons(40000), .dest = port,
						 .len = htons((uint16_t)(8 + length)) };
		parts[i] = (struct iovec){ .iov_base = &probes[i], .iov_len = (size_t)(28 + length) };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	start = now_ns();
	end = start + (uint64_t)(atof(argv[4]) * 1e9);
	while ((now = now_ns()) < end) {
		int n;

		for (int i = 0; i < BATCH; i++)
			for (int b = 0; b < 8; b++)
				probes[i].payload[b] = (uint8_t)((sent + (uint64_t)i) >> (56 - 8 * b));
		n = sendmmsg(fd, messages, BATCH, 0);
		if (n > 0) {
			sent += (uint64_t)n;
		} else if (errno != ENOBUFS && errno != EAGAIN) {
			perror("raw_rate: sendmmsg");
			return 1;
		}
	}
	printf("{\"sent\": %llu, \"duration_ns\": %llu}\n", (unsigned long long)sent,
	       (unsigned long long)(now - start));
	return 0;
}
