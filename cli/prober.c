/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The loop of a command that probes one host. */
#include "prober.h"

#include "network_error.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

const char *const prober_engines[] = { "udp", "raw", "packet", "auto", NULL };

void prober_fail(struct prober *p, int rc, const char *text)
{
	if (p->failure)
		return;
	p->failure = rc;
	snprintf(p->failure_text, sizeof p->failure_text, "%s", text);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Commits what is due soon. Returns when the next one after that is to be committed; KTRXER_NEVER: that was all. */
static uint64_t commit_soon(struct prober *p, struct ktrxer_deadline *due, bool *have)
{
	while (p->next < p->wanted) {
		if (!*have && ktrxer_schedule_next(p->schedule, due) < 0)
			break;
		*have = true;
		if (due->at_ns >= p->end_ns)
			break;
		if (due->at_ns > ktrxer_now_ns() + p->ahead_ns)
			return due->at_ns - p->ahead_ns / 2;
		if (!p->work->commit(p->run, due->at_ns)) {
			if (p->failure)
				break;
			/* Reports make room, and wake us; so does a loss. */
			return earliest(p->work->next_loss(p->run), KTRXER_NEVER - 1);
		}
		p->next++;
		*have = false;
	}
	return KTRXER_NEVER;
}

uint64_t prober_take(struct prober *p)
{
	uint64_t pump_at = KTRXER_NEVER;

	if (!p->o->precise && ktx_pump(p->tx, &pump_at) < 0)
		prober_fail(p, -ENODEV, "the device went down or is gone");
	p->work->take(p->run);
	network_errors_say(p->cli, p->tx, p->talkative, &p->network_errors);
	return pump_at;
}

void prober_sleep(struct prober *p, uint64_t until)
{
	struct pollfd fds[3] = { { .fd = p->cli->stop_fd, .events = POLLIN },
				 { .fd = ktx_fd(p->tx), .events = POLLIN },
				 { .fd = p->inlet.fd, .events = POLLIN } };
	uint64_t now = ktrxer_now_ns(), span = until > now ? until - now : 0;
	struct timespec t;

	if (span > (uint64_t)KTRXER_NS_PER_S)
		span = KTRXER_NS_PER_S; /* come up for air: nothing else ends a wait that a bug made endless */
	t = (struct timespec){ .tv_sec = (time_t)(span / KTRXER_NS_PER_S), .tv_nsec = (long)(span % KTRXER_NS_PER_S) };
	ppoll(fds, 3, &t, NULL);
}

bool prober_begin(struct prober *p)
{
	struct ktrxer_error err = { 0 };

	/* By default a process is woken up to 50 us late on purpose. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	if (cli_wait_start(p->cli, &p->start_ns) < 0) /* stopped while it waited: there are accounts all the same */
		return false;
	/* Receive stamps are switched on by deferred work: the first milliseconds have none or bad ones. */
	if (!p->cli->common.start_at_real_ns)
		p->start_ns += 10 * KTRXER_NS_PER_MS;
	p->end_ns = p->o->for_ns ? p->start_ns + p->o->for_ns : KTRXER_NEVER;
	if (prober_schedule(p, &err) < 0) {
		cli_complain(p->cli, "%s", err.text);
		return false;
	}
	return true;
}

bool prober_loop(struct prober *p)
{
	struct ktrxer_deadline due;
	bool have = false;

	while (!cli_stopped(p->cli) && !p->failure) {
		uint64_t commit_at = commit_soon(p, &due, &have), pump_at = prober_take(p);
		const bool no_more = commit_at == KTRXER_NEVER && (p->next == p->wanted || (have && due.at_ns >= p->end_ns));

		if (no_more && p->work->ended(p->run))
			break;
		prober_sleep(p, earliest(earliest(commit_at, pump_at), p->work->next_loss(p->run)));
	}
	ktx_cancel(p->tx);
	ktx_drain(p->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	prober_take(p);
	return cli_stopped(p->cli) != 0;
}

void prober_say_lost(struct prober *p, uint64_t number)
{
	struct json *sample = out_sample(p->cli, "lost");

	if (p->talkative)
		out_text(p->cli, "number %" PRIu64 " lost: no answer", number);
	if (!sample)
		return;
	json_u64(sample, "number", number);
	out_put(p->cli, sample);
}

void prober_accounts(const struct prober *p, struct ktx_accounts *accounts)
{
	ktx_accounts(p->tx, accounts);
	if (p->wanted != UINT64_MAX) {
		accounts->requested += p->wanted - p->next;
		accounts->cancelled += p->wanted - p->next;
	}
}
