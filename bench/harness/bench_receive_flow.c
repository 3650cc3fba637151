/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A TCP flow (iperf3) to a host without rules, and to one with: what other traffic loses by the rules (K8). */
#include "bench_receive.h"

#include "error.h"
#include "fields_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT_MAX = 1 << 18, GRACE_S = 5, TRIES = 40 };

static pid_t start(const char *const arguments[], int out_fd)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() == 1)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	if (out_fd < 0)
		out_fd = open("/dev/null", O_WRONLY);
	dup2(out_fd, STDOUT_FILENO);
	dup2(out_fd, STDERR_FILENO);
	execvp(arguments[0], (char *const *)(uintptr_t)arguments);
	_exit(127);
}

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Returns iperf3's own sum at the end: the Mbit/s that the server received; -1: unknown. */
static int64_t figure_of(const char *text)
{
	const char *sum = strstr(text, "\"sum_received\""), *rate = sum ? strstr(sum, "\"bits_per_second\":") : NULL;

	return rate ? (int64_t)(strtod(rate + strlen("\"bits_per_second\":"), NULL) / 1e6) : -1;
}

/* 127: there is no iperf3. */
static int client_run(const char *to, const char *seconds, char *text, int *status)
{
	const char *const arguments[] = { "iperf3", "-J", "-c", to, "-p", "5211", "-t", seconds, "--connect-timeout",
					  "500",    NULL };
	size_t used = 0;
	int pipes[2];
	pid_t pid;
	ssize_t n;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	pid = start(arguments, pipes[1]);
	close(pipes[1]);
	while (pid > 0 && (n = read(pipes[0], text + used, OUTPUT_MAX - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(pipes[0]);
	if (pid < 0)
		return -EAGAIN;
	*status = reap(pid);
	return 0;
}

static int one_flow(struct receive_bench *b, char *text, int64_t *mbps, struct ktrxer_error *err)
{
	const char *const server[] = { "iperf3", "-s", "-1", "-p", "5211", NULL };
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	char to[KTRXER_ADDR_TEXT], seconds[16];
	int status = 1, rc;
	pid_t pid;

	ktrxer_addr_format(&b->net.to, to);
	snprintf(seconds, sizeof seconds, "%" PRIu64,
		 b->o->for_ns < (uint64_t)KTRXER_NS_PER_S ? 1 : b->o->for_ns / (uint64_t)KTRXER_NS_PER_S);
	rc = bench_net_far(&b->net);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the far host cannot be entered");
	pid = start(server, -1);
	rc = bench_net_near(&b->net);
	*mbps = -1;
	/* It listens a moment after it was started. */
	for (int i = 0; rc == 0 && i < TRIES && status && status != 127 && !cli_stopped(b->cli); i++) {
		rc = client_run(to, seconds, text, &status);
		if (status)
			nanosleep(&nap, NULL);
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		reap(pid);
	}
	if (rc < 0)
		return ktrxer_fail(err, rc, "iperf3 cannot be started");
	if (status == 127)
		return -ENOENT;
	if (status == 0)
		*mbps = figure_of(text);
	return 0;
}

static void sample_put(struct receive_bench *b, const char *what, int rules, uint64_t round, int64_t mbps)
{
	struct json *sample = receive_sample(b, "flow", what, rules, 0, round);

	if (!sample)
		return;
	bench_flow_mbps(sample, mbps);
	out_put(b->cli, sample);
}

/* The receiver stands as long as the flow lasts. */
static int with_rules(struct receive_bench *b, const struct krx_rule *rules, int count, char *text, int64_t *mbps,
		      struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	struct krx *rx = NULL;
	int rc = bench_net_far(&b->net);

	options.device = b->net.far_device;
	options.backend = "xdp";
	if (rc == 0)
		rc = krx_open(&rx, &options, rules, count, err);
	if (bench_net_near(&b->net) < 0 && rc == 0)
		rc = ktrxer_fail(err, -EIO, "no route from the far host to this one");
	if (rc == 0)
		rc = one_flow(b, text, mbps, err);
	krx_close(rx);
	return rc;
}

int receive_flow(struct receive_bench *b, struct ktrxer_error *err)
{
	static const char *const names[] = { "TCP flow, no rules", "TCP flow beside rules", "TCP flow beside rules" };
	const int most = (int)b->rules[b->rule_counts - 1], counts[] = { 0, 1, most };
	struct krx_rule *rules = receive_rules(most, 0, false);
	char *text = malloc(OUTPUT_MAX);
	int rc = 0;

	if (!rules || !text)
		rc = ktrxer_fail(err, -ENOMEM, "no memory for the bench");
	for (uint64_t round = 0; rc == 0 && round < b->o->rounds && !cli_stopped(b->cli); round++)
		for (uint64_t i = 0; rc == 0 && i < 3; i++) {
			const uint64_t which = (i + round) % 3;
			int64_t mbps = -1;

			rc = which ? with_rules(b, rules, counts[which], text, &mbps, err)
				   : one_flow(b, text, &mbps, err);
			if (mbps >= 0)
				sample_put(b, names[which], counts[which], round, mbps);
		}
	if (rc == -ENOENT) {
		receive_note(b, "no TCP flow: iperf3 is not installed here");
		rc = 0;
	}
	free(rules);
	free(text);
	return rc;
}
