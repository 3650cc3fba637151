/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An empty receiver: which system calls a look costs, and that a device that goes down or away is reported. The kernel
 * is this file's (--wrap).
 */
#include "cm.h"
#include "rx_watch.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>

enum { DEVICE = 7 };

static int error, ifindex, options, names;

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	(void)fd;
	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(option, SO_ERROR);
	assert_int_equal(*length, sizeof error);
	memcpy(value, &error, sizeof error);
	error = 0; /* as the kernel does */
	options++;
	return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	const struct sockaddr_ll now = { .sll_family = AF_PACKET, .sll_ifindex = ifindex };

	(void)fd;
	assert_true(*length >= sizeof now);
	memcpy(address, &now, sizeof now);
	names++;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	error = options = names = 0;
	ifindex = DEVICE;
	return 0;
}

struct cm_hooks cm_hooks = { .before_each = begin };

TEST(the_end_of_a_queue_costs_no_call)
{
	struct krx_look look = { 0 };

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
		look.empty = false; /* a packet */
	}
	assert_int_equal(options + names, 0);
}

TEST(a_poll_without_packets_costs_one_call)
{
	struct krx_look look = { 0 };

	for (int i = 0; i <= 1000; i++)
		assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
	assert_int_equal(options, 1000);
	assert_int_equal(names, 0);
}

TEST(a_device_that_goes_down_comes_back_and_goes_away)
{
	struct krx_look look = { 0 };

	error = ENETDOWN; /* behind the last packet of a queue */
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENETDOWN);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0); /* up again, by the socket's error */
	look.empty = false;
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
	ifindex = -1; /* without a second error: the device was down when it was removed */
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENODEV);
}

TEST(a_device_that_is_removed_at_once)
{
	struct krx_look look = { .empty = true };

	error = ENETDOWN;
	ifindex = -1;
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENODEV);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENODEV);
}

/* A large packet is read by recv(), which takes the socket's error with it. */
TEST(an_error_that_another_call_has_taken)
{
	struct krx_look look = { .empty = true, .error = ENETDOWN };

	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENETDOWN);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
}

TEST(of_all_devices_one_may_go)
{
	struct krx_look look = { .empty = true };

	error = ENETDOWN;
	assert_int_equal(krx_watch_look(&look, 3, 0), 0);
	assert_int_equal(options, 1); /* the error is taken from the socket: it would keep the descriptor readable */
}
