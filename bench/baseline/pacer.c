/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pacer raw-usleep|raw-absolute|txtime FROM TO PORT INTERVAL_US COUNT PAYLOAD
 *
 * The pauses of sleeper with two other kinds of sockets.
 *   raw-usleep    a raw IP socket (IP_HDRINCL, no UDP checksum), and a sleep of the interval after each sendto()
 *   raw-absolute  the same, and sleeps to absolute times
 *   txtime        a UDP socket that gives each datagram its launch time (SO_TXTIME, CLOCK_MONOTONIC) 5 ms ahead; the fq
 *                 qdisc keeps it
 * The payload begins with the probe's number, 8 bytes big-endian. Frozen: see meson.build.
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
#include <unistd.h>

#ifndef SO_TXTIME
#define SO_TXTIME 61
#endif

enum { HEADERS = 28, PAYLOAD = 1472 };
#define S 1000000000ll
#define AHEAD 5000000ll

static int die(const char *what)
{
	fprintf(stderr, "pacer: %s: %s\n", what, strerror(errno));
	return 1;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * S + t.tv_nsec;
}

static void sleep_to(long long at)
{
	struct timespec t = { .tv_sec = (time_t)(at / S), .tv_nsec = (long)(at % S) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char *argv[])
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	struct {
		int32_t clock;
		uint32_t flags;
	} how = { .clock = CLOCK_MONOTONIC };
	static uint8_t packet[HEADERS + PAYLOAD];
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(uint64_t))];
	} control = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SO_TXTIME,
				.cmsg_len = CMSG_LEN(sizeof(uint64_t)) } };
	struct iovec part;
	struct msghdr message = { .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1 };
	long interval_us, count, length;
	int fd, raw, absolute, txtime;
	long long start;

	if (argc != 8 || inet_pton(AF_INET, argv[2], &from.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[3], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: pacer raw-usleep|raw-absolute|txtime FROM TO PORT INTERVAL_US COUNT PAYLOAD\n");
		return 2;
	}
	txtime = !strcmp(argv[1], "txtime");
	raw = !txtime;
	absolute = !strcmp(argv[1], "raw-absolute");
	to.sin_port = htons((uint16_t)atoi(argv[4]));
	interval_us = atol(argv[5]);
	count = atol(argv[6]);
	length = atol(argv[7]);
	if (interval_us < 1 || count < 1 || length < 8 || length > PAYLOAD) {
		fprintf(stderr, "pacer: interval and count from 1, payload from 8 to %d\n", PAYLOAD);
		return 2;
	}
	fd = socket(AF_INET, (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC, raw ? IPPROTO_RAW : 0);
	if (fd < 0)
		return die("socket");
	if (txtime && setsockopt(fd, SOL_SOCKET, SO_TXTIME, &how, sizeof how) < 0)
		return die("SO_TXTIME");
	if (raw) {
		struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
				    .tot_len = htons((uint16_t)(HEADERS + length)), .frag_off = htons(IP_DF),
				    .saddr = from.sin_addr.s_addr, .daddr = to.sin_addr.s_addr };
		struct udphdr udp = { .source = htons(40000), .dest = to.sin_port,
				      .len = htons((uint16_t)(8 + length)) };

		memcpy(packet, &ip, sizeof ip);
		memcpy(packet + sizeof ip, &udp, sizeof udp);
	}
	part.iov_base = raw ? packet : packet + HEADERS;
	part.iov_len = (size_t)(raw ? HEADERS + length : length);
	if (txtime) {
		message.msg_control = control.room;
		message.msg_controllen = sizeof control.room;
	}
	start = now() + (txtime ? 2 * AHEAD : 0);
	for (long i = 0; i < count; i++) {
		const uint64_t at = (uint64_t)(start + i * 1000ll * interval_us);

		for (int b = 0; b < 8; b++)
			packet[HEADERS + b] = (uint8_t)((uint64_t)i >> (56 - 8 * b));
		if (txtime) {
			memcpy(CMSG_DATA(&control.head), &at, sizeof at);
			sleep_to((long long)at - AHEAD);
		} else if (absolute) {
			sleep_to((long long)at);
		}
		if (sendmsg(fd, &message, 0) < 0)
			return die("sendmsg");
		if (!txtime && !absolute)
			usleep((useconds_t)interval_us);
	}
	close(fd);
	return 0;
}
