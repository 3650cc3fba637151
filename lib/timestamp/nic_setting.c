/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nic_setting.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <paths.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CHANGE_WAIT_MS =
		500, /* a change takes a driver some milliseconds; a process that holds the lock for longer hangs */
	HALF_VALUES = 256, /* of tx_type, of rx_filter */
};

/* Bytes of the lock file: the first is the lock of a change; each of the others is one value of struct nic_halves. */
enum {
	CHANGE_BYTE = 0,
	USERS_BYTE = 1,
	USERS_END = USERS_BYTE + (NIC_SENT | NIC_RECEIVED) * HALF_VALUES * HALF_VALUES
};

const char *ktrxer_nic_lock_folder = _PATH_VARRUN "ktrxer";

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

/*
 * The folder must belong to root (or to the user of this process) and be writable by its owner alone, because locks in
 * it are trusted.
 */
static bool folder_is_safe(int folder)
{
	struct stat st;

	return fstat(folder, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* One file for each device of each network namespace. -1: this process cannot share the setting with others. */
static int lock_open(uint32_t index)
{
	struct stat ns;
	char name[64];
	int folder, fd = -1;

	(void)mkdir(ktrxer_nic_lock_folder, S_IRWXU);
	folder = open(ktrxer_nic_lock_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return -1;
	if (folder_is_safe(folder) && stat("/proc/thread-self/ns/net", &ns) == 0) {
		snprintf(name, sizeof name, "nic-%llu-%u", (unsigned long long)ns.st_ino, index);
		fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	}
	close(folder);
	return fd;
}

/*
 * Locks of the open file (Linux 3.15): two users within one process exclude each other, and the kernel drops the locks
 * of a killed process.
 */
static int lock_byte(int fd, short type, int64_t at)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

static void change_begin(int fd)
{
	const struct timespec pause = { .tv_nsec = KTRXER_NS_PER_MS };

	for (int i = 0; fd >= 0 && i < CHANGE_WAIT_MS && lock_byte(fd, F_WRLCK, CHANGE_BYTE) < 0; i++)
		nanosleep(&pause, NULL);
}

static void change_end(int fd)
{
	if (fd >= 0)
		(void)lock_byte(fd, F_UNLCK, CHANGE_BYTE);
}

static int64_t user_byte(const struct nic_halves *user)
{
	return USERS_BYTE + ((int64_t)(user->wants - 1) * HALF_VALUES + user->sent) * HALF_VALUES + user->received;
}

static void user_add(struct nic_halves *others, int64_t byte)
{
	const int64_t code = byte - USERS_BYTE;
	const int wants = (int)(code / HALF_VALUES / HALF_VALUES) + 1;

	if (wants & NIC_SENT)
		others->sent = (int)(code / HALF_VALUES % HALF_VALUES);
	if (wants & NIC_RECEIVED)
		others->received = (int)(code % HALF_VALUES);
	others->wants |= wants;
}

/* The kernel gives any one lock of a range, not the first: so look to its left and to its right. */
static void others_find(int fd, int64_t from, int64_t to, struct nic_halves *others)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = to - from };

	if (from >= to || fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type == F_UNLCK)
		return;
	if (lock.l_start < from || lock.l_start >= to)
		return;
	user_add(others, lock.l_start);
	others_find(fd, from, lock.l_start, others);
	others_find(fd, lock.l_start + 1, to, others);
}

/*
 * A half that others use keeps the value from before its first user. Without a lock file there are none, and nothing is
 * restored.
 */
static struct nic_halves others_of(int fd)
{
	struct nic_halves others = { 0 };

	others_find(fd, USERS_BYTE, USERS_END, &others);
	return others;
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

static int take(struct nic_setting *s, int fd, int filter)
{
	struct hwtstamp_config config = { 0 };
	struct nic_halves others;
	int rc = config_get(fd, s->device, &config);

	if (rc < 0)
		return rc;
	if (config.tx_type < 0 || config.tx_type >= HALF_VALUES || config.rx_filter < 0 ||
	    config.rx_filter >= HALF_VALUES)
		return -ERANGE;
	others = others_of(s->place);
	s->before.sent = others.wants & NIC_SENT && s->before.wants & NIC_SENT ? others.sent : config.tx_type;
	s->before.received =
		others.wants & NIC_RECEIVED && s->before.wants & NIC_RECEIVED ? others.received : config.rx_filter;
	if (s->place >= 0)
		rc = lock_byte(s->place, F_RDLCK, user_byte(&s->before));
	if (!rc && raise_config(&config, s->before.wants, filter))
		rc = config_do(fd, SIOCSHWTSTAMP, s->device, &config);
	s->now = (struct nic_halves){ s->before.wants, config.tx_type,
				      config.rx_filter }; /* the driver may have widened it */
	return rc;
}

static int config_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int ktrxer_nic_setting_take(struct nic_setting *s, const char *device, uint32_t index, int wants, int filter)
{
	int fd = config_socket(), rc;

	*s = (struct nic_setting){ .place = -1, .before.wants = wants };
	if (fd < 0)
		return fd;
	snprintf(s->device, sizeof s->device, "%s", device);
	s->place = lock_open(index);
	change_begin(s->place);
	rc = take(s, fd, filter);
	change_end(s->place);
	if (rc < 0 && s->place >= 0) {
		close(s->place);
		s->place = -1;
	}
	close(fd);
	return rc;
}

void ktrxer_nic_setting_give(struct nic_setting *s)
{
	struct hwtstamp_config config = { 0 }, was;
	int fd, ours;

	if (s->place < 0)
		return;
	fd = config_socket();
	change_begin(s->place);
	ours = s->before.wants & ~others_of(s->place).wants;
	if (fd >= 0 && config_get(fd, s->device, &config) == 0) {
		was = config;
		if (ours & NIC_SENT && config.tx_type == s->now.sent)
			config.tx_type = s->before.sent;
		if (ours & NIC_RECEIVED && config.rx_filter == s->now.received)
			config.rx_filter = s->before.received;
		if (memcmp(&was, &config, sizeof was))
			config_do(fd, SIOCSHWTSTAMP, s->device, &config);
	}
	close(s->place); /* its locks, too */
	s->place = -1;
	if (fd >= 0)
		close(fd);
}

int ktrxer_nic_setting_read(const char *device, struct nic_halves *now)
{
	struct hwtstamp_config config = { 0 };
	int fd = config_socket(), rc = fd < 0 ? fd : config_get(fd, device, &config);

	*now = (struct nic_halves){ 0, config.tx_type, config.rx_filter };
	if (fd >= 0)
		close(fd);
	return rc;
}
