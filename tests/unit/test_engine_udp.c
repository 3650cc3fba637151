/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The udp engine over the loopback device: frames with a send time leave by a socket that has their route. */
#include "clock.h"
#include "cm.h"
#include "packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ktrxer.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAYLOAD = 16, HEADERS = 28, FROM_PORT = 47123 };

static int receiver(uint16_t *port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof name;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	*port = ntohs(name.sin_port);
	return fd;
}

static struct ktx *transmitter(enum ktx_send_time format)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktrxer_error err;
	struct ktx *tx;

	options.engine = "udp";
	options.flags = KTX_CALLER_PUMPS | KTX_NO_LOCK | KTX_NO_STAMPS;
	options.frame_size = HEADERS + PAYLOAD;
	options.send_time = format;
	options.send_time_at = HEADERS;
	assert_int_equal(ktx_open(&tx, &options, &err), 0);
	return tx;
}

/* One datagram to the port, and whether it arrived at `fd`. */
static void send_to(struct ktx *tx, uint16_t port, int fd)
{
	struct ktrxer_path path = { .source = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } },
				    .to = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } } };
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	const struct ktx_probe probe = { .id = port, .length = HEADERS + PAYLOAD };
	uint8_t data[PAYLOAD];
	struct ktrxer_error err;
	struct ktx_slot slot;
	uint64_t next;

	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = FROM_PORT;
	spec.to_port = port;
	spec.payload_length = PAYLOAD;
	spec.link = KTRXER_LINK_RAW_IP;
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	assert_int_equal(ktrxer_frame_build(slot.frame, slot.capacity, &spec), HEADERS + PAYLOAD);
	assert_int_equal(ktx_commit(tx, &probe, &err), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_int_equal(recv(fd, data, sizeof data, 0), PAYLOAD);
}

static int peer_of(const struct ktx *tx, uint16_t *port)
{
	struct sockaddr_in name;
	socklen_t length = sizeof name;

	if (getpeername(ktx_reply_fd(tx), (struct sockaddr *)&name, &length) != 0)
		return -errno;
	*port = ntohs(name.sin_port);
	return 0;
}

/* The lookup of a route would lie between the time in a frame and its departure. */
TEST(a_socket_with_send_times_is_connected_to_its_first_destination)
{
	uint16_t first, second, peer = 0;
	const int fds[2] = { receiver(&first), receiver(&second) };
	struct ktx *tx = transmitter(KTX_SEND_TIME_NTP);

	send_to(tx, first, fds[0]);
	assert_int_equal(peer_of(tx, &peer), 0);
	assert_int_equal(peer, first);
	send_to(tx, second, fds[1]);
	send_to(tx, first, fds[0]);
	assert_int_equal(peer_of(tx, &peer), 0);
	assert_int_equal(peer, first);
	ktx_close(tx);
	close(fds[0]);
	close(fds[1]);
}

/* Its replies may come from other addresses than that of the frame. */
TEST(a_socket_without_send_times_is_not_connected)
{
	uint16_t port, peer = 0;
	const int fd = receiver(&port);
	struct ktx *tx = transmitter(KTX_SEND_TIME_NONE);

	send_to(tx, port, fd);
	assert_int_equal(peer_of(tx, &peer), -ENOTCONN);
	ktx_close(tx);
	close(fd);
}
