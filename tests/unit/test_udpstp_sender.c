/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The accounts of the sender of load: each datagram ends in one way, and has a lateness where it was scheduled. */
#include "clock.h"
#include "cm.h"
#include "udpstp_sender.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MS = 1000 * 1000, RUNS_MS = 60, HELD_MS = 40, BURST = 3 };

static const struct udpstp_rate three_each_ms = { .interval_us = { 0, 1000 },
						  .burst = { 0, BURST },
						  .payload = { 0, 200 } };

struct end {
	struct loop_timer timer; /* first */
	struct loop *loop;
};

static void end_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	timer->at_ns = KTRXER_NEVER;
	loop_stop(((struct end *)timer)->loop);
}

/* Connected to itself: what it sends waits in its own buffer, or is dropped there. */
static int socket_to_itself(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof name;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, length), 0);
	return fd;
}

/* Sends for RUNS_MS by a loop that begins `held_ms` after the schedule did. */
static struct udpstp_sender *sender_run(int fd, uint32_t held_ms)
{
	struct udpstp_sender *s = malloc(sizeof *s);
	struct end end = { .timer = { .due = end_due } };
	uint64_t begin_ns;

	assert_non_null(s);
	assert_int_equal(loop_new(&end.loop), 0);
	udpstp_sender_begin(s, end.loop, fd, false, false, 1);
	begin_ns = ktrxer_now_ns();
	udpstp_sender_rate(s, &three_each_ms);
	end.timer.at_ns = begin_ns + (held_ms + RUNS_MS) * (uint64_t)MS;
	loop_timer_add(end.loop, &end.timer);
	while (ktrxer_now_ns() < begin_ns + held_ms * (uint64_t)MS)
		;
	assert_int_equal(loop_run(end.loop, -1), 0);
	udpstp_sender_end(s);
	loop_timer_remove(end.loop, &end.timer);
	loop_free(end.loop);
	return s;
}

static void sender_free(struct udpstp_sender *s)
{
	ktrxer_hist_free(s->lateness);
	free(s);
}

static void accounts_close(const struct udpstp_sender *s, struct ktx_accounts *a)
{
	udpstp_sender_accounts(s, a);
	assert_int_equal(a->requested, a->sent + a->failed + a->skipped);
	assert_int_equal(a->queued, a->sent);
	assert_int_equal(a->bytes, a->sent * (200 + UDPSTP_HEADERS_V4));
	assert_int_equal(ktrxer_hist_count(s->lateness), a->sent);
}

TEST(each_datagram_has_a_lateness)
{
	const int fd = socket_to_itself();
	struct udpstp_sender *s = sender_run(fd, 0);
	struct ktx_accounts a;

	accounts_close(s, &a);
	assert_in_range(a.sent, BURST, 2 * RUNS_MS * BURST); /* a late loop ends late */
	assert_int_equal(a.failed, 0);
	assert_true(ktrxer_hist_min(s->lateness) >= 0);
	assert_true(a.first_ns <= a.last_ns && a.tries == a.sent);
	sender_free(s);
	close(fd);
}

TEST(bursts_whose_time_has_passed_are_skipped_and_late)
{
	const int fd = socket_to_itself();
	struct udpstp_sender *s = sender_run(fd, HELD_MS);
	struct ktx_accounts a;

	accounts_close(s, &a);
	assert_true(a.skipped >= BURST * (HELD_MS - (uint64_t)UDPSTP_BEHIND_NS / MS) && a.skipped % BURST == 0);
	assert_true(a.late >= a.skipped);
	assert_true(a.sent >= BURST);
	sender_free(s);
	close(fd);
}

TEST(what_the_kernel_rejects_has_failed)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct udpstp_sender *s;
	struct ktx_accounts a;

	assert_true(fd >= 0);
	s = sender_run(fd, 0); /* it is not connected */
	accounts_close(s, &a);
	assert_int_equal(a.sent, 0);
	assert_true(a.failed >= BURST && a.last_error == -EDESTADDRREQ);
	assert_int_equal(s->refused, 0);
	assert_int_equal(s->head.sequence, 0);
	sender_free(s);
	close(fd);
}
