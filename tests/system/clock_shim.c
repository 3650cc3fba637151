/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A step of CLOCK_REALTIME in one process, without touching the machine's clock. Preloaded; $CLOCK_SHIM_AFTER_MS
 * after the process has begun to wait for steps the clock is ahead by $CLOCK_SHIM_STEP_NS (may be negative), and
 * $CLOCK_SHIM_BACK_MS after that it is right again. $CLOCK_SHIM_AT instead of $CLOCK_SHIM_AFTER_MS: a file with the
 * time of the change, 8 bytes, nanoseconds; 0: it is not known yet. With $CLOCK_SHIM_SLEW_PPM the clock and
 * CLOCK_MONOTONIC gain by so much in that time, and keep what they have gained.
 *
 * Changed are: clock_gettime() of these clocks; the kernel's stamps in control messages, each by what the clock's
 * error was when it was made (as a real step leaves stamps from before it alone); and timers that are to be
 * cancelled by steps.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
enum { STAMPS_OLD = 37, STAMPS_NEW = 65 };

static int64_t begin_ns = INT64_MAX, end_ns = INT64_MAX, step_ns; /* on the true CLOCK_REALTIME */
static int64_t slew_ppm, after_ns, back_ns = INT64_MAX;
static volatile const int64_t *at_ns;
static int timer_fd = -1;

static int64_t true_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t error_at(int64_t ns)
{
	int64_t slewed;

	if (at_ns && *at_ns && begin_ns == INT64_MAX) {
		end_ns = back_ns < INT64_MAX ? *at_ns + back_ns : INT64_MAX;
		begin_ns = *at_ns;
	}
	slewed = ns < begin_ns ? 0 : (ns < end_ns ? ns : end_ns) - begin_ns;
	return (ns >= begin_ns && ns < end_ns ? step_ns : 0) + (int64_t)((double)slewed * 1e-6 * (double)slew_ppm);
}

static void add(struct timespec *t, int64_t ns)
{
	int64_t sum = t->tv_sec * SECOND + t->tv_nsec + ns;

	t->tv_sec = sum / SECOND;
	t->tv_nsec = sum % SECOND;
}

static void *announce(void *unused)
{
	const int64_t at[2] = { begin_ns, end_ns };
	const uint64_t one = 1;

	for (int i = 0; i < 2; i++) {
		int64_t left = at[i] - true_ns();
		struct timespec nap = { .tv_sec = left / SECOND, .tv_nsec = left % SECOND };

		if (left > 0)
			nanosleep(&nap, NULL);
		if (timer_fd >= 0)
			(void)!write(timer_fd, &one, sizeof one);
	}
	return unused;
}

__attribute__((constructor)) static void shim_start(void)
{
	const char *step = getenv("CLOCK_SHIM_STEP_NS"), *after = getenv("CLOCK_SHIM_AFTER_MS"),
		   *back = getenv("CLOCK_SHIM_BACK_MS"), *slew = getenv("CLOCK_SHIM_SLEW_PPM"),
		   *at = getenv("CLOCK_SHIM_AT");
	const int file = at ? open(at, O_RDONLY) : -1;

	step_ns = step ? atoll(step) : 0;
	slew_ppm = slew ? atoll(slew) : 0;
	after_ns = (after ? atoll(after) : 0) * 1000000;
	back_ns = back ? atoll(back) * 1000000 : INT64_MAX;
	if (file < 0)
		return;
	at_ns = mmap(NULL, sizeof *at_ns, PROT_READ, MAP_SHARED, file, 0);
	if (at_ns == MAP_FAILED)
		abort();
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		add(t, error_at(t->tv_sec * SECOND + t->tv_nsec));
	else if (rc == 0 && clock == CLOCK_MONOTONIC && slew_ppm)
		add(t, error_at(true_ns()));
	return rc;
}

static void messages_change(struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct timespec t;

		if (c->cmsg_level != SOL_SOCKET || (c->cmsg_type != STAMPS_OLD && c->cmsg_type != STAMPS_NEW))
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof t);
		if (t.tv_sec)
			add(&t, error_at(t.tv_sec * SECOND + t.tv_nsec));
		memcpy(CMSG_DATA(c), &t, sizeof t);
	}
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t n = syscall(SYS_recvmsg, fd, message, flags);

	if (n >= 0)
		messages_change(message);
	return n;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
	int n = (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);

	for (int i = 0; i < n; i++)
		messages_change(&messages[i].msg_hdr);
	return n;
}

/*
 * A timer on CLOCK_REALTIME is here only ever one that waits for steps: it becomes a descriptor that `announce`
 * writes to.
 */
int timerfd_create(int clock, int flags)
{
	pthread_t thread;

	if (clock != CLOCK_REALTIME || timer_fd >= 0)
		return (int)syscall(SYS_timerfd_create, clock, flags);
	/*
	 * The time does not count from the start of the process: on a busy machine the step would be before its first
	 * look at the clock.
	 */
	if (!at_ns) {
		begin_ns = true_ns() + after_ns;
		end_ns = back_ns < INT64_MAX ? begin_ns + back_ns : INT64_MAX;
	}
	timer_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (timer_fd >= 0 && pthread_create(&thread, NULL, announce, NULL) == 0)
		pthread_detach(thread);
	return timer_fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	return fd == timer_fd ? 0 : (int)syscall(SYS_timerfd_settime, fd, flags, at, old);
}

ssize_t read(int fd, void *buffer, size_t size)
{
	ssize_t n = syscall(SYS_read, fd, buffer, size);

	if (fd != timer_fd || n < 0)
		return n;
	errno = ECANCELED;
	return -1;
}
