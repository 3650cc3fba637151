/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A turn by one of the frozen programs (bench/baseline), as a process at the sender's host. */
#include "bench.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ARGUMENTS = 12,
	ARGUMENT = 64,
	PRIORITY = 40,    /* as the library's own waiters */
	GRACE_MS = 10000, /* beyond what its job takes */
};

/* Beside this program in its build, or where `make install` puts them. */
int bench_baselines_find(struct bench_run *run, struct ktrxer_error *err)
{
	static const char probe[] = "/sleeper";
	char self[400], path[600];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (n > 0) {
		self[n] = '\0';
		if ((slash = strrchr(self, '/')))
			*slash = '\0';
		snprintf(run->programs, sizeof run->programs, "%.390s/../baseline", self);
		snprintf(path, sizeof path, "%s%s", run->programs, probe);
		if (access(path, X_OK) == 0)
			return 0;
	}
	snprintf(run->programs, sizeof run->programs, "%s/bench", KTRXER_LIBEXECDIR);
	snprintf(path, sizeof path, "%s%s", run->programs, probe);
	if (access(path, X_OK) == 0)
		return 0;
	return ktrxer_fail(err, -ENOENT,
			   "the frozen baseline programs are not there (%s): `make install`, or --no-baselines",
			   run->programs);
}

struct line {
	char text[ARGUMENTS][ARGUMENT];
	int count;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *line, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line->text[line->count++], ARGUMENT, format, arguments);
	va_end(arguments);
}

static void compose(struct line *line, const struct bench_run *run, const struct bench_who *who,
		    const struct bench_job *job, uint16_t port)
{
	char from[KTRXER_ADDR_TEXT], to[KTRXER_ADDR_TEXT];
	const bool raw = who->socket && !strncmp(who->socket, "raw", 3);

	ktrxer_addr_format(&run->path.source, from);
	ktrxer_addr_format(&run->path.to, to);
	if (who->sleep) {
		const bool pacer = !strncmp(who->sleep, "raw", 3) || !strcmp(who->sleep, "txtime");

		add(line, pacer ? "pacer" : "sleeper");
		add(line, "%s", who->sleep);
		if (pacer)
			add(line, "%s", from);
		add(line, "%s", to);
		add(line, "%u", port);
		add(line, "%" PRIu64, job->interval_ns / 1000);
		add(line, "%" PRIu64, job->count);
		add(line, "%u", job->payload);
	} else if (job->pattern == BENCH_FLOOD) {
		add(line, "%s", strstr(who->socket, "sendto") ? "sendto_rate" : raw ? "raw_rate" : "udp_rate");
		if (raw)
			add(line, "%s", from);
		add(line, "%s", to);
		add(line, "%u", port);
		add(line, "%" PRIu64 ".%03" PRIu64, job->for_ns / 1000000000, job->for_ns / 1000000 % 1000);
		add(line, "%u", job->payload);
	} else {
		add(line, "bursts");
		add(line, "%s", who->socket);
		add(line, "%s", from);
		add(line, "%s", to);
		add(line, "%u", port);
		add(line, "%" PRIu64, job->count);
		add(line, "%u", job->train);
		add(line, "%" PRIu64, job->interval_ns / 1000);
		add(line, "%u", job->payload);
	}
}

/* The child inherits no descriptor, and ends with this process. */
static _Noreturn void become(const char *path, struct line *line, bool realtime, int error_fd)
{
	struct sched_param param = { .sched_priority = realtime ? PRIORITY : 0 };
	char *arguments[ARGUMENTS + 1] = { NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), rc;
	sigset_t none;

	for (int i = 0; i < line->count; i++)
		arguments[i] = line->text[i];
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() == 1)
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(error_fd, STDERR_FILENO);
	if ((rc = pthread_setschedparam(pthread_self(), realtime ? SCHED_FIFO : SCHED_OTHER, &param)) != 0) {
		dprintf(STDERR_FILENO, "SCHED_FIFO: %s", strerror(rc));
		_exit(126);
	}
	execv(path, arguments);
	dprintf(STDERR_FILENO, "%s: %s", path, strerror(errno));
	_exit(127);
}

/* Its end, or ours. `said` is what it wrote to its standard error. */
static int wait_for(struct bench_run *run, pid_t pid, int fd, uint64_t limit_ns, char *complaint, size_t size,
		    int *status)
{
	uint64_t end = ktrxer_now_ns() + limit_ns;
	size_t used = 0;
	bool killed = false;

	for (;;) {
		struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
					 { .fd = killed ? -1 : run->cli->stop_fd, .events = POLLIN } };
		char trash[128];
		ssize_t n;

		poll(fds, 2, 100);
		if (!killed && (cli_stopped(run->cli) || ktrxer_now_ns() > end)) {
			kill(pid, SIGKILL);
			killed = true;
		}
		if (!fds[0].revents)
			continue;
		n = used + 1 < size ? read(fd, complaint + used, size - 1 - used) : read(fd, trash, sizeof trash);
		if (n <= 0)
			break;
		if (used + 1 < size)
			used += (size_t)n;
	}
	complaint[used] = '\0';
	complaint[strcspn(complaint, "\n")] = '\0';
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return killed ? -ETIMEDOUT : 0;
}

int bench_send_baseline(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, uint16_t port,
			struct bench_turn *turn, struct ktrxer_error *err)
{
	const uint64_t takes = job->for_ns + job->count * job->interval_ns + GRACE_MS * 1000000ull;
	struct line line = { .count = 0 };
	char path[600], complaint[160];
	int pipes[2], status, rc;
	pid_t pid;

	(void)turn;
	compose(&line, run, who, job, port);
	snprintf(path, sizeof path, "%s/%s", run->programs, line.text[0]);
	if (pipe2(pipes, O_CLOEXEC))
		return ktrxer_fail(err, -errno, "no pipe for %s", line.text[0]);
	pid = fork();
	if (pid == 0)
		become(path, &line, who->realtime, pipes[1]);
	rc = pid < 0 ? -errno : 0;
	close(pipes[1]);
	if (rc < 0) {
		close(pipes[0]);
		return ktrxer_fail(err, rc, "%s cannot be started", path);
	}
	rc = wait_for(run, pid, pipes[0], takes, complaint, sizeof complaint, &status);
	close(pipes[0]);
	if (cli_stopped(run->cli))
		return ktrxer_fail(err, -EINTR, "stopped");
	if (rc < 0)
		return ktrxer_fail(err, rc, "%s did not end in time and was killed", line.text[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return ktrxer_fail(err, -ECHILD, "%s ended with status %d: %s", line.text[0],
				   WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), complaint);
	return 0;
}
