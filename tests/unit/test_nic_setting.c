/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The setting of a NIC, shared: by transmitters and receivers of one process, of others that end as they should and as
 * they should not, and with ptp4l. The NIC is this file's: its ioctls are taken from the library by the linker
 * (--wrap); the locks are real.
 */
#include "cm.h"
#include "phc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t device; /* an index that no other test uses: two builds' tests may run at once */

/* Children share this memory. */
static struct nic {
	int sent, received;
	int sets, refuse, silent;  /* refuse: what SIOCSHWTSTAMP says; silent: no SIOCGHWTSTAMP */
	int widen;                 /* to this filter, whatever is asked */
	int64_t ahead_ns, read_ns; /* of the clock; how long a reading takes */
} *nic;

static int config(unsigned long request, struct hwtstamp_config *c)
{
	if (request == SIOCGHWTSTAMP) {
		*c = (struct hwtstamp_config){ 0, nic->sent, nic->received };
		return nic->silent ? -EOPNOTSUPP : 0;
	}
	if (nic->refuse)
		return nic->refuse;
	if (nic->widen && c->rx_filter)
		c->rx_filter = nic->widen;
	nic->sent = c->tx_type;
	nic->received = c->rx_filter;
	nic->sets++;
	return 0;
}

static struct ptp_clock_time at(int64_t ns)
{
	return (struct ptp_clock_time){ .sec = ns / KTRXER_NS_PER_S, .nsec = (uint32_t)(ns % KTRXER_NS_PER_S) };
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *data;
	int rc;

	(void)fd;
	va_start(args, request);
	data = va_arg(args, void *);
	va_end(args);
	request = (uint32_t)request; /* an int of musl's, with its sign */
	if (request == SIOCGHWTSTAMP || request == SIOCSHWTSTAMP) {
		rc = config(request, (struct hwtstamp_config *)(void *)((struct ifreq *)data)->ifr_data);
	} else if (request == PTP_SYS_OFFSET_EXTENDED) {
		struct ptp_sys_offset_extended *reported = data;
		struct timespec now;
		int64_t ns;

		clock_gettime(CLOCK_REALTIME, &now);
		ns = ktrxer_timespec_ns(now.tv_sec, now.tv_nsec);
		for (unsigned int i = 0; i < reported->n_samples; i++) {
			reported->ts[i][0] = at(ns - nic->read_ns);
			reported->ts[i][1] = at(ns + nic->ahead_ns);
			reported->ts[i][2] = at(ns + nic->read_ns);
		}
		rc = 0;
	} else {
		rc = -EOPNOTSUPP;
	}
	errno = -rc;
	return rc ? -1 : 0;
}

static int begin(void **state)
{
	(void)state;
	memset(nic, 0, sizeof *nic);
	return 0;
}

static int take(struct nic_setting *s, int wants)
{
	return ktrxer_nic_setting_take(s, "eth0", device, wants, HWTSTAMP_FILTER_ALL);
}

static void expect(int sent, int received)
{
	assert_int_equal(nic->sent, sent);
	assert_int_equal(nic->received, received);
}

/* Any user may bind any abstract name: such a name must not change what is put back. */
TEST(a_name_that_any_user_can_bind_is_not_believed)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "ktrxer/nic/%u/3bb/0",
			 device); /* both halves were on */
	struct nic_setting s;

	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
			 0);
	assert_int_equal(take(&s, NIC_SENT | NIC_RECEIVED), 0);
	expect(HWTSTAMP_TX_ON, HWTSTAMP_FILTER_ALL);
	ktrxer_nic_setting_give(&s);
	expect(HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_NONE);
	close(fd);
}

/*
 * A folder in which another user can write, or a link to a folder: no lock there is believed, and nothing is put back.
 */
TEST(a_folder_of_other_users_is_not_believed)
{
	const char *const folder = ktrxer_nic_lock_folder;
	char link[64];
	struct nic_setting s;

	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(take(&s, NIC_SENT), 0);
	assert_int_equal(s.place, -1);
	ktrxer_nic_setting_give(&s);
	expect(HWTSTAMP_TX_ON, 0);
	assert_int_equal(chmod(folder, 0700), 0);

	snprintf(link, sizeof link, "%s-link", folder);
	assert_int_equal(symlink(folder, link), 0);
	ktrxer_nic_lock_folder = link;
	begin(NULL);
	assert_int_equal(take(&s, NIC_SENT), 0);
	assert_int_equal(s.place, -1);
	ktrxer_nic_lock_folder = folder;
	unlink(link);

	/* A folder that belongs to another user. */
	begin(NULL);
	if (geteuid() == 0 && chown(folder, 65534, 65534) == 0) {
		assert_int_equal(take(&s, NIC_SENT), 0);
		assert_int_equal(s.place, -1);
		assert_int_equal(chown(folder, 0, 0), 0);
	}
}

/* The setting before the first user may be any value of either half; three users hold their locks at once. */
TEST(each_former_value_is_put_back)
{
	struct nic_setting s[3];

	for (int sent = HWTSTAMP_TX_OFF; sent <= HWTSTAMP_TX_ONESTEP_P2P; sent++)
		for (int received = HWTSTAMP_FILTER_NONE; received <= HWTSTAMP_FILTER_NTP_ALL; received++) {
			nic->sent = sent;
			nic->received = received;
			assert_int_equal(take(&s[0], NIC_RECEIVED), 0);
			assert_int_equal(take(&s[1], NIC_SENT), 0);
			assert_int_equal(take(&s[2], NIC_SENT | NIC_RECEIVED), 0);
			ktrxer_nic_setting_give(&s[0]);
			ktrxer_nic_setting_give(&s[1]);
			expect(sent ? sent : HWTSTAMP_TX_ON, HWTSTAMP_FILTER_ALL);
			ktrxer_nic_setting_give(&s[2]);
			expect(sent, received);
		}
}

TEST(two_transmitters_the_last_puts_it_back)
{
	struct nic_setting a, b;

	for (int first = 0; first < 2; first++) {
		assert_int_equal(take(&a, NIC_SENT), 0);
		expect(HWTSTAMP_TX_ON, 0);
		assert_int_equal(take(&b, NIC_SENT), 0);
		ktrxer_nic_setting_give(first ? &a : &b);
		expect(HWTSTAMP_TX_ON, 0);
		ktrxer_nic_setting_give(first ? &b : &a);
		expect(0, 0);
		ktrxer_nic_setting_give(&a); /* twice: nothing */
	}
	assert_int_equal(nic->sets, 4);
}

/* All orders in which a transmitter, a receiver and one that does both come and go. */
TEST(each_half_goes_with_the_last_who_wants_it)
{
	static const int wants[] = { NIC_SENT, NIC_RECEIVED, NIC_SENT | NIC_RECEIVED };
	static const int orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }
	};
	struct nic_setting s[3];

	for (int in = 0; in < 6; in++)
		for (int out = 0; out < 6; out++) {
			int left = 0;

			for (int i = 0; i < 3; i++) {
				const int who = orders[in][i];

				assert_int_equal(take(&s[who], wants[who]), 0);
				left |= wants[who];
				expect(left & NIC_SENT ? HWTSTAMP_TX_ON : 0,
				       left & NIC_RECEIVED ? HWTSTAMP_FILTER_ALL : 0);
			}
			for (int i = 0; i < 3; i++) {
				ktrxer_nic_setting_give(&s[orders[out][i]]);
				left = 0;
				for (int j = i + 1; j < 3; j++)
					left |= wants[orders[out][j]];
				expect(left & NIC_SENT ? HWTSTAMP_TX_ON : 0,
				       left & NIC_RECEIVED ? HWTSTAMP_FILTER_ALL : 0);
			}
		}
}

TEST(what_others_set_is_never_lowered)
{
	struct nic_setting s;

	/* ptp4l was there first, in one-step mode: all stays, but for its filter, which is widened, and put back. */
	nic->sent = HWTSTAMP_TX_ONESTEP_SYNC;
	nic->received = HWTSTAMP_FILTER_PTP_V2_EVENT;
	assert_int_equal(take(&s, NIC_SENT | NIC_RECEIVED), 0);
	expect(HWTSTAMP_TX_ONESTEP_SYNC, HWTSTAMP_FILTER_ALL);
	ktrxer_nic_setting_give(&s);
	expect(HWTSTAMP_TX_ONESTEP_SYNC, HWTSTAMP_FILTER_PTP_V2_EVENT);
	/* A NIC that stamps PTP alone has nothing better to offer than what is set. */
	assert_int_equal(ktrxer_nic_setting_take(&s, "eth0", device, NIC_RECEIVED, HWTSTAMP_FILTER_PTP_V2_L4_EVENT), 0);
	expect(HWTSTAMP_TX_ONESTEP_SYNC, HWTSTAMP_FILTER_PTP_V2_EVENT);
	ktrxer_nic_setting_give(&s);
	expect(HWTSTAMP_TX_ONESTEP_SYNC, HWTSTAMP_FILTER_PTP_V2_EVENT);

	/* It comes, and sets its own, while we are there. */
	begin(NULL);
	assert_int_equal(take(&s, NIC_SENT | NIC_RECEIVED), 0);
	nic->sent = HWTSTAMP_TX_ONESTEP_SYNC;
	nic->received = HWTSTAMP_FILTER_PTP_V2_EVENT;
	ktrxer_nic_setting_give(&s);
	expect(HWTSTAMP_TX_ONESTEP_SYNC, HWTSTAMP_FILTER_PTP_V2_EVENT);
}

TEST(other_processes_count)
{
	struct nic_setting ours, theirs;
	int status;

	for (int killed = 0; killed < 2; killed++) {
		int ends[2];
		pid_t child;
		char byte = 0;

		begin(NULL);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		child = fork();
		if (!child) {
			close(ends[0]);
			if (take(&theirs, NIC_SENT) || write(ends[1], &byte, 1) != 1)
				_exit(1);
			while (read(ends[1], &byte, 1) > 0)
				;
			ktrxer_nic_setting_give(&theirs);
			_exit(0);
		}
		close(ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 1); /* the child's change has ended */
		assert_int_equal(take(&ours, NIC_SENT), 0);
		if (killed)
			kill(child, SIGKILL);
		close(ends[0]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(killed || status == 0);
		expect(HWTSTAMP_TX_ON, 0); /* for us */
		ktrxer_nic_setting_give(&ours);
		expect(0, 0); /* as it was before the first of both */
	}
}

TEST(drivers_that_refuse_or_do_not_report)
{
	struct nic_setting s, t;

	nic->refuse = -EPERM;
	assert_int_equal(take(&s, NIC_SENT), -EPERM);
	ktrxer_nic_setting_give(&s);
	nic->refuse = -ERANGE;
	assert_int_equal(take(&s, NIC_RECEIVED), -ERANGE);
	nic->refuse = 0;
	/* The call that failed holds nothing any more. */
	assert_int_equal(take(&t, NIC_SENT | NIC_RECEIVED), 0);
	ktrxer_nic_setting_give(&t);
	expect(0, 0);
	/* Before ndo_hwtstamp_get: taken to be as at the start, and put back to that. */
	nic->silent = 1;
	nic->widen = HWTSTAMP_FILTER_ALL;
	assert_int_equal(ktrxer_nic_setting_take(&s, "eth0", device, NIC_SENT | NIC_RECEIVED,
						 HWTSTAMP_FILTER_PTP_V2_EVENT),
			 0);
	expect(HWTSTAMP_TX_ON, HWTSTAMP_FILTER_ALL);
	ktrxer_nic_setting_give(&s);
	assert_true(nic->sets >= 3);
}

/* A process that hangs holds the lock of a change: the wait ends after half a second. */
TEST(a_change_that_does_not_end)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	const uint64_t before = ktrxer_now_ns();
	struct nic_setting s;
	char path[128];
	struct stat ns;
	int fd;

	assert_int_equal(stat("/proc/self/ns/net", &ns), 0);
	snprintf(path, sizeof path, "%s/nic-%llu-%u", ktrxer_nic_lock_folder, (unsigned long long)ns.st_ino, device);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(take(&s, NIC_SENT), 0);
	assert_true(ktrxer_now_ns() - before > 400 * (uint64_t)KTRXER_NS_PER_MS);
	close(fd);
	ktrxer_nic_setting_give(&s);
	expect(0, 0);
}

/* --------------------------------------------------------------------------------------- stamps of what is received */

TEST(a_stamp_of_arrival_is_taken_over)
{
	struct phc phc = { .fd = 0, .setting.place = -1 };
	struct ktrxer_clock_map real;
	const int64_t ahead = 37 * KTRXER_NS_PER_S;
	uint64_t begin_ns = ktrxer_now_ns(), mono, now;
	uint32_t bound;
	int64_t stamp;

	ktrxer_clock_map_init(&real);
	nic->ahead_ns = ahead;
	nic->read_ns = 400;
	ktrxer_phc_refresh(&phc, &real, begin_ns);
	assert_int_equal(phc.map.count, 1);
	/* Ten packets that lay 20 us in the NIC before they were seen. */
	for (int i = 0; i < 10; i++) {
		usleep(20000);
		now = ktrxer_now_ns();
		stamp = (int64_t)now + ktrxer_clock_map_offset(&real) + ahead - 20000;
		assert_true(ktrxer_phc_stamp(&phc, &real, stamp, begin_ns, now, &mono, &bound));
		assert_true(bound >= 400 && bound < 100000);
		assert_true(mono + 20000 >= now ? mono + 20000 - now <= bound : now - mono - 20000 <= bound);
	}
	/* It was set by an hour between two samples: the stamp cannot be, the clock is looked at, and it can. */
	nic->ahead_ns += 3600 * KTRXER_NS_PER_S;
	usleep(2000);
	now = ktrxer_now_ns();
	stamp = (int64_t)now + ktrxer_clock_map_offset(&real) + nic->ahead_ns - 20000;
	assert_true(ktrxer_phc_stamp(&phc, &real, stamp, begin_ns, now, &mono, &bound));
	assert_true(mono <= now + bound && mono + 20000 + bound >= now);
	assert_int_equal(phc.map.steps, 1);
	/* Those that cannot be, of another NIC's clock say: no. */
	assert_false(ktrxer_phc_stamp(&phc, &real, stamp + KTRXER_NS_PER_S, begin_ns, now, &mono, &bound));
	assert_false(ktrxer_phc_stamp(&phc, &real, stamp - 3600 * KTRXER_NS_PER_S, begin_ns, now, &mono, &bound));
	assert_false(ktrxer_phc_stamp(&phc, &real, 0, begin_ns, now, &mono, &bound));
	assert_false(ktrxer_phc_stamp(&phc, &real, INT64_MAX, begin_ns, now, &mono, &bound));
}

static void folder_remove(const char *folder)
{
	char path[512];
	DIR *files = opendir(folder);
	const struct dirent *file;

	while (files && (file = readdir(files))) {
		snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
		unlink(path);
	}
	if (files)
		closedir(files);
	rmdir(folder);
}

static char lock_folder[] = "/tmp/ktrxer-nic-XXXXXX";

static int make_world(void **state)
{
	(void)state;
	device = (uint32_t)getpid();
	nic = mmap(NULL, sizeof *nic, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (nic == MAP_FAILED || !mkdtemp(lock_folder))
		return -1;
	ktrxer_nic_lock_folder = lock_folder;
	return 0;
}

static int remove_world(void **state)
{
	(void)state;
	folder_remove(lock_folder);
	return 0;
}

struct cm_hooks cm_hooks = { make_world, remove_world, .before_each = begin };
