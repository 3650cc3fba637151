/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transmitter over a scripted engine: what is refused, when stamps come, when the device goes, is written in the script, so
 * that every way to end a probe is walked. The table of engines is replaced at link time by the one below.
 */
#include "cm.h"
#include "tx.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ scripted engine */

static struct script {
	_Atomic int refuse;          /* so many hand-overs are refused ... */
	_Atomic int refuse_with;     /* ... with this */
	_Atomic int take_most;       /* of one batch; 0: all */
	_Atomic bool stamps, stamps_come;
	int64_t stamp_after_ns; /* the hand-over */
	int send_lasts_ms;
	_Atomic int sends, largest; /* seen */
	uint32_t next_key, stamped_key;
	uint64_t sent_at[4096];
	uint64_t order[4096];
	_Atomic int sent;
	_Atomic bool holds_buffers; /* the kernel reads frames until they are given back ... */
	_Atomic bool gives_back;    /* ... which it does now */
	struct ktx_cell *held[64];
	int held_count;
	_Atomic int given_up, give_up_with;
} script;

static int fake_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	(void)device;
	info->features = KTX_CAN_WHOLE_FRAME;
	return 0;
}

static int fake_open(struct ktx_engine_state **state, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	(void)setup;
	(void)err;
	*state = (struct ktx_engine_state *)&script;
	return 0;
}

static void fake_close(struct ktx_engine_state *state)
{
	(void)state;
}

static uint32_t fake_features(const struct ktx_engine_state *state)
{
	(void)state;
	return script.stamps ? KTX_CAN_DRIVER_STAMP : 0;
}

static int fake_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	(void)state;
	return frame[0] == 0xbd && length ? ktrxer_fail(err, -EBADMSG, "no frame of mine") : 0;
}

static int fake_send(struct ktx_engine_state *state, struct ktx_cell *const *cells, int count)
{
	(void)state;
	script.sends++;
	if (script.send_lasts_ms)
		poll(NULL, 0, script.send_lasts_ms);
	if (count > script.largest)
		script.largest = count;
	if (script.refuse) {
		script.refuse--;
		return script.refuse_with;
	}
	if (script.take_most && count > script.take_most)
		count = script.take_most;
	for (int i = 0; i < count; i++) {
		script.next_key++;
		if (script.holds_buffers) {
			cells[i]->buffer_busy = true;
			script.held[script.held_count++] = cells[i];
		}
		if (script.sent < 4096) {
			script.sent_at[script.sent] = ktrxer_now_ns();
			script.order[script.sent++] = cells[i]->id;
		}
	}
	return count;
}

static int fake_harvest(struct ktx_engine_state *state, const struct ktx_harvest *harvest)
{
	struct ktrxer_clock_pair pair;
	int n = 0;

	(void)state;
	if (script.gives_back)
		while (script.held_count)
			script.held[--script.held_count]->buffer_busy = false;
	if (!script.stamps || !script.stamps_come)
		return 0;
	ktrxer_clock_pair_read(&pair);
	for (; script.stamped_key != script.next_key; script.stamped_key++, n++)
		harvest->stamp(harvest->context, script.stamped_key,
			       pair.real_ns - (int64_t)pair.mono_ns +
				       (int64_t)script.sent_at[script.stamped_key % 4096] + script.stamp_after_ns,
			       KTX_PROOF_DRIVER, false);
	return n;
}

static int fake_give_up(struct ktx_engine_state *state, struct ktx_cell *cell)
{
	(void)state;
	assert_true(cell->buffer_busy);
	script.given_up++;
	return script.give_up_with;
}

static int fake_event_fd(const struct ktx_engine_state *state)
{
	(void)state;
	return -1;
}

static const struct ktx_engine fake = {
	.name = "fake", .summary = "for tests", .probe = fake_probe, .open = fake_open, .close = fake_close,
	.features = fake_features, .check = fake_check, .send = fake_send, .harvest = fake_harvest, .event_fd = fake_event_fd,
};

/* The same with buffers of its own, of which no descriptor tells when they come back. */
static const struct ktx_engine holder = {
	.name = "holder", .summary = "for tests", .probe = fake_probe, .open = fake_open, .close = fake_close,
	.features = fake_features, .check = fake_check, .send = fake_send, .harvest = fake_harvest, .event_fd = fake_event_fd,
	.harvest_ns = 200000, .frame_max = 1000, .give_up = fake_give_up,
};

const struct ktx_engine *const ktx_engine_table[] = { &fake, &holder, NULL };

const struct ktx_engine *ktx_engine_find(const char *name)
{
	return strcmp(name, "fake") == 0 ? &fake : strcmp(name, "holder") == 0 ? &holder : NULL;
}

const struct ktx_engine *ktx_engine_choose(const struct ktrxer_device *device, enum ktx_purpose purpose, uint32_t frame_size,
					   const struct ktx_engine *refused, char reason[KTRXER_ERROR_TEXT], struct ktrxer_error *err)
{
	(void)frame_size;
	(void)refused;
	(void)device;
	(void)purpose;
	(void)err;
	strcpy(reason, "the only one");
	return &fake;
}

/* ------------------------------------------------------------------------------------------------------- helpers */

static struct ktx *open_with(struct ktx_options options)
{
	struct ktrxer_error err = { 0 };
	struct ktx *tx;

	memset(&script, 0, sizeof script);
	options.flags |= KTX_NO_REALTIME;
	assert_int_equal(ktx_open(&tx, &options, &err), 0);
	return tx;
}

static int commit_one(struct ktx *tx, uint64_t id, uint64_t at_ns, uint32_t flags)
{
	const struct ktx_probe probe = { .id = id, .at_ns = at_ns, .length = 60, .flags = flags };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int rc = ktx_reserve(tx, &slot);

	if (rc < 0)
		return rc;
	assert_true(slot.capacity >= 60);
	memset(slot.frame, 0, 60);
	return ktx_commit(tx, &probe, &err);
}

static struct ktx_accounts drain(struct ktx *tx)
{
	struct ktx_accounts a;

	assert_int_equal(ktx_drain(tx, ktrxer_now_ns() + 5 * (uint64_t)KTRXER_NS_PER_S), 0);
	ktx_accounts(tx, &a);
	assert_int_equal(a.requested, a.sent + a.failed + a.skipped + a.cancelled);
	assert_int_equal(a.pending, 0);
	assert_int_equal(a.sent, a.wire + a.driver + a.queued);
	return a;
}

/* --------------------------------------------------------------------------------------------------------- tests */

static void sends_in_order_at_their_times(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	uint64_t start = ktrxer_now_ns() + 20 * KTRXER_NS_PER_MS;
	struct ktx_report reports[64];
	int got = 0;

	(void)state;
	script.stamps = script.stamps_come = true;
	for (int i = 0; i < 50; i++)
		assert_int_equal(commit_one(tx, 100 + i, start + i * 1000000ULL, 0), 0);
	struct ktx_accounts a = drain(tx);

	assert_int_equal(a.sent, 50);
	assert_int_equal(a.driver, 50);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(script.order[i], 100 + i);
		/* never more than the learned advance early; how late is the machine's affair */
		assert_true(script.sent_at[i] + 60000 > start + i * 1000000ULL);
	}
	got = ktx_reports(tx, reports, 64);
	assert_int_equal(got, 50);
	for (int i = 0; i < got; i++) {
		assert_int_equal(reports[i].id, 100 + i);
		assert_int_equal(reports[i].status, KTX_SENT);
		assert_int_equal(reports[i].proof, KTX_PROOF_DRIVER);
		assert_int_equal(reports[i].at_ns, start + i * 1000000ULL);
		assert_true(llabs((int64_t)(reports[i].sent_ns - script.sent_at[i])) <= 5000);
		assert_true(reports[i].raw_ns != 0);
	}
	assert_int_equal(ktx_reports(tx, reports, 64), 0);
	ktx_close(tx);
}

static void full_ring_says_again_and_wakes_the_tool(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;
	uint64_t sent = 0;

	(void)state;
	options.slots = 8;
	options.reports = KTX_REPORT_NONE;
	tx = open_with(options);
	while (sent < 5000) {
		int rc = commit_one(tx, sent, 0, 0);

		if (rc == 0) {
			sent++;
			continue;
		}
		assert_int_equal(rc, -EAGAIN);
		struct pollfd p = { .fd = ktx_fd(tx), .events = POLLIN };

		assert_int_equal(poll(&p, 1, 2000), 1);
	}
	assert_int_equal(drain(tx).sent, 5000);
	ktx_close(tx);
}

static void unread_reports_hold_their_slots(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report report;
	struct ktx *tx;

	(void)state;
	options.slots = 4;
	tx = open_with(options);
	for (int i = 0; i < 4; i++)
		assert_int_equal(commit_one(tx, i, 0, 0), 0);
	assert_int_equal(drain(tx).sent, 4);
	assert_int_equal(commit_one(tx, 9, 0, 0), -EAGAIN);
	struct pollfd p = { .fd = ktx_fd(tx), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 1000), 1);
	assert_int_equal(ktx_reports(tx, &report, 1), 1);
	assert_int_equal(report.id, 0);
	assert_int_equal(commit_one(tx, 9, 0, 0), 0);
	assert_int_equal(drain(tx).sent, 5);
	ktx_close(tx);
}

/* Who is refused a slot, reads what reports there are, and sleeps, is woken: by the room that the reading itself made, too. */
static void reading_reports_does_not_take_back_the_word_of_free_slots(void **state)
{
	for (int kind = KTX_REPORT_ALL; kind <= KTX_REPORT_NONE; kind++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		struct ktx_report reports[8];
		struct pollfd p = { .events = POLLIN };
		struct ktx *tx;

		(void)state;
		options.slots = 4;
		options.reports = (enum ktx_report_kind)kind;
		options.flags = KTX_CALLER_PUMPS;
		tx = open_with(options);
		p.fd = ktx_fd(tx);
		for (int i = 0; i < 4; i++)
			assert_int_equal(commit_one(tx, (uint64_t)i, 0, 0), 0);
		assert_int_equal(commit_one(tx, 4, 0, 0), -EAGAIN);
		assert_int_equal(drain(tx).sent, 4);
		while (ktx_reports(tx, reports, 8) > 0)
			;
		assert_int_equal(poll(&p, 1, 0), 1);
		assert_int_equal(commit_one(tx, 4, 0, 0), 0);
		drain(tx);
		while (ktx_reports(tx, reports, 8) > 0)
			;
		assert_int_equal(poll(&p, 1, 0), 0); /* and nothing is said when nobody waits */
		ktx_close(tx);
	}
}

static void only_failures_are_reported_when_asked(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[8];
	struct ktx *tx;

	(void)state;
	options.reports = KTX_REPORT_FAILURES;
	options.flags = KTX_CALLER_PUMPS;
	tx = open_with(options);
	for (int i = 0; i < 5; i++) {
		if (i == 3) {
			script.refuse = 1;
			script.refuse_with = -EPERM;
		}
		assert_int_equal(commit_one(tx, i, 0, 0), 0);
		drain(tx);
	}
	assert_int_equal(ktx_reports(tx, reports, 8), 1);
	assert_int_equal(reports[0].id, 3);
	assert_int_equal(reports[0].status, KTX_FAILED);
	assert_int_equal(reports[0].error, -EPERM);
	assert_int_equal(reports[0].sent_ns, 0);
	assert_int_equal(drain(tx).failed, 1);
	ktx_close(tx);
}

static void refusals_are_retried_then_failed(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[4];
	struct ktx_accounts a;
	struct ktx *tx;

	(void)state;
	/* long enough for a machine that does not run this thread for a while */
	options.retry_ns = 2 * KTRXER_NS_PER_S;
	tx = open_with(options);
	script.refuse = 5;
	script.refuse_with = -ENOBUFS;
	assert_int_equal(commit_one(tx, 1, 0, 0), 0);
	a = drain(tx);
	assert_int_equal(a.sent, 1);
	assert_int_equal(a.tries, 6);
	assert_int_equal(ktx_reports(tx, reports, 4), 1);
	assert_int_equal(reports[0].tries, 6);
	ktx_close(tx);

	options.retry_ns = 20 * KTRXER_NS_PER_MS;
	tx = open_with(options);
	script.refuse = 1 << 30;
	script.refuse_with = -ENOBUFS;
	assert_int_equal(commit_one(tx, 2, 0, 0), 0);
	a = drain(tx);
	assert_int_equal(a.failed, 1);
	assert_int_equal(a.last_error, -ENOBUFS);
	assert_true(a.tries >= 2);
	script.refuse = 0;
	assert_int_equal(commit_one(tx, 3, 0, 0), 0);
	assert_int_equal(drain(tx).sent, 1);
	ktx_close(tx);
}

static void a_device_that_refuses_for_long_does_not_hold_up_the_schedule(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;
	uint64_t begin;

	(void)state;
	options.reports = KTX_REPORT_NONE;
	tx = open_with(options); /* 10 ms of retries */
	script.refuse = 1 << 30;
	script.refuse_with = -ENOBUFS;
	begin = ktrxer_now_ns();
	for (int i = 0; i < 500; i++)
		assert_int_equal(commit_one(tx, i, 0, 0), 0);
	assert_int_equal(drain(tx).failed, 500);
	assert_true(ktrxer_now_ns() - begin > 15 * KTRXER_NS_PER_MS);
	assert_true(ktrxer_now_ns() - begin < 1000 * (uint64_t)KTRXER_NS_PER_MS); /* 5 s if each had its 10 ms */
	/* one that goes, and the next has all its time again */
	script.refuse = 0;
	assert_int_equal(commit_one(tx, 500, 0, 0), 0);
	assert_int_equal(drain(tx).sent, 1);
	script.refuse = 1 << 30;
	begin = ktrxer_now_ns();
	assert_int_equal(commit_one(tx, 501, 0, 0), 0);
	assert_int_equal(drain(tx).failed, 501);
	assert_true(ktrxer_now_ns() - begin >= 10 * KTRXER_NS_PER_MS);
	ktx_close(tx);
}

static void late_probes_are_skipped_shifted_or_sent(void **state)
{
	for (int policy = KTX_LATE_CATCH_UP; policy <= KTX_LATE_SHIFT; policy++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		struct ktx_report reports[3];
		struct ktx_accounts a;
		struct ktx *tx;
		uint64_t start;

		(void)state;
		options.late = (enum ktx_late_policy)policy;
		options.late_ns = 100 * KTRXER_NS_PER_MS; /* a busy machine may well delay a process by 10 ms */
		tx = open_with(options);
		start = ktrxer_now_ns() - 500 * KTRXER_NS_PER_MS;
		for (int i = 0; i < 3; i++) /* 500 ms late, 200 ms late, 200 ms ahead */
			assert_int_equal(commit_one(tx, i, start + (i == 1 ? 300 : i == 2 ? 700 : 0) * (uint64_t)KTRXER_NS_PER_MS, 0), 0);
		a = drain(tx);
		assert_int_equal(ktx_reports(tx, reports, 3), 3);
		if (policy == KTX_LATE_SKIP) {
			assert_int_equal(a.skipped, 2);
			assert_int_equal(a.sent, 1);
			assert_true(a.late >= 2);
			assert_int_equal(reports[0].status, KTX_SKIPPED);
		} else {
			assert_int_equal(a.sent, 3);
			/* a shift is late once: what follows it is on its new time */
			assert_true(policy == KTX_LATE_SHIFT ? a.late >= 1 : a.late >= 2);
		}
		if (policy == KTX_LATE_CATCH_UP) {
			assert_int_equal(reports[2].planned_ns, reports[2].at_ns);
			assert_true(reports[1].sent_ns > reports[1].at_ns + 100 * (uint64_t)KTRXER_NS_PER_MS);
		}
		if (policy == KTX_LATE_SHIFT) {
			/* the distances stay what they were */
			assert_true(reports[1].planned_ns - reports[0].planned_ns >= 300 * (uint64_t)KTRXER_NS_PER_MS);
			assert_true(reports[1].sent_ns >= reports[1].planned_ns);
			assert_true(reports[0].planned_ns > reports[0].at_ns + 400 * (uint64_t)KTRXER_NS_PER_MS);
		}
		ktx_close(tx);
	}
}

static void trains_leave_by_one_call(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	uint64_t at = ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(commit_one(tx, i, at, i < 9 ? KTX_TRAIN_GOES_ON : 0), 0);
	assert_int_equal(drain(tx).sent, 10);
	assert_int_equal(script.sends, 1);
	assert_int_equal(script.largest, 10);
	/* without times a train is not begun before it is whole */
	script.sends = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(commit_one(tx, i, 0, i < 2 ? KTX_TRAIN_GOES_ON : 0), 0);
		poll(NULL, 0, 5);
		assert_int_equal(script.sends != 0 && i < 2, 0);
	}
	assert_int_equal(drain(tx).sent, 13);
	assert_int_equal(script.sends, 1);
	ktx_close(tx);
}

static void a_partly_taken_train_goes_on(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);

	(void)state;
	script.take_most = 3;
	for (int i = 0; i < 10; i++)
		assert_int_equal(commit_one(tx, i, 0, i < 9 ? KTX_TRAIN_GOES_ON : 0), 0);
	assert_int_equal(drain(tx).sent, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(script.order[i], i);
	ktx_close(tx);
}

static void cancel_ends_what_is_pending_at_once(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	uint64_t now = ktrxer_now_ns();
	struct ktx_accounts a;

	(void)state;
	assert_int_equal(commit_one(tx, 0, 0, 0), 0);
	for (int i = 1; i < 100; i++)
		assert_int_equal(commit_one(tx, i, now + 3600 * (uint64_t)KTRXER_NS_PER_S, 0), 0);
	ktx_cancel(tx);
	a = drain(tx);
	assert_int_equal(a.cancelled + a.sent, 100);
	assert_true(a.cancelled >= 99);
	assert_true(ktrxer_now_ns() - now < (uint64_t)KTRXER_NS_PER_S);
	/* and it goes on working, at once */
	assert_int_equal(commit_one(tx, 99, ktrxer_now_ns() + KTRXER_NS_PER_MS, 0), 0);
	assert_int_equal(drain(tx).sent, a.sent + 1);
	assert_int_equal(commit_one(tx, 100, now + 3600 * (uint64_t)KTRXER_NS_PER_S, 0), 0);
	ktx_close(tx);
}

static void a_slot_is_not_free_before_its_buffer_is(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[8];
	struct ktx *tx;
	struct ktx_info info;
	uint64_t begin;

	(void)state;
	options.engine = "holder";
	options.slots = 4;
	tx = open_with(options);
	ktx_info(tx, &info);
	assert_int_equal(info.frame_size, 1000); /* the engine's longest, less than 1500 */
	script.holds_buffers = true;
	for (int i = 0; i < 4; i++)
		assert_int_equal(commit_one(tx, i, 0, 0), 0);
	/* longer than a stamp would be waited for */
	assert_int_equal(ktx_drain(tx, ktrxer_now_ns() + 150 * KTRXER_NS_PER_MS), -ETIMEDOUT);
	assert_int_equal(script.sent, 4);
	assert_int_equal(ktx_reports(tx, reports, 8), 0);
	assert_int_equal(commit_one(tx, 9, 0, 0), -EAGAIN);
	/* given back without a word: it is found by looking */
	begin = ktrxer_now_ns();
	script.gives_back = true;
	assert_int_equal(drain(tx).queued, 4);
	assert_true(ktrxer_now_ns() - begin < 90 * KTRXER_NS_PER_MS);
	assert_int_equal(ktx_reports(tx, reports, 8), 4);
	assert_int_equal(commit_one(tx, 9, 0, 0), 0);
	assert_int_equal(drain(tx).sent, 5);
	ktx_close(tx);

	struct ktrxer_error err = { 0 };

	options.frame_size = 1001;
	assert_int_equal(ktx_open(&tx, &options, &err), -EMSGSIZE);
	assert_non_null(strstr(err.text, "1000"));
}

static void a_buffer_that_never_returns_does_not_hold_up_the_accounts(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;

	(void)state;
	options.engine = "holder";
	for (int taken = 0; taken <= 1; taken++) {
		struct ktx *tx = open_with(options);
		const uint64_t begin = ktrxer_now_ns();
		struct ktx_report reports[8];

		script.holds_buffers = true;
		script.give_up_with = taken ? 0 : -EIO;
		for (int i = 0; i < 3; i++)
			assert_int_equal(commit_one(tx, i, 0, 0), 0);
		struct ktx_accounts a = drain(tx);

		assert_true(ktrxer_now_ns() - begin >= KTX_BUFFER_WAIT_NS);
		assert_int_equal(a.queued, taken ? 3 : 0);
		assert_int_equal(a.failed, taken ? 0 : 3);
		assert_int_equal(script.given_up, 3);
		assert_int_equal(ktx_reports(tx, reports, 8), 3);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(reports[i].status, taken ? KTX_SENT : KTX_FAILED);
			assert_int_equal(reports[i].error, taken ? 0 : -EIO);
		}
		ktx_close(tx);
	}
}

static void a_stamp_that_does_not_come_downgrades_the_proof(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report report;
	struct ktx_accounts a;
	struct ktx *tx = open_with(options);
	uint64_t begin = ktrxer_now_ns();

	(void)state;
	script.stamps = true;
	assert_int_equal(commit_one(tx, 1, 0, 0), 0);
	a = drain(tx);
	assert_true(ktrxer_now_ns() - begin >= KTX_STAMP_WAIT_NS);
	assert_int_equal(a.stamps_missing, 1);
	assert_int_equal(a.queued, 1);
	assert_int_equal(ktx_reports(tx, &report, 1), 1);
	assert_int_equal(report.proof, KTX_PROOF_QUEUED);
	assert_true(report.sent_ns >= begin);
	/* the stamp comes after all: too late, and not to be taken for the next one's */
	script.stamps_come = true;
	script.stamp_after_ns = 12345;
	assert_int_equal(commit_one(tx, 2, 0, 0), 0);
	assert_int_equal(drain(tx).driver, 1);
	ktx_close(tx);
}

static void a_lost_device_ends_all_without_hanging(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	struct ktx_accounts a;
	int rc = 0;

	(void)state;
	script.refuse = 1 << 30;
	script.refuse_with = -ENETDOWN;
	for (int i = 0; i < 20 && rc == 0; i++)
		rc = commit_one(tx, i, 0, 0);
	a = drain(tx);
	assert_true(a.failed > 0 && a.failed == a.requested);
	assert_int_equal(a.last_error, -ENETDOWN);
	assert_int_equal(commit_one(tx, 99, 0, 0), -ENETDOWN);
	ktx_close(tx);
}

static void bad_calls_are_refused_and_change_nothing(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	struct ktrxer_error err = { 0 };
	struct ktx_probe probe = { .length = 60 };
	struct ktx_slot slot, again;

	(void)state;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EINVAL);
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	assert_int_equal(ktx_reserve(tx, &again), 0);
	assert_ptr_equal(slot.frame, again.frame);
	probe.length = slot.capacity + 1;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EMSGSIZE);
	assert_non_null(strstr(err.text, "between 1 and"));
	probe.length = 0;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EMSGSIZE);
	probe.length = 60;
	slot.frame[0] = 0xbd;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EBADMSG);
	slot.frame[0] = 0;
	probe.at_ns = ktrxer_now_ns();
	assert_int_equal(ktx_commit(tx, &probe, &err), 0);
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	probe.at_ns--;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EINVAL);
	assert_int_equal(drain(tx).requested, 1);
	ktx_close(tx);

	options.engine = "warp";
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "fake"));
	assert_null(tx);
	options.engine = NULL;
	options.size = 4;
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
	options = (struct ktx_options)KTX_OPTIONS_INIT;
	options.slots = KTX_SLOTS_MAX + 1;
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
}

static void the_caller_can_pump(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t next = 0, at = ktrxer_now_ns() + 30 * KTRXER_NS_PER_MS;
	struct ktx *tx;

	(void)state;
	options.flags = KTX_CALLER_PUMPS;
	tx = open_with(options);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next == KTRXER_NEVER);
	assert_int_equal(commit_one(tx, 7, at, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next < at && next + KTX_LEAD_MAX_NS >= at);
	assert_int_equal(script.sent, 0);
	assert_int_equal(drain(tx).sent, 1);
	ktx_close(tx);

	options.flags = 0;
	tx = open_with(options);
	assert_int_equal(ktx_pump(tx, &next), -EINVAL);
	ktx_close(tx);
}

/* The pump may see a cancellation before the commitments that it is about: it must not go on from there with cells of old. */
static void cancellations_race_with_commitments(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_accounts a;
	struct ktx *tx;
	uint64_t end;

	(void)state;
	options.slots = 64;
	options.reports = KTX_REPORT_NONE;
	options.wait = KTX_WAIT_SLEEP;
	tx = open_with(options);
	end = ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS;
	while (ktrxer_now_ns() < end)
		if (commit_one(tx, 0, 0, 0) == 0)
			ktx_cancel(tx);
	a = drain(tx);
	assert_int_equal(a.requested, a.sent + a.cancelled);
	assert_int_equal(a.tries, a.sent);
	ktx_close(tx);
}

/* Times so near to the beginning, or the end, of the clock that a sum with them would wrap. */
static void times_at_both_ends_of_the_clock(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t next, now;
	struct ktx *tx;

	(void)state;
	options.flags = KTX_CALLER_PUMPS;
	options.late = KTX_LATE_SHIFT;
	tx = open_with(options);
	tx->waiter.advance_ns = 5000;
	assert_int_equal(commit_one(tx, 0, 1, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_int_equal(script.sent, 1);
	now = ktrxer_now_ns();
	/* shifted by all that the first one was late */
	assert_int_equal(commit_one(tx, 1, KTRXER_NEVER, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_int_equal(script.sent, 1);
	assert_true(next > now);
	ktx_close(tx);
}

/* After four thousand million probes the numbers of cells begin again. */
static void numbers_of_cells_wrap(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	const uint32_t from = UINT32_MAX - 300;
	struct ktx_report reports[8];
	struct ktx_accounts a;
	struct ktx *tx;
	int got = 0;

	(void)state;
	options.flags = KTX_CALLER_PUMPS;
	options.slots = 64;
	tx = open_with(options);
	script.stamps = script.stamps_come = true;
	tx->head = tx->done = tx->cancel_to = from;
	tx->written = tx->counted = tx->reaped = tx->handed = from;
	for (int i = 0; i < 1000; i++) {
		uint64_t next;

		assert_int_equal(commit_one(tx, i, i % 100 == 99 ? ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S : 0,
					    i % 3 ? KTX_TRAIN_GOES_ON : 0), 0);
		if (i % 100 == 99)
			ktx_cancel(tx);
		for (int n = 0; ktx_pump(tx, &next) == 0 && (n = ktx_reports(tx, reports, 8)) > 0; got += n)
			for (int k = 0; k < n; k++)
				assert_int_equal(reports[k].id, got + k);
	}
	a = drain(tx);
	got += ktx_reports(tx, reports, 8);
	assert_int_equal(got, 1000);
	assert_int_equal(a.cancelled, 10);
	assert_int_equal(a.driver, 990);
	ktx_close(tx);
}

static void for_ever_is_no_overflow(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_accounts a;
	struct ktx *tx;

	(void)state;
	options.late = KTX_LATE_SKIP;
	options.late_ns = options.retry_ns = UINT64_MAX;
	tx = open_with(options);
	script.refuse = 3;
	script.refuse_with = -ENOBUFS;
	assert_int_equal(commit_one(tx, 0, ktrxer_now_ns() - 1000000, 0), 0);
	a = drain(tx);
	assert_int_equal(a.sent, 1);
	assert_int_equal(a.tries, 4);
	assert_int_equal(a.late, 0);
	ktx_close(tx);
}

/* One that takes longer than late_ns, by more calls than one: none of it is skipped, and none of it moves the others. */
static void a_train_is_not_torn_by_the_late_policy(void **state)
{
	for (int policy = KTX_LATE_SKIP; policy <= KTX_LATE_SHIFT; policy++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		struct ktx_report reports[12];
		uint64_t at, next;
		struct ktx *tx;

		(void)state;
		options.flags = KTX_CALLER_PUMPS;
		options.late = (enum ktx_late_policy)policy;
		options.late_ns = 20 * KTRXER_NS_PER_MS;
		tx = open_with(options);
		script.take_most = 1;
		script.send_lasts_ms = 5;
		at = ktrxer_now_ns();
		for (int i = 0; i < 10; i++)
			assert_int_equal(commit_one(tx, i, at, i < 9 ? KTX_TRAIN_GOES_ON : 0), 0);
		while (ktx_pump(tx, &next) == 0 && next != KTRXER_NEVER)
			;
		assert_int_equal(script.sent, 10);
		script.send_lasts_ms = 0;
		assert_int_equal(tx->shift_ns, 0);
		assert_int_equal(ktx_reports(tx, reports, 12), 10);
		ktx_close(tx);
	}
}

static void a_shifted_train_is_shifted_as_a_whole(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[2];
	struct ktx *tx;
	uint64_t at = ktrxer_now_ns() - 50 * KTRXER_NS_PER_MS;

	(void)state;
	options.late = KTX_LATE_SHIFT;
	tx = open_with(options);
	assert_int_equal(commit_one(tx, 0, at, KTX_TRAIN_GOES_ON), 0);
	assert_int_equal(commit_one(tx, 1, at, 0), 0);
	drain(tx);
	assert_int_equal(script.sends, 1);
	assert_int_equal(ktx_reports(tx, reports, 2), 2);
	assert_true(reports[0].planned_ns > at);
	assert_int_equal(reports[1].planned_ns, reports[0].planned_ns);
	ktx_close(tx);
}

/* 4 GiB and 4 MiB: where sizes have 32 bits that must not become 4 MiB. */
static void more_memory_than_can_be_addressed_is_refused(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktrxer_error err;
	struct ktx *tx;

	(void)state;
	if (SIZE_MAX > UINT32_MAX)
		cm_skip("64-bit addresses: no number of slots is too many for them");
	options.slots = 65536;
	options.frame_size = 65549;
	assert_int_equal(ktx_open(&tx, &options, &err), -ENOMEM);
}

/* Random scripts; whatever happens, the accounts close and every probe has one report. */
static void accounts_always_close(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 30; seed++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		uint64_t at = ktrxer_now_ns(), committed = 0, reported = 0;
		struct ktx_report reports[16];
		struct ktx_accounts a;
		struct ktx *tx;

		srandom(seed);
		options.slots = 1u << (1 + random() % 6);
		options.retry_ns = 200 * KTRXER_NS_PER_US;
		options.late_ns = 50 * KTRXER_NS_PER_US;
		options.late = (enum ktx_late_policy)(random() % 3);
		options.flags = random() % 2 ? KTX_CALLER_PUMPS : 0;
		tx = open_with(options);
		script.stamps = random() % 2;
		script.stamps_come = true;
		for (int i = 0; i < 300; i++) {
			int rc;

			at += (uint64_t)(random() % 60000);
			if (random() % 40 == 0) {
				script.refuse_with = random() % 2 ? -ENOBUFS : -EMSGSIZE;
				script.refuse = (int)(random() % 20);
			}
			script.take_most = (int)(random() % 4);
			if (random() % 100 == 0)
				ktx_cancel(tx);
			rc = commit_one(tx, committed, random() % 3 ? at : 0, random() % 3 == 0 ? KTX_TRAIN_GOES_ON : 0);
			assert_true(rc == 0 || rc == -EAGAIN);
			committed += rc == 0;
			if (options.flags & KTX_CALLER_PUMPS) {
				uint64_t next;

				ktx_pump(tx, &next);
			}
			int n = ktx_reports(tx, reports, (int)(random() % 16));

			for (int k = 0; k < n; k++)
				assert_int_equal(reports[k].id, reported++);
		}
		a = drain(tx);
		assert_int_equal(a.requested, committed);
		for (int n; (n = ktx_reports(tx, reports, 16)) > 0;)
			for (int k = 0; k < n; k++)
				assert_int_equal(reports[k].id, reported++);
		assert_int_equal(reported, committed);
		ktx_close(tx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_in_order_at_their_times),
		cmocka_unit_test(full_ring_says_again_and_wakes_the_tool),
		cmocka_unit_test(unread_reports_hold_their_slots),
		cmocka_unit_test(reading_reports_does_not_take_back_the_word_of_free_slots),
		cmocka_unit_test(only_failures_are_reported_when_asked),
		cmocka_unit_test(refusals_are_retried_then_failed),
		cmocka_unit_test(a_device_that_refuses_for_long_does_not_hold_up_the_schedule),
		cmocka_unit_test(late_probes_are_skipped_shifted_or_sent),
		cmocka_unit_test(trains_leave_by_one_call),
		cmocka_unit_test(a_partly_taken_train_goes_on),
		cmocka_unit_test(cancel_ends_what_is_pending_at_once),
		cmocka_unit_test(a_slot_is_not_free_before_its_buffer_is),
		cmocka_unit_test(a_buffer_that_never_returns_does_not_hold_up_the_accounts),
		cmocka_unit_test(a_stamp_that_does_not_come_downgrades_the_proof),
		cmocka_unit_test(a_lost_device_ends_all_without_hanging),
		cmocka_unit_test(bad_calls_are_refused_and_change_nothing),
		cmocka_unit_test(the_caller_can_pump),
		cmocka_unit_test(cancellations_race_with_commitments),
		cmocka_unit_test(times_at_both_ends_of_the_clock),
		cmocka_unit_test(numbers_of_cells_wrap),
		cmocka_unit_test(for_ever_is_no_overflow),
		cmocka_unit_test(a_train_is_not_torn_by_the_late_policy),
		cmocka_unit_test(a_shifted_train_is_shifted_as_a_whole),
		cmocka_unit_test(more_memory_than_can_be_addressed_is_refused),
		cmocka_unit_test(accounts_always_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
