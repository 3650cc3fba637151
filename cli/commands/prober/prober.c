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
	uint64_t now = ktrxer_now_ns();

	p->fresh_ns = KTRXER_NEVER;
	/* Several at once, and with a probe that leaves meanwhile: each wake-up that is not needed is processor time. */
	if (p->unhurried && p->committed_ns > now + p->ahead_ns / 2)
		return p->committed_ns;
	while (p->next < p->wanted) {
		if (!*have && ktrxer_schedule_next(p->schedule, due) < 0)
			break;
		*have = true;
		if (due->at_ns >= p->end_ns)
			break;
		if (due->at_ns > (now = ktrxer_now_ns()) + p->ahead_ns)
			return p->unhurried && p->committed_ns > now ? p->committed_ns : due->at_ns - p->ahead_ns / 2;
		if (!p->work->commit(p->run, due->at_ns)) {
			if (p->failure)
				break;
			/* Reports make room, and wake us; so does a loss. */
			return earliest(p->work->next_loss(p->run), KTRXER_NEVER - 1);
		}
		p->next++;
		p->committed_ns = due->at_ns;
		if (p->fresh_ns == KTRXER_NEVER)
			p->fresh_ns = due->at_ns;
		*have = false;
	}
	return KTRXER_NEVER;
}

static uint64_t pump(struct prober *p, bool look)
{
	uint64_t pump_at = KTRXER_NEVER;

	if (!p->o->precise && (look ? ktx_pump(p->tx, &pump_at) : ktx_pump_due(p->tx, &pump_at)) < 0)
		prober_fail(p, -ENODEV, "the device went down or is gone");
	return pump_at;
}

uint64_t prober_take(struct prober *p)
{
	const uint64_t pump_at = pump(p, true);

	p->work->take(p->run);
	if (p->batch.count && ktrxer_now_ns() - p->batch.since_ns >= PROBER_BATCH_NS)
		prober_batch_tell(p);
	network_errors_say(p->cli, p->tx, p->talkative, &p->network_errors);
	return pump_at;
}

void prober_sleep(struct prober *p, uint64_t until)
{
	const uint64_t now = ktrxer_now_ns();
	uint64_t span = until > now ? until - now : 0;
	const bool blind = p->unhurried && span <= PROBER_LOOK_NS / 2;
	struct pollfd fds[3] = { { .fd = p->cli->stop_fd, .events = POLLIN },
				 { .fd = blind ? -1 : ktx_fd(p->tx), .events = POLLIN },
				 { .fd = blind ? -1 : p->receiver.fd, .events = POLLIN } };
	struct timespec t;

	p->blind = blind;
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
	(void)ktrxer_device_qdiscs(&p->qdiscs, &p->path.device);
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

/* With several probes at once: each system call that finds one packet, or none, costs what the probe itself does. */
static bool time_to_look(struct prober *p)
{
	const uint64_t now = ktrxer_now_ns();

	if (p->blind && now - p->looked_ns < PROBER_LOOK_NS / 2 && p->next - p->looked < PROBER_LOOK_PROBES && p->work->next_loss(p->run) > now)
		return false;
	p->looked_ns = now;
	p->looked = p->next;
	return true;
}

bool prober_loop(struct prober *p)
{
	struct ktrxer_deadline due;
	bool have = false;

	while (!cli_stopped(p->cli) && !p->failure) {
		/* What is due leaves first. */
		uint64_t pump_at = time_to_look(p) ? prober_take(p) : pump(p, false), commit_at = commit_soon(p, &due, &have);
		const bool no_more = commit_at == KTRXER_NEVER && (p->next == p->wanted || (have && due.at_ns >= p->end_ns));

		if (p->fresh_ns < pump_at)
			pump_at = pump(p, false);
		if (no_more && p->work->ended(p->run))
			break;
		prober_sleep(p, earliest(earliest(commit_at, pump_at), p->work->next_loss(p->run)));
	}
	ktx_cancel(p->tx);
	ktx_drain(p->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	prober_take(p);
	return cli_stopped(p->cli) != 0;
}

void prober_say_lost(struct prober *p, uint64_t number, uint32_t which)
{
	struct json *sample = out_sample(p->cli, "lost");

	if (p->talkative)
		out_text(p->cli, "number %" PRIu64 " lost: no answer", number);
	if (!sample)
		return;
	json_u64(sample, "number", number);
	if (p->each > 1)
		json_u64(sample, "class", which);
	out_put(p->cli, sample);
}

void prober_batch_tell(struct prober *p)
{
	struct prober_batch *b = &p->batch;
	struct json *sample = b->count ? out_sample(p->cli, "round_trips") : NULL;

	for (int column = 0; sample && p->columns[column]; column++) {
		json_array(sample, p->columns[column]);
		for (uint32_t i = 0; i < b->count; i++)
			json_i64(sample, NULL, b->values[column][i]);
		json_array_end(sample);
	}
	out_put(p->cli, sample);
	b->count = 0;
}

void prober_batch_add(struct prober *p, const int64_t *values)
{
	struct prober_batch *b = &p->batch;

	if (!b->count)
		b->since_ns = ktrxer_now_ns();
	for (int column = 0; p->columns[column]; column++)
		b->values[column][b->count] = values[column];
	if (++b->count == PROBER_BATCH)
		prober_batch_tell(p);
}

bool prober_is_timed(struct prober *p, int64_t rtt_ns, uint8_t sent_source)
{
	if (sent_source == KTX_SENT_NONE)
		p->unstamped++;
	/* An answer before its question: one of the stamps is wrong. */
	else if (rtt_ns < 0)
		p->contradictions++;
	else
		return true;
	return false;
}

void prober_judge_times(const struct prober *p, uint64_t received)
{
	if (p->contradictions)
		verdict_say(p->cli, VERDICT_DEGRADED, "%" PRIu64 " round trips have stamps that contradict each other (a step of the clock?) and "
			    "are left out of the times", p->contradictions);
	if (p->unstamped * 100 > received)
		verdict_say(p->cli, VERDICT_DEGRADED, "%" PRIu64 " of %" PRIu64 " round trips lack the stamp of their send time and are left out of "
			    "the times", p->unstamped, received);
	if (p->info.features & KTX_CAN_BYPASS && p->qdiscs.shaper[0])
		verdict_say(p->cli, VERDICT_DEGRADED, "engine %s bypasses the qdisc %s of %s, which delays the other packets of this host: the "
			    "round trip is without this delay; --engine udp has it", p->info.engine, p->qdiscs.shaper, p->path.device.name);
}

const char *prober_own_qdisc(const struct prober *p)
{
	return p->qdiscs.shaper[0] ? p->qdiscs.shaper : p->qdiscs.root;
}

void prober_own_queue_json(const struct prober *p, struct json *end, const struct ktrxer_hist *own_queue)
{
	json_hist_us(end, "own_queue_us", own_queue);
	json_string(end, "own_qdisc", prober_own_qdisc(p));
	json_bool(end, "qdisc_bypassed", p->info.features & KTX_CAN_BYPASS);
}

void prober_accounts(const struct prober *p, struct ktx_accounts *accounts)
{
	ktx_accounts(p->tx, accounts);
	if (p->wanted != UINT64_MAX) {
		const uint64_t never = (p->wanted - p->next) * p->each - p->part;

		accounts->requested += never;
		accounts->cancelled += never;
	}
}

void prober_accounts_json(struct json *end, const struct ktx_accounts *accounts, uint64_t sent, uint64_t received)
{
	json_u64(end, "requested", accounts->requested);
	json_u64(end, "sent", sent);
	json_u64(end, "failed", accounts->failed);
	json_u64(end, "skipped", accounts->skipped);
	json_u64(end, "cancelled", accounts->cancelled);
	json_u64(end, "received", received);
}

void prober_stamps_json(const struct prober *p, struct json *end, const struct ktx_accounts *accounts)
{
	json_u64(end, "sent_wire", accounts->wire);
	json_u64(end, "sent_driver", accounts->driver);
	json_u64(end, "sent_queued", accounts->queued);
	json_u64(end, "received_nic", p->arrivals[KTRXER_STAMP_NIC]);
	json_u64(end, "received_kernel", p->arrivals[KTRXER_STAMP_KERNEL] + p->arrivals[KTRXER_STAMP_XDP]);
	json_u64(end, "received_user", p->arrivals[KTRXER_STAMP_USER]);
}
