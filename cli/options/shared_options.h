/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows of option tables that several commands have: name, letter and type of each option are here, once. OFFSET is the
 * offset of the member that the row fills. The further arguments are designators of the row that differ from command to
 * command: .fallback, .min, .max, .heading, .help.
 */
#ifndef KTRXER_CLI_SHARED_OPTIONS_H
#define KTRXER_CLI_SHARED_OPTIONS_H

#include "opt.h"

/* The traffic model of probes: their intervals. */
enum probe_model { MODEL_CONSTANT, MODEL_POISSON };
extern const char *const shared_models[], *const shared_engines[];

#define OPTION_DAYS(DAYS) ((DAYS) * 86400ULL * 1000000000)

#define OPTION_COUNT(OFFSET, ...) \
	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = OFFSET, .argument = "N", __VA_ARGS__ }
#define OPTION_FOR(OFFSET, ...) { .name = "for", .type = OPT_DURATION, .offset = OFFSET, .argument = "D", __VA_ARGS__ }
#define OPTION_DIRECTION(OFFSET, CHOICES, ...) \
	{ .name = "direction", .type = OPT_CHOICE, .offset = OFFSET, .argument = "D", .choices = CHOICES, __VA_ARGS__ }
#define OPTION_SAMPLE_INTERVAL(OFFSET, ...) \
	{ .name = "sample-interval", .type = OPT_DURATION, .offset = OFFSET, .argument = "D", __VA_ARGS__ }
#define OPTION_MAX_BITRATE(OFFSET, ...) \
	{ .name = "max-bitrate", .type = OPT_BITRATE, .offset = OFFSET, .argument = "BITRATE", __VA_ARGS__ }
#define OPTION_FOR_PROBES(OFFSET) OPTION_FOR(OFFSET, .min = 1, .max = OPTION_DAYS(365), .help = "Stop after so long")
#define OPTION_INTERVAL(OFFSET, BETWEEN, ...) \
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = OFFSET, .argument = "D", \
	  .help = "Time between " BETWEEN, __VA_ARGS__ }
#define OPTION_RATE(OFFSET, ...) \
	{ .name = "rate", .letter = 'r', .type = OPT_RATE, .offset = OFFSET, .argument = "R", __VA_ARGS__ }
#define OPTION_REPEAT(OFFSET, ...) \
	{ .name = "repeat", .type = OPT_UINT, .offset = OFFSET, .argument = "N", __VA_ARGS__ }
#define OPTION_THREADS(OFFSET, ...) \
	{ .name = "threads", .type = OPT_UINT, .offset = OFFSET, .argument = "N", .fallback = "1", .min = 1, \
	  __VA_ARGS__ }
#define OPTION_TRAIN(OFFSET, ...) \
	{ .name = "train", .type = OPT_UINT, .offset = OFFSET, .argument = "N", .help = "Probes in a train", \
	  __VA_ARGS__ }
#define OPTION_MODEL(OFFSET, CHOICES, FALLBACK, HELP) \
	{ .name = "model", .type = OPT_CHOICE, .offset = OFFSET, .argument = "MODEL", .fallback = FALLBACK, \
	  .choices = CHOICES, .help = HELP }
#define OPTION_MODEL_OF_PROBES(OFFSET, FALLBACK) \
	OPTION_MODEL(OFFSET, shared_models, FALLBACK, \
	  "Intervals: constant, or poisson (exponential around the mean; RFC 2330, by the generator of RFC 4656)")
#define OPTION_TIMEOUT(OFFSET, ...) \
	{ .name = "timeout", .letter = 'W', .type = OPT_DURATION, .offset = OFFSET, .argument = "D", .min = 1000, \
	  __VA_ARGS__ }
#define OPTIONS_TIMEOUT_OF_PROBES(TIMEOUT, OVERTAKEN, ...) \
	OPTION_TIMEOUT(TIMEOUT, .help = "Without an answer for so long a probe is lost", __VA_ARGS__), \
	{ .name = "overtaken", .type = OPT_DURATION, .offset = OVERTAKEN, .argument = "D", .fallback = "0s", \
	  .help = "A probe is lost before the time-out if a probe that was sent so much later has its answer (0s: " \
		  "it is not)" }

#define OPTION_UDP(OFFSET, ...) { .name = "udp", .letter = 'u', .type = OPT_FLAG, .offset = OFFSET, __VA_ARGS__ }
#define OPTION_ECHO(OFFSET, ...) { .name = "echo", .type = OPT_FLAG, .offset = OFFSET, __VA_ARGS__ }
#define OPTION_PORT(OFFSET, ...) \
	{ .name = "port", .letter = 'p', .type = OPT_UINT, .offset = OFFSET, .argument = "N", .min = 1, .max = 65535, \
	  __VA_ARGS__ }
/* SIZE: OPT_SIZE, or OPT_RANGE where packets have several sizes. */
#define OPTION_PAYLOAD(OFFSET, SIZE, ...) \
	{ .name = "payload", .letter = 's', .type = SIZE, .offset = OFFSET, __VA_ARGS__ }
#define OPTION_DSCP(OFFSET) \
	{ .name = "dscp", .type = OPT_DSCP, .offset = OFFSET, .fallback = "BE", .help = "DSCP of the probes" }
#define OPTION_DSCP_LIST(OFFSET, ...) { .name = "dscp", .type = OPT_STRING, .offset = OFFSET, __VA_ARGS__ }
#define OPTION_ECN(OFFSET) \
	{ .name = "ecn", .type = OPT_ECN, .offset = OFFSET, .fallback = "off", .help = "ECN mark of the probes" }
/* Small builds have the default tolerance alone. */
#ifdef KTRXER_SMALL
#define OPTION_TOLERANCE(OFFSET)
#else
#define OPTION_TOLERANCE(OFFSET) \
	{ .name = "tolerance", .type = OPT_UINT, .offset = OFFSET, .argument = "PERCENT", .fallback = "5", .min = 1, \
	  .max = 100, \
	  .help = "A figure whose error bound is more than this share of it, and more than 20 us, makes the result " \
		  "degraded" },
#endif
#define OPTION_TTL(OFFSET) \
	{ .name = "ttl", .type = OPT_UINT, .offset = OFFSET, .argument = "N", .fallback = "64", .min = 1, .max = 255, \
	  .help = "Time to live" }

/* OF names the part of the traffic, if it is not all: " of flows up". */
#define OPTIONS_FAMILY(V4, V6) \
	{ .name = "ipv4", .letter = '4', .type = OPT_FLAG, .offset = V4, .help = "IPv4 only" }, \
	{ .name = "ipv6", .letter = '6', .type = OPT_FLAG, .offset = V6, .help = "IPv6 only" }
#define OPTION_FROM(OFFSET, MORE) \
	{ .name = "from", .type = OPT_ADDRESS, .offset = OFFSET, .argument = "IP", \
	  .help = "Source address; by default the route's" MORE }
/* Of `ktrxer serve`, TCP and UDP: among 8616 to 8664, which IANA has not assigned; STAMP's own is 862. */
#define SERVER_PORT "8620"
/* The rows of a client of `ktrxer serve`. */
#define OPTIONS_SERVER(TOKEN_FILE, PORT, FROM, V4, V6) \
	OPTION_TOKEN_FILE(TOKEN_FILE, .heading = "The server", \
	  .help = "The server's token, in a file of mode 0600; without it $KTRXER_TOKEN counts"), \
	OPTION_PORT(PORT, .fallback = SERVER_PORT, .help = "Port of `ktrxer serve`"), \
	OPTION_FROM(FROM, ""), \
	OPTIONS_FAMILY(V4, V6)
#define OPTION_DEVICE(OFFSET, ...) \
	{ .name = "device", .letter = 'd', .type = OPT_STRING, .offset = OFFSET, .argument = "DEV", __VA_ARGS__ }
#define OPTION_DEVICE_OF_ROUTE(OFFSET, OF, HEADING) \
	OPTION_DEVICE(OFFSET, .help = "Network device" OF "; by default the route's", .heading = HEADING)
#define OPTION_ENGINE(OFFSET, ...) \
	{ .name = "engine", .letter = 'e', .type = OPT_STRING, .offset = OFFSET, .argument = "E", __VA_ARGS__ }
#define OPTION_ENGINE_OF_STACK(OFFSET, OF) \
	OPTION_ENGINE(OFFSET, .fallback = "udp", .choices = shared_engines, \
	  .help = "Engine" OF ": udp (the host's sockets, no privilege), raw, packet, or auto")
#define OPTION_CPU(OFFSET, THREADS) \
	{ .name = "cpu", .type = OPT_INT, .offset = OFFSET, .argument = "N", .fallback = "-1", .min = (uint64_t)-1, \
	  .max = 4095, .help = "Processor of the " THREADS "; -1: any" }
/* KIND: OPT_FLAG, or OPT_SWITCH where the command spins by default. */
#define OPTION_PRECISE(OFFSET, KIND, OF, MORE, HEADING) \
	{ .name = "precise", .type = KIND, .offset = OFFSET, .heading = HEADING, \
	  .help = "Spin before each send time" OF ": microseconds late at most, for a share of a processor" MORE }
#define OPTION_FLOOD(OFFSET, WHAT) \
	{ .name = "flood", .type = OPT_FLAG, .offset = OFFSET, \
	  .help = "Allow more than 10,000 " WHAT " to an address that is not private, link-local or loopback" }
#define OPTION_RING(OFFSET, ...) \
	{ .name = "ring", .type = OPT_SIZE, .offset = OFFSET, .argument = "BYTES", .fallback = "8Mi", __VA_ARGS__ }
#define OPTION_CLOCK_RESOLUTION(OFFSET, FALLBACK, MORE) \
	{ .name = "clock-resolution", .type = OPT_DURATION, .offset = OFFSET, .argument = "D", .fallback = FALLBACK, \
	  .min = 1, .max = 1000000000, .help = "Resolution of the receiver's time stamps" MORE }

#define OPTION_HEADING(OFFSET, ...) \
	{ .name = "heading", .type = OPT_SIZE, .offset = OFFSET, .argument = "BYTES", __VA_ARGS__ }
#define OPTION_SIZE1(OFFSET, ...) \
	{ .name = "size1", .type = OPT_SIZE, .offset = OFFSET, .argument = "BYTES", __VA_ARGS__ }
#define OPTION_SIZE2(OFFSET, ...) \
	{ .name = "size2", .type = OPT_SIZE, .offset = OFFSET, .argument = "BYTES", __VA_ARGS__ }

#define OPTION_AUTH_KEY_FILE(OFFSET, ...) \
	{ .name = "auth-key-file", .type = OPT_STRING, .offset = OFFSET, .argument = "FILE", __VA_ARGS__ }
#define OPTION_TLV_KEY_FILE(OFFSET, TLVS) \
	{ .name = "tlv-key-file", .type = OPT_STRING, .offset = OFFSET, .argument = "FILE", \
	  .help = "Open mode, with this key for the HMAC of " TLVS }
#define OPTION_TOKEN_FILE(OFFSET, ...) \
	{ .name = "token-file", .type = OPT_STRING, .offset = OFFSET, .argument = "FILE", __VA_ARGS__ }
#define OPTION_PTP(OFFSET) \
	{ .name = "ptp", .type = OPT_FLAG, .offset = OFFSET, \
	  .help = "Timestamps in PTP's truncated format instead of NTP's" }

#endif
