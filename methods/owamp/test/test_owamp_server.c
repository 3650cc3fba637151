/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hostile clients of the server of OWAMP, which needs no token: what they send holds the loop no longer than a
 * millisecond, and one network leaves places and rate to others. The clients are a child process; their networks are
 * those of the loopback device (127.0.0.1, 127.0.1.1). The cost of a call of the loop is processor time.
 */
#include "cm.h"
#include "loop_share_here.h"
#include "owamp_server.h"
#include "owamp_session.h"
#include "stamp_packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define S (uint64_t)KTRXER_NS_PER_S
#define MS (uint64_t)KTRXER_NS_PER_MS

enum { TRIES = 50, MESSAGES = 1000, PACKETS = OWAMP_SERVER_PACKETS, EACH = PACKETS / OWAMP_SKIPS_MOST };

/* ------------------------------------------------------------------------------------------------------ the clients */

#define want(condition)                                                                   \
	do {                                                                              \
		if (!(condition)) {                                                       \
			dprintf(STDERR_FILENO, "line %d: not %s\n", __LINE__, #condition); \
			_exit(1);                                                         \
		}                                                                         \
	} while (0)

static int dial(uint8_t network, uint16_t port)
{
	const struct sockaddr_in from = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(0x7f000001u | (uint32_t)network << 8) },
				 to = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = 30 };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	want(fd >= 0);
	want(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
	want(bind(fd, (const struct sockaddr *)&from, sizeof from) == 0);
	want(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
	return fd;
}

/* So many bytes, or 0 at the end of the connection. */
static size_t take(int fd, uint8_t *data, size_t length)
{
	size_t have = 0;

	while (have < length) {
		const ssize_t n = recv(fd, data + have, length - have, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return 0;
		want(n > 0);
		have += (size_t)n;
	}
	return have;
}

static void put(int fd, const uint8_t *data, size_t length)
{
	want(send(fd, data, length, MSG_NOSIGNAL) == (ssize_t)length);
}

/* A connection after its set-up; -1: the server has closed it. */
static int client(uint8_t network, uint16_t port)
{
	uint8_t data[OWAMP_SETUP_BYTES];
	const int fd = dial(network, port);

	if (!take(fd, data, OWAMP_GREETING_BYTES))
		return -1;
	owamp_setup_write(data, OWAMP_OPEN);
	put(fd, data, OWAMP_SETUP_BYTES);
	want(take(fd, data, OWAMP_START_BYTES));
	return fd;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return stamp_time_of_ns(ktrxer_timespec_ns(ts.tv_sec, ts.tv_nsec), false);
}

/* A request for a session in the loopback device, and what the server answers. */
static struct owamp_accepted request(int fd, struct owamp_request r, uint64_t gap_ns)
{
	uint8_t data[OWAMP_REQUEST_BYTES + OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES] = { 0 };
	const struct owamp_slot slot = { OWAMP_SLOT_EXPONENTIAL, owamp_time_of_ns(gap_ns) };
	struct owamp_accepted accepted;

	r.version = 4;
	r.slots = 1;
	if (!r.start)
		r.start = now();
	owamp_request_write(data, &r);
	owamp_slot_write(data + OWAMP_REQUEST_BYTES, &slot);
	put(fd, data, sizeof data);
	want(take(fd, data, OWAMP_ACCEPT_BYTES));
	want(owamp_accepted_read(&accepted, data) == 0);
	return accepted;
}

static void start(int fd)
{
	uint8_t data[OWAMP_COMMAND_BYTES];

	owamp_command_write(data, OWAMP_START_SESSIONS);
	put(fd, data, sizeof data);
	want(take(fd, data, sizeof data) && data[0] == OWAMP_OK);
}

/* Of each group of EACH packets all but the last were not sent, so one is lost. */
static void stop_with_most_ranges(int fd, const uint8_t sid[OWAMP_SID])
{
	static uint8_t data[OWAMP_STOP_BYTES + OWAMP_STOPPED_BYTES + OWAMP_SKIPS_MOST * OWAMP_SKIP_BYTES + OWAMP_BLOCK +
			    OWAMP_HMAC_BYTES];
	struct owamp_stopped stopped = { .next = PACKETS, .skips = OWAMP_SKIPS_MOST };

	memcpy(stopped.sid, sid, OWAMP_SID);
	owamp_stop_write(data, OWAMP_OK, 1);
	owamp_stopped_write(data + OWAMP_STOP_BYTES, &stopped);
	for (uint32_t i = 0; i < OWAMP_SKIPS_MOST; i++) {
		const struct owamp_skip range = { i * EACH, i * EACH + EACH - 2 };

		owamp_skip_write(data + OWAMP_STOP_BYTES + OWAMP_STOPPED_BYTES + (size_t)i * OWAMP_SKIP_BYTES, &range);
	}
	put(fd, data,
	    OWAMP_STOP_BYTES + owamp_padded(OWAMP_STOPPED_BYTES + OWAMP_SKIPS_MOST * OWAMP_SKIP_BYTES) +
		    OWAMP_HMAC_BYTES);
	want(take(fd, data, OWAMP_STOP_BYTES + OWAMP_HMAC_BYTES));
}

/* One answer to a fetch of all numbers: OWAMP_OK, or the refusal. */
static uint8_t fetched(int fd)
{
	static uint8_t data[OWAMP_FETCHED_HEAD];
	const uint32_t lost = OWAMP_SKIPS_MOST + PACKETS - OWAMP_SKIPS_MOST * EACH;
	struct owamp_fetched f;
	uint64_t before = 0;
	uint32_t seq = 0;

	want(take(fd, data, OWAMP_COMMAND_BYTES) && owamp_fetched_read(&f, data) == 0);
	if (f.accept != OWAMP_OK)
		return f.accept;
	want(f.finished && f.next == PACKETS && f.skips == OWAMP_SKIPS_MOST && f.records == lost);
	want(take(fd, data, OWAMP_REQUEST_BYTES + OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES));
	want(take(fd, data, OWAMP_SKIPS_MOST * OWAMP_SKIP_BYTES + OWAMP_HMAC_BYTES));
	for (uint32_t i = 0; i < f.records; i++) {
		struct owamp_record r;

		want(take(fd, data, OWAMP_RECORD_BYTES));
		owamp_record_read(&r, data);
		seq = i < OWAMP_SKIPS_MOST ? i * EACH + EACH - 1 : seq + 1;
		want(r.seq == seq && !r.received && r.sent >= before && r.ttl == 255);
		before = r.sent;
	}
	want(take(fd, data,
		  owamp_padded((size_t)lost * OWAMP_RECORD_BYTES) - (size_t)lost * OWAMP_RECORD_BYTES +
			  OWAMP_HMAC_BYTES));
	return OWAMP_OK;
}

/* Fetches of the most expensive session, all of them at once. A hundred are answered, and twenty more each second. */
static void play_fetches(uint16_t port, int count, int least)
{
	const uint64_t begin_ns = ktrxer_now_ns();
	const int fd = client(0, port);
	const struct owamp_accepted a =
		request(fd,
			(struct owamp_request){ .conf_receiver = true,
						.sender_port = 4000,
						.packets = PACKETS,
						.start = now() - (3 * 3600ULL << 32) /* all are decided */ },
			S / 10);
	struct owamp_fetch fetch = { .end = PACKETS };
	int answered = 0;

	want(a.accept == OWAMP_OK);
	start(fd);
	stop_with_most_ranges(fd, a.sid);
	memcpy(fetch.sid, a.sid, OWAMP_SID);
	for (int i = 0; i < count; i++) {
		uint8_t data[OWAMP_FETCH_BYTES];

		owamp_fetch_write(data, &fetch);
		put(fd, data, sizeof data);
	}
	for (int i = 0; i < count; i++) {
		const uint8_t accept = fetched(fd);

		want(accept == OWAMP_OK || accept == OWAMP_BUSY);
		answered += accept == OWAMP_OK;
	}
	want(answered >= least && (uint64_t)answered <= 101 + 20 * (ktrxer_now_ns() - begin_ns) / S);
}

static void play_many_fetches(uint16_t port)
{
	play_fetches(port, 300, 90);
}

static void play_few_fetches(uint16_t port)
{
	play_fetches(port, 3, 3);
}

static void play_small_messages(uint16_t port)
{
	static uint8_t data[MESSAGES * OWAMP_COMMAND_BYTES];
	const int fd = client(0, port);

	for (int i = 0; i < MESSAGES; i++)
		owamp_command_write(data + (size_t)i * OWAMP_COMMAND_BYTES, OWAMP_START_SESSIONS);
	put(fd, data, sizeof data);
	want(take(fd, data, sizeof data));
	for (int i = 0; i < MESSAGES; i++)
		want(data[(size_t)i * OWAMP_COMMAND_BYTES] == OWAMP_FAILURE);
}

static bool is_open(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static uint32_t open_of(const int *fds, int count)
{
	uint32_t open = 0;

	for (int i = 0; i < count; i++)
		open += is_open(fds[i]);
	return open;
}

static void play_idle_crowd(uint16_t port)
{
	int crowd[20];

	for (int i = 0; i < 20; i++)
		crowd[i] = client(0, port);
	want(open_of(crowd, 20) == 4 && is_open(crowd[19]));
	want(client(1, port) >= 0);
	want(open_of(crowd, 20) == 3 && is_open(crowd[19]));
}

static void play_busy_crowd(uint16_t port)
{
	const struct owamp_request r = { .conf_receiver = true, .sender_port = 4000, .packets = 10 };
	int crowd[4], others[2];

	for (int i = 0; i < 4; i++) {
		crowd[i] = client(0, port);
		want(request(crowd[i], r, S).accept == OWAMP_OK);
		start(crowd[i]);
	}
	want(client(0, port) < 0);
	for (int i = 0; i < 2; i++) {
		others[i] = client(1, port);
		want(others[i] >= 0 && request(others[i], r, S).accept == OWAMP_OK);
		start(others[i]);
	}
	want(open_of(crowd, 4) == 2 && open_of(others, 2) == 2);
	/* Two of each network: a running test keeps its connection. */
	want(client(0, port) < 0 && client(1, port) < 0);
	want(open_of(crowd, 4) == 2 && open_of(others, 2) == 2);
}

/* 7.2 Mbit/s each, of 40 Mbit/s. */
static void play_rates(uint16_t port)
{
	const struct owamp_request r = { .conf_sender = true, .receiver_port = 9, .packets = 100, .padding = 8972 };

	for (uint8_t network = 0; network < 6; network++) {
		const int fd = client(network, port);

		want(request(fd, r, 10 * MS).accept == (network < 5 ? OWAMP_OK : OWAMP_BUSY));
		if (network == 0)
			want(request(fd, r, 10 * MS).accept == OWAMP_BUSY);
	}
}

/* ------------------------------------------------------------------------------------------------------- the server */

static struct owamp_server *server_open(struct loop *loop, uint32_t places, uint16_t *port)
{
	const struct owamp_server_options o = {
		.max_clients = places, .max_ns = 3600 * S, .max_all_bps = 40000000, .dscp_granted = 1, .random = 1
	};
	struct ktrxer_addr local = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
	struct ktrxer_error err = { 0 };
	struct owamp_server *server;
	int rc = -EADDRINUSE;

	assert_int_equal(owamp_server_new(&server, loop, &o, &err), 0);
	for (int i = 0; i < 50 && rc == -EADDRINUSE; i++) {
		*port = (uint16_t)(20000 + ((unsigned int)getpid() * 37 + (unsigned int)i * 977) % 10000);
		rc = owamp_server_listen(server, &local, *port, &err);
	}
	assert_int_equal(rc, 0);
	return server;
}

/* The figures of the loop while the clients play. */
static struct loop_figures serve(void (*clients)(uint16_t port), uint32_t places, uint64_t (*clock)(void))
{
	struct owamp_server_counts counts;
	struct loop_figures figures;
	struct owamp_server *server;
	struct loop *loop;
	int life[2], status;
	uint16_t port;
	pid_t child;

	assert_int_equal(loop_new(&loop), 0);
	server = server_open(loop, places, &port);
	loop_clock(loop, clock);
	assert_int_equal(pipe(life), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(life[0]);
		alarm(is_emulated() ? 160 : 40);
		clients(port);
		_exit(0);
	}
	close(life[1]);
	assert_int_equal(loop_run(loop, life[0]), 0); /* the end of the pipe is that of the child */
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(life[0]);
	loop_figures(loop, &figures);
	owamp_server_counts(server, &counts);
	assert_int_equal(counts.protocol_errors, 0);
	owamp_server_free(server);
	loop_free(loop);
	return figures;
}

/* Other work on the machine delays some tries. An operation that takes too long takes too long in each try. */
static void judge(void (*clients)(uint16_t port))
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES && least > limit_ns(); i++) {
		const uint64_t ns = serve(clients, 4, processor_ns).longest_ns;

		least = ns < least ? ns : least;
	}
	print_message("at most %llu us of the loop at once\n", (unsigned long long)least / 1000);
	if (least > limit_ns())
		fail_msg("a call takes more than %llu us, each of %d times", (unsigned long long)limit_ns() / 1000,
			 TRIES);
}

TEST(fetches_do_not_hold_the_loop)
{
	judge(play_many_fetches);
}

TEST(small_messages_do_not_hold_the_loop)
{
	judge(play_small_messages);
}

/* An exchange that is interrupted after each step has the same end as one that is not. */
TEST(each_call_ends_with_its_share)
{
	(void)serve(play_few_fetches, 4, step_clock);
	assert_true(serve(play_small_messages, 4, step_clock).calls > MESSAGES);
}

TEST(silent_connections_of_one_network_give_way)
{
	(void)serve(play_idle_crowd, 4, ktrxer_now_ns);
}

TEST(tests_of_one_network_leave_places_to_others)
{
	(void)serve(play_busy_crowd, 4, ktrxer_now_ns);
}

TEST(all_sessions_together_have_a_rate)
{
	if (is_emulated() && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) /* a session that sends looks for its device */
		cm_skip("qemu-user translates only a part of rtnetlink between the orders of bytes");
	(void)serve(play_rates, 8, ktrxer_now_ns);
}
