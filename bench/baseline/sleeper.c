/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sleeper usleep|absolute ADDRESS PORT INTERVAL_US COUNT PAYLOAD
 *
 * The method of most probing tools: a UDP socket, and a sleep between two sendto() calls.
 *   usleep    sleeps the interval after each probe
 *   absolute  sleeps to absolute times by clock_nanosleep(TIMER_ABSTIME), so that errors do not add up
 * The payload begins with the probe's number, 8 bytes big-endian. Frozen: see meson.build.
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
#include <unistd.h>

static int die(const char *what)
{
	fprintf(stderr, "sleeper: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	static uint8_t payload[65507];
	struct timespec next;
	long interval_us, count, length;
	int fd, absolute;

	if (argc != 7 || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: sleeper usleep|absolute ADDRESS PORT INTERVAL_US COUNT PAYLOAD\n");
		return 2;
	}
	absolute = !strcmp(argv[1], "absolute");
	to.sin_port = htons((uint16_t)atoi(argv[3]));
	interval_us = atol(argv[4]);
	count = atol(argv[5]);
	length = atol(argv[6]);
	if (interval_us < 1 || count < 1 || length < 8 || length > (long)sizeof payload) {
		fprintf(stderr, "sleeper: interval and count from 1, payload from 8 to %zu\n", sizeof payload);
		return 2;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return die("socket");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < count; i++) {
		for (int b = 0; b < 8; b++)
			payload[b] = (uint8_t)((uint64_t)i >> (56 - 8 * b));
		if (sendto(fd, payload, (size_t)length, 0, (struct sockaddr *)&to, sizeof to) < 0)
			return die("sendto");
		if (absolute) {
			next.tv_nsec += interval_us % 1000000 * 1000;
			next.tv_sec += interval_us / 1000000 + next.tv_nsec / 1000000000;
			next.tv_nsec %= 1000000000;
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		} else {
			usleep((useconds_t)interval_us);
		}
	}
	close(fd);
	return 0;
}
