/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host.h"

#include "fields_common.h"
#include "bytes.h"
#include "reasons.h"
#include "thread.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { KTRXER_HOST_WATCH_MS = 250 /* between two looks at /proc/stat */ };

enum {
	CPU_FIELDS = 8,     /* user nice system idle iowait irq softirq steal; guest time is within user time */
	CPU_FIELDS_MIN = 4, /* what Linux has always had */
	FIELD_IDLE = 3,
	FIELD_IOWAIT = 4,
	FIELD_STEAL = 7,
};

int host_cpu_parse(struct host_cpu *cpu, const char *text, size_t length)
{
	struct bytes b = bytes_of(text, length);
	uint64_t fields[CPU_FIELDS] = { 0 };
	const uint8_t *name = bytes_take(&b, 4);
	int count = 0;

	if (!name || memcmp(name, "cpu ", 4) != 0)
		return -EBADMSG;
	while (count < CPU_FIELDS && bytes_left(&b) && *b.at != '\n') {
		bool any = false;

		while (bytes_left(&b) && *b.at == ' ')
			bytes_skip(&b, 1);
		for (; bytes_left(&b) && *b.at >= '0' && *b.at <= '9'; any = true)
			if (__builtin_mul_overflow(fields[count], 10, &fields[count]) ||
			    __builtin_add_overflow(fields[count], (uint64_t)(*bytes_take(&b, 1) - '0'), &fields[count]))
				return -EBADMSG;
		if (!any)
			break;
		count++;
	}
	if (count < CPU_FIELDS_MIN)
		return -EBADMSG;
	*cpu = (struct host_cpu){ .idle = fields[FIELD_IDLE] + fields[FIELD_IOWAIT], .steal = fields[FIELD_STEAL] };
	for (int i = 0; i < CPU_FIELDS; i++)
		cpu->total += fields[i];
	return 0;
}

/* The kernel's idle and iowait figures have been seen to run backwards by a tick. */
static uint64_t advance(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

void host_load_add(struct host_load *load, const struct host_cpu *cpu)
{
	load->last = *cpu;
	if (!load->begun)
		load->first = *cpu;
	load->begun = true;
}

static int share(uint64_t part, uint64_t whole)
{
	if (!whole)
		return -1;
	return part >= whole ? 10000 : (int)((double)part / (double)whole * 10000 + 0.5);
}

int host_load_steal(const struct host_load *load)
{
	return share(advance(load->first.steal, load->last.steal), advance(load->first.total, load->last.total));
}

int host_load_cpu(const struct host_load *load)
{
	uint64_t total = advance(load->first.total, load->last.total),
		 idle = advance(load->first.idle, load->last.idle);

	return share(advance(idle, total), total);
}

struct host_watch {
	struct cli *cli;
	int stat_fd, step_fd, stop_fd;
	struct host_load load;
	int64_t offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, as last seen */
	uint64_t steps;
	int64_t stepped_ns; /* the largest one */
	pthread_t thread;
};

static void look_at_stat(struct host_watch *watch)
{
	struct host_cpu cpu;
	char text[512];
	ssize_t n;

	if (watch->stat_fd < 0)
		return;
	n = pread(watch->stat_fd, text, sizeof text, 0);
	if (n > 0 && !host_cpu_parse(&cpu, text, (size_t)n))
		host_load_add(&watch->load, &cpu);
}

static int64_t clock_offset(void)
{
	struct ktrxer_clock_pair pair;

	ktrxer_clock_pair_read(&pair);
	return pair.real_ns - (int64_t)pair.mono_ns;
}

/* A timer that never goes off, but is cancelled when CLOCK_REALTIME jumps: the kernel's own word for a step. */
static int arm_step(int fd)
{
	static const struct itimerspec never = { .it_value = { .tv_sec = 0x7fffffff } };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

static void note_step(struct host_watch *watch)
{
	int64_t offset = clock_offset(), step = offset - watch->offset_ns;
	struct json *event;

	watch->offset_ns = offset;
	watch->steps++;
	if (llabs(step) > llabs(watch->stepped_ns))
		watch->stepped_ns = step;
	event = out_event(watch->cli, "clock_step");
	if (event) {
		clock_step_step_ns(event, step);
		out_put(watch->cli, event);
	}
}

static void look_for_steps(struct host_watch *watch)
{
	uint64_t expirations;

	if (watch->step_fd < 0 || read(watch->step_fd, &expirations, sizeof expirations) >= 0 || errno != ECANCELED)
		return;
	note_step(watch);
	arm_step(watch->step_fd);
}

static void *watch_host(void *argument)
{
	struct host_watch *watch = argument;
	struct pollfd ready[2] = { { .fd = watch->stop_fd, .events = POLLIN },
				   { .fd = watch->step_fd, .events = POLLIN } };
	uint64_t due = ktrxer_now_ns() + KTRXER_HOST_WATCH_MS * 1000000ull;

	if (RUN_DELAY)
		watch->cli->run_delay.watcher = (pid_t)syscall(SYS_gettid);
	for (;;) {
		uint64_t now = ktrxer_now_ns();

		if (poll(ready, 2, now < due ? (int)((due - now) / 1000000 + 1) : 0) < 0 && errno != EINTR)
			break;
		if (ready[0].revents)
			break;
		if (ready[1].revents)
			look_for_steps(watch);
		now = ktrxer_now_ns();
		if (now >= due) {
			look_at_stat(watch);
			run_delay_look(&watch->cli->run_delay);
			due = now + KTRXER_HOST_WATCH_MS * 1000000ull;
		}
	}
	return NULL;
}

static void watch_free(struct host_watch *watch)
{
	const int descriptors[] = { watch->stop_fd, watch->step_fd, watch->stat_fd };

	for (int i = 0; i < 3; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	free(watch);
}

int host_watch_start(struct cli *cli)
{
	struct host_watch *watch = calloc(1, sizeof *watch);
	int ret;

	if (!watch)
		return -ENOMEM;
	watch->cli = cli;
	watch->offset_ns = clock_offset();
	run_delay_begin(&cli->run_delay);
	/* Neither is a must: without /proc the share is unknown, without the timer steps are. */
	watch->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	watch->step_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (watch->step_fd >= 0 && arm_step(watch->step_fd)) {
		close(watch->step_fd);
		watch->step_fd = -1;
	}
	watch->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch->stop_fd < 0) {
		ret = -errno;
		goto fail;
	}
	look_at_stat(watch);
	ret = cli_thread_start(&watch->thread, "ktrxer-host", watch_host, watch);
	if (ret)
		goto fail;
	cli->host = watch;
	return 0;

fail:
	watch_free(watch);
	return ret;
}

static void judge(struct cli *cli, const struct host_watch *watch)
{
	if (watch->steps)
		reason_clock_stepped(cli, watch->steps, watch->stepped_ns);
}

void host_watch_stop(struct cli *cli, struct json *end)
{
	struct host_watch *watch = cli->host;
	static const uint64_t one = 1;
	uint64_t waited;

	if (!watch)
		return;
	if (write(watch->stop_fd, &one, sizeof one) < 0) {
		/* An empty eventfd takes a one. */
	}
	pthread_join(watch->thread, NULL);
	look_for_steps(watch);
	look_at_stat(watch);
	if (end) {
		const int cpu = host_load_cpu(&watch->load), steal = host_load_steal(&watch->load);

		measured_host_open(end);
		host_cpu_percent_or_null(end, cpu >= 0, cpu);
		host_steal_percent_or_null(end, steal >= 0, steal);
		host_clock_steps(end, watch->steps);
		if (run_delay_since(&cli->run_delay, &waited))
			host_processor_wait_ms(end, (int64_t)waited);
		else if (RUN_DELAY)
			host_processor_wait_ms_null(end);
		json_object_end(end);
	}
	judge(cli, watch);
#ifndef KTRXER_SMALL
	if (cli->second)
		judge(cli->second, watch);
#endif
	cli->host = NULL;
	watch_free(watch);
}
