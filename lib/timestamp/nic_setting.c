/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nic_setting.h"

#include "clock.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME "ktrxer/nic/%u"

enum {
	PLACES = 1024,    /* users of one device */
	DOOR_WAIT_MS = 500, /* a change takes a driver some milliseconds; whoever holds the door for longer is none of ours */
};

static int config_do(int fd, unsigned long request, const char *device, struct hwtstamp_config *config)
{
	struct ifreq ifr = { .ifr_data = (void *)config };

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", device);
	return ioctl(fd, request, &ifr) == 0 ? 0 : -errno;
}

static int config_get(int fd, const char *device, struct hwtstamp_config *config)
{
	int rc = config_do(fd, SIOCGHWTSTAMP, device, config);

	if (rc != -EOPNOTSUPP && rc != -EINVAL && rc != -ENOTTY)
		return rc;
	memset(config, 0, sizeof *config); /* HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_NONE */
	return 0;
}

__attribute__((format(printf, 2, 3))) static int bind_name(int fd, const char *format, ...)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(address.sun_path + 1, sizeof address.sun_path - 1, format, args); /* behind a zero: an abstract one */
	va_end(args);
	return bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ? -errno : 0;
}

/* One at a time looks who else is there and changes something. The socket, by which the device is asked, too. */
static int door_open(uint32_t index)
{
	const struct timespec pause = { .tv_nsec = KTRXER_NS_PER_MS };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int i = 0; fd >= 0 && i < DOOR_WAIT_MS && bind_name(fd, NAME, index) == -EADDRINUSE; i++)
		nanosleep(&pause, NULL);
	return fd < 0 ? -errno : fd;
}

/* By hand: sscanf() alone would be 3 KB of the static program. */
bool nic_setting_user(const char *line, uint32_t index, struct nic_halves *user)
{
	const char *name = strchr(line, '@'); /* how abstract names are shown */
	char ours[32];
	const size_t length = (size_t)snprintf(ours, sizeof ours, "@" NAME "/", index);

	if (!name || strncmp(name, ours, length) != 0)
		return false;
	name += length;
	if (name[0] <= '0' || name[0] > '0' + (NIC_SENT | NIC_RECEIVED) || name[1] < 'a' || name[1] > 'z' || name[2] < 'a' || name[2] > 'z' || name[3] != '/')
		return false;
	*user = (struct nic_halves){ name[0] - '0', name[1] - 'a', name[2] - 'a' };
	return true;
}

/* What all others want, and how each half that they want was before them. Who cannot see takes it that all is wanted. */
static void others_find(uint32_t index, struct nic_halves *others)
{
	FILE *file = fopen("/proc/thread-self/net/unix", "re");
	struct nic_halves user;
	char line[256];

	*others = (struct nic_halves){ .wants = file ? 0 : NIC_SENT | NIC_RECEIVED };
	while (file && fgets(line, sizeof line, file)) {
		if (!nic_setting_user(line, index, &user))
			continue;
		if (user.wants & NIC_SENT)
			others->sent = user.sent;
		if (user.wants & NIC_RECEIVED)
			others->received = user.received;
		others->wants |= user.wants;
	}
	if (file)
		fclose(file);
}

static int place_take(struct nic_setting *s)
{
	int rc = -EADDRINUSE;

	s->place = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->place < 0)
		return -errno;
	for (int i = 0; rc == -EADDRINUSE && i < PLACES; i++)
		rc = bind_name(s->place, NAME "/%d%c%c/%d", s->index, s->before.wants, 'a' + s->before.sent, 'a' + s->before.received, i);
	return rc;
}

/* TX_ON, or what a PTP daemon has chosen instead (one-step), is enough; so is a filter for all. */
static bool raise_config(struct hwtstamp_config *config, int wants, int filter)
{
	const struct hwtstamp_config was = *config;

	if (wants & NIC_SENT && config->tx_type == HWTSTAMP_TX_OFF)
		config->tx_type = HWTSTAMP_TX_ON;
	if (wants & NIC_RECEIVED && (config->rx_filter == HWTSTAMP_FILTER_NONE || filter == HWTSTAMP_FILTER_ALL))
		config->rx_filter = filter;
	return memcmp(&was, config, sizeof was) != 0;
}

static int take(struct nic_setting *s, int door, int filter)
{
	struct hwtstamp_config config = { 0 };
	struct nic_halves others;
	int rc = config_get(door, s->device, &config);

	if (rc < 0)
		return rc;
	others_find(s->index, &others);
	s->before.sent = others.wants & NIC_SENT && s->before.wants & NIC_SENT ? others.sent : config.tx_type;
	s->before.received = others.wants & NIC_RECEIVED && s->before.wants & NIC_RECEIVED ? others.received : config.rx_filter;
	rc = place_take(s);
	if (!rc && raise_config(&config, s->before.wants, filter))
		rc = config_do(door, SIOCSHWTSTAMP, s->device, &config);
	s->now = (struct nic_halves){ s->before.wants, config.tx_type, config.rx_filter }; /* the driver may have widened it */
	return rc;
}

int nic_setting_take(struct nic_setting *s, const char *device, uint32_t index, int wants, int filter)
{
	int door = door_open(index), rc;

	*s = (struct nic_setting){ .place = -1, .index = index, .before.wants = wants };
	if (door < 0)
		return door;
	snprintf(s->device, sizeof s->device, "%s", device);
	rc = take(s, door, filter);
	if (rc < 0 && s->place >= 0)
		close(s->place);
	if (rc < 0)
		s->place = -1;
	close(door);
	return rc;
}

void nic_setting_give(struct nic_setting *s)
{
	struct hwtstamp_config config = { 0 }, was;
	struct nic_halves others;
	int door;

	if (s->place < 0)
		return;
	door = door_open(s->index);
	close(s->place);
	s->place = -1;
	if (door < 0)
		return;
	others_find(s->index, &others);
	others.wants = s->before.wants & ~others.wants; /* ours alone */
	if (config_get(door, s->device, &config) == 0) {
		was = config;
		if (others.wants & NIC_SENT && config.tx_type == s->now.sent)
			config.tx_type = s->before.sent;
		if (others.wants & NIC_RECEIVED && config.rx_filter == s->now.received)
			config.rx_filter = s->before.received;
		if (memcmp(&was, &config, sizeof was))
			config_do(door, SIOCSHWTSTAMP, s->device, &config);
	}
	close(door);
}

int nic_setting_read(const char *device, struct nic_halves *now)
{
	struct hwtstamp_config config = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = fd < 0 ? -errno : config_get(fd, device, &config);

	*now = (struct nic_halves){ 0, config.tx_type, config.rx_filter };
	if (fd >= 0)
		close(fd);
	return rc;
}
