/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sendto_rate ADDRESS PORT SECONDS PAYLOAD
 *
 * As many UDP datagrams as sendto() takes, one a call: the `socket` of the papers. Prints how many, and in how many
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

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	static uint8_t payload[2048];
	uint64_t sent = 0, start, end, now;
	long length;
	int fd;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || (length = atol(argv[4])) < 8 ||
	    length > 2048) {
		fprintf(stderr, "usage: sendto_rate ADDRESS PORT SECONDS PAYLOAD (8 to 2048)\n");
		return 2;
	}
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		perror("sendto_rate: socket");
		return 1;
	}
	start = now_ns();
	end = start + (uint64_t)(atof(argv[3]) * 1e9);
	while ((now = now_ns()) < end) {
		for (int b = 0; b < 8; b++)
			payload[b] = (uint8_t)(sent >> (56 - 8 * b));
		if (sendto(fd, payload, (size_t)length, 0, (struct sockaddr *)&to, sizeof to) >= 0) {
			sent++;
		} else if (errno != ENOBUFS && errno != EAGAIN) {
			perror("sendto_rate: sendto");
			return 1;
		}
	}
	printf("{\"sent\": %llu, \"duration_ns\": %llu}\n", (unsigned long long)sent,
	       (unsigned long long)(now - start));
	return 0;
}
