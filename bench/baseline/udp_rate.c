/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * udp_rate ADDRESS PORT SECONDS PAYLOAD
 *
 * As many UDP datagrams as sendmmsg() takes from one connected socket, 64 a call. Prints how many, and in how many
 * nanoseconds: {"sent": N, "duration_ns": N}. Frozen: see meson.build.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64 };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	static uint8_t payload[BATCH][2048];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	uint64_t sent = 0, start, end, now;
	long length;
	int fd;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || (length = atol(argv[4])) < 8 ||
	    length > 2048) {
		fprintf(stderr, "usage: udp_rate ADDRESS PORT SECONDS PAYLOAD (8 to 2048)\n");
		return 2;
	}
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
		perror("udp_rate: socket");
		return 1;
	}
	memset(messages, 0, sizeof messages);
	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ .iov_base = payload[i], .iov_len = (size_t)length };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	start = now_ns();
	end = start + (uint64_t)(atof(argv[3]) * 1e9);
	while ((now = now_ns()) < end) {
		int n;

		for (int i = 0; i < BATCH; i++)
			for (int b = 0; b < 8; b++)
				payload[i][b] = (uint8_t)((sent + (uint64_t)i) >> (56 - 8 * b));
		n = sendmmsg(fd, messages, BATCH, 0);
		if (n > 0) {
			sent += (uint64_t)n;
		} else if (errno != ENOBUFS && errno != EAGAIN && errno != ECONNREFUSED) {
			perror("udp_rate: sendmmsg");
			return 1;
		}
	}
	printf("{\"sent\": %llu, \"duration_ns\": %llu}\n", (unsigned long long)sent,
	       (unsigned long long)(now - start));
	return 0;
}
