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

static void the_end_of_a_queue_costs_no_call(void **state)
{
	struct krx_look look = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
		look.empty = false; /* a packet */
	}
	assert_int_equal(options + names, 0);
}

static void a_poll_without_packets_costs_one_call(void **state)
{
	struct krx_look look = { 0 };

	(void)state;
	for (int i = 0; i <= 1000; i++)
		assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
	assert_int_equal(options, 1000);
	assert_int_equal(names, 0);
}

static void a_device_that_goes_down_comes_back_and_goes_away(void **state)
{
	struct krx_look look = { 0 };

	(void)state;
	error = ENETDOWN; /* behind the last packet of a queue */
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENETDOWN);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0); /* up again, as far as the socket knows */
	look.empty = false;
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
	ifindex = -1; /* without a second error: the device was down when it was removed */
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENODEV);
}

static void a_device_that_is_removed_at_once(void **state)
{
	struct krx_look look = { .empty = true };

	(void)state;
	error = ENETDOWN;
	ifindex = -1;
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENODEV);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENODEV);
}

/* A large packet is read by recv(), which takes the socket's error with it. */
static void an_error_that_another_call_has_taken(void **state)
{
	struct krx_look look = { .empty = true, .error = ENETDOWN };

	(void)state;
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), -ENETDOWN);
	assert_int_equal(krx_watch_look(&look, 3, DEVICE), 0);
}

static void of_all_devices_one_may_go(void **state)
{
	struct krx_look look = { .empty = true };

	(void)state;
	error = ENETDOWN;
	assert_int_equal(krx_watch_look(&look, 3, 0), 0);
	assert_int_equal(options, 1); /* the error is taken from the socket: it would keep the descriptor readable */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_end_of_a_queue_costs_no_call, begin),
		cmocka_unit_test_setup(a_poll_without_packets_costs_one_call, begin),
		cmocka_unit_test_setup(a_device_that_goes_down_comes_back_and_goes_away, begin),
		cmocka_unit_test_setup(a_device_that_is_removed_at_once, begin),
		cmocka_unit_test_setup(an_error_that_another_call_has_taken, begin),
		cmocka_unit_test_setup(of_all_devices_one_may_go, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
