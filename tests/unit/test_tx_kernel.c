/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The transmitter over a scripted engine whose kernel side waits: who owns a cell when, and that each one ends. */
#include "cm.h"
#include "tx.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum { MOST = 4096 };

static struct script {
	struct ktx_cell *cells;
	uint32_t mask;
	_Atomic uint32_t published, publishes; /* by the tool's thread */
	_Atomic uint32_t sends_to;  /* the kernel has sent those before this; UINT32_MAX: all whose time has come */
	_Atomic int gone;           /* negative errno */
	_Atomic uint32_t tends;
	_Atomic uint32_t cancel_to;
	_Atomic uint32_t advance_ns;
	int64_t late_ns;            /* of each stamp */
	int fail_with;              /* instead of being sent */
	uint32_t last_from;
} script;

static int fake_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	(void)device;
	(void)info;
	return 0;
}

static int fake_open(struct ktx_engine_state **state, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	(void)err;
	script.cells = setup->cells;
	script.mask = setup->slots - 1;
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
	return KTX_CAN_DRIVER_STAMP | KTX_CAN_KERNEL_WAIT;
}

static int fake_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	(void)state;
	(void)frame;
	(void)length;
	(void)err;
	return 0;
}

static void fake_publish(struct ktx_engine_state *state, uint32_t from, uint32_t to)
{
	(void)state;
	assert_int_equal(from, script.published);
	script.last_from = from;
	script.published = to;
	script.publishes++;
}

static int fake_tend(struct ktx_engine_state *state, const struct ktx_work *work, uint64_t *next_ns)
{
	(void)state;
	script.tends++;
	script.cancel_to = work->cancel_to;
	script.advance_ns = (uint32_t)work->advance_ns; /* far below a second */
	*next_ns = KTRXER_NEVER;
	assert_true((int32_t)(work->head - work->done) >= 0);
	assert_true((int32_t)(work->cancel_to - work->head) <= 0);
	return script.gone;
}

static bool cell_end(uint32_t number, const struct ktx_work *work)
{
	struct ktx_cell *cell = &script.cells[number & script.mask];
	const uint64_t base = cell->at_ns ? cell->at_ns : work->now_ns;
	const bool sent = script.sends_to == UINT32_MAX ? base <= work->now_ns : (int32_t)(script.sends_to - number) > 0;

	assert_int_equal(cell->status, KTX_PENDING);
	cell->planned_ns = cell->at_ns;
	if (sent && !script.fail_with) {
		cell->status = KTX_SENT;
		cell->proof = KTX_PROOF_DRIVER;
		cell->sent_ns = (uint64_t)((int64_t)base + script.late_ns);
		cell->raw_ns = (int64_t)cell->sent_ns;
		cell->tries = 1;
		return true;
	}
	if (script.gone || (sent && script.fail_with)) {
		cell->status = KTX_FAILED;
		cell->error = script.gone ? script.gone : script.fail_with;
		cell->tries = 1;
		return true;
	}
	if ((int32_t)(work->cancel_to - number) > 0) {
		cell->status = KTX_CANCELLED;
		return true;
	}
	return false;
}

static uint32_t fake_collect(struct ktx_engine_state *state, const struct ktx_work *work)
{
	uint32_t number = work->done;

	(void)state;
	while (number != work->head && cell_end(number, work))
		number++;
	return number - work->done;
}

static int fake_event_fd(const struct ktx_engine_state *state)
{
	(void)state;
	return -1;
}

static const struct ktx_engine fake = {
	.name = "fake", .summary = "for tests", .waits = KTX_KERNEL_WAITS, .harvest_ns = 100000, .probe = fake_probe, .open = fake_open,
	.close = fake_close, .features = fake_features, .check = fake_check, .publish = fake_publish, .tend = fake_tend,
	.collect = fake_collect, .event_fd = fake_event_fd,
};

const struct ktx_engine *const ktx_engine_table[] = { &fake, NULL };

const struct ktx_engine *ktx_engine_find(const char *name)
{
	return strcmp(name, "fake") == 0 ? &fake : NULL;
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

static struct ktx *open_with(struct ktx_options options)
{
	struct ktrxer_error err = { 0 };
	struct ktx *tx;

	memset(&script, 0, sizeof script);
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
	return a;
}

static void sleep_ms(uint64_t ms)
{
	poll(NULL, 0, (int)ms);
}

/* --------------------------------------------------------------------------------------------------------- tests */

static void committed_is_with_the_engine_at_once(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	const uint64_t far = ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S;

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(commit_one(tx, i, far, 0), 0);
		assert_int_equal(script.published, i + 1); /* however far away */
	}
	ktx_close(tx);
}

static void train_is_published_whole(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);

	(void)state;
	script.sends_to = UINT32_MAX;
	for (int i = 0; i < 9; i++) {
		assert_int_equal(commit_one(tx, i, 0, KTX_TRAIN_GOES_ON), 0);
		assert_int_equal(script.published, 0);
	}
	assert_int_equal(commit_one(tx, 9, 0, 0), 0);
	assert_int_equal(script.publishes, 1);
	assert_int_equal(script.last_from, 0);
	assert_int_equal(drain(tx).sent, 10);
	ktx_close(tx);
}

static void ends_come_back_in_order_with_their_stamps(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	const uint64_t start = ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS;
	struct ktx_report reports[64];

	(void)state;
	script.sends_to = UINT32_MAX;
	script.late_ns = 250;
	for (int i = 0; i < 50; i++)
		assert_int_equal(commit_one(tx, 100 + i, start + i * 200000ULL, 0), 0);
	struct ktx_accounts a = drain(tx);

	assert_int_equal(a.sent, 50);
	assert_int_equal(a.driver, 50);
	assert_int_equal(ktx_reports(tx, reports, 64), 50);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(reports[i].id, 100 + i);
		assert_int_equal(reports[i].sent_ns, start + i * 200000ULL + 250);
		assert_int_equal(reports[i].raw_ns, reports[i].sent_ns);
		assert_int_equal(reports[i].proof, KTX_PROOF_DRIVER);
	}
	/* 50 frames that left 250 ns late: a hand-over costs more than nothing */
	assert_true(script.advance_ns > 100);
	ktx_close(tx);
}

static void advance_is_not_asked_for(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;

	(void)state;
	options.flags = KTX_NO_ADVANCE;
	tx = open_with(options);
	script.sends_to = UINT32_MAX;
	script.late_ns = 250;
	for (int i = 0; i < 50; i++)
		assert_int_equal(commit_one(tx, i, ktrxer_now_ns(), 0), 0);
	drain(tx);
	assert_int_equal(script.advance_ns, 0);
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
	script.sends_to = UINT32_MAX;
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

static void cancel_ends_what_is_not_sent(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	const uint64_t far = ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S;
	struct ktx *tx = open_with(options);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(commit_one(tx, i, far, 0), 0);
	script.sends_to = 4;
	ktx_cancel(tx);
	struct ktx_accounts a = drain(tx);

	assert_int_equal(a.sent, 4);
	assert_int_equal(a.cancelled, 6);
	/* It stays usable, and what comes later is not cancelled. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(commit_one(tx, i, far, 0), 0);
	sleep_ms(20);
	ktx_accounts(tx, &a);
	assert_int_equal(a.pending, 3);
	script.sends_to = 13;
	ktx_cancel(tx);
	a = drain(tx);
	assert_int_equal(a.sent, 7);
	assert_int_equal(a.cancelled, 6);
	ktx_close(tx);
}

static void far_deadlines_cost_nothing(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	uint32_t before;

	(void)state;
	assert_int_equal(commit_one(tx, 1, ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S, 0), 0);
	sleep_ms(20);
	before = script.tends;
	assert_true(before > 0);
	sleep_ms(100);
	assert_true(script.tends - before <= 2);
	ktx_close(tx);
}

static void failure_is_one_probe_s(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	struct ktx_accounts a;

	(void)state;
	script.sends_to = UINT32_MAX;
	script.fail_with = -ENXIO;
	for (int i = 0; i < 5; i++)
		assert_int_equal(commit_one(tx, i, 0, 0), 0);
	a = drain(tx);
	assert_int_equal(a.failed, 5);
	assert_int_equal(a.last_error, -ENXIO);
	assert_int_equal(a.tries, 5);
	script.fail_with = 0;
	assert_int_equal(commit_one(tx, 6, 0, 0), 0);
	assert_int_equal(drain(tx).sent, 1);
	ktx_close(tx);
}

static void device_gone_ends_all_and_refuses_more(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);
	struct ktx_accounts a;

	(void)state;
	for (int i = 0; i < 7; i++)
		assert_int_equal(commit_one(tx, i, ktrxer_now_ns() + 50 * KTRXER_NS_PER_MS, 0), 0);
	script.gone = -ENODEV;
	a = drain(tx);
	assert_int_equal(a.failed, 7);
	assert_int_equal(commit_one(tx, 8, 0, 0), -ENODEV);
	ktx_close(tx);
}

static void caller_pumps(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t next;
	struct ktx *tx;

	(void)state;
	options.flags = KTX_CALLER_PUMPS;
	tx = open_with(options);
	assert_int_equal(commit_one(tx, 1, 0, 0), 0);
	assert_int_equal(script.published, 1);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next <= ktrxer_now_ns() + KTRXER_NS_PER_MS); /* there is something to bring back */
	script.sends_to = UINT32_MAX;
	assert_int_equal(drain(tx).sent, 1);
	ktx_close(tx);
}

static void close_with_pending_ends(void **state)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = open_with(options);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(commit_one(tx, i, ktrxer_now_ns() + KTRXER_NS_PER_S, i % 3 ? KTX_TRAIN_GOES_ON : 0), 0);
	ktx_close(tx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(committed_is_with_the_engine_at_once),
		cmocka_unit_test(train_is_published_whole),
		cmocka_unit_test(ends_come_back_in_order_with_their_stamps),
		cmocka_unit_test(advance_is_not_asked_for),
		cmocka_unit_test(full_ring_says_again_and_wakes_the_tool),
		cmocka_unit_test(cancel_ends_what_is_not_sent),
		cmocka_unit_test(far_deadlines_cost_nothing),
		cmocka_unit_test(failure_is_one_probe_s),
		cmocka_unit_test(device_gone_ends_all_and_refuses_more),
		cmocka_unit_test(caller_pumps),
		cmocka_unit_test(close_with_pending_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
